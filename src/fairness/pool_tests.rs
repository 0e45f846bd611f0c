use std::collections::HashMap;
use std::num::NonZeroU32;

use flotilla_proto::time::Timestamp;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use tokio::sync::oneshot;

use super::super::queues::Queuing;
use super::*;

type Receiver = oneshot::Receiver<Seat>;

fn limit(nominal: u32, lendable: u32, most: u32) -> Limit {
    Limit { nominal, lendable, most }
}

fn level(name: &str, limit: Limit, queues: u32, length: usize) -> Arc<Level> {
    let level = Level::new(name.into(), false);
    level.set_limit(limit);
    level.set_queuing(NonZeroU32::new(queues).map(|queues| Queuing { queues, hand: 1, length }));
    Arc::new(level)
}

fn pool(levels: &[&Arc<Level>]) -> Pool {
    let pool = Pool::default();
    pool.set(levels.iter().map(|level| Arc::clone(level)).collect());
    pool
}

fn enter(pool: &Pool, level: &Level, hash: u64) -> (Taken, Option<Receiver>) {
    let mut receiver = None;
    let taken = pool.enter(level, hash, || {
        let (waiter, seat) = Waiter::new("s", "d", Timestamp { seconds: 0, nanos: 0 });
        receiver = Some(seat);
        waiter
    });
    (taken, receiver)
}

fn seat(pool: &Pool, level: &Level) -> Seat {
    match enter(pool, level, 0) {
        (Taken::Seat(seat), _) => seat,
        other => panic!("{other:?}"),
    }
}

fn wait(pool: &Pool, level: &Level, hash: u64) -> (QueuePosition, Receiver) {
    match enter(pool, level, hash) {
        (Taken::Queued(position), Some(receiver)) => (position, receiver),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_seat_passes_to_the_next_request() {
    let one = level("one", limit(1, 0, 1), 2, 1);
    let pool = pool(&[&one]);
    let first = seat(&pool, &one);
    let (_, mut second) = wait(&pool, &one, 0);
    let (third_place, mut third) = wait(&pool, &one, 1);
    assert_eq!(enter(&pool, &one, 0).0, Taken::QueueFull);
    assert_eq!((one.executing(), pool.waiting()), (1, 2));
    assert!(second.try_recv().is_err());
    pool.leave(&one, first, Duration::ZERO);
    let second = second.try_recv().unwrap();
    assert_eq!((one.executing(), pool.waiting()), (1, 1));
    assert!(pool.withdraw(&one, third_place) && !pool.withdraw(&one, third_place));
    pool.leave(&one, second, Duration::ZERO);
    assert!(third.try_recv().is_err());
    assert_eq!((one.executing(), pool.waiting(), one.has_waiting()), (0, 0, false));
}

#[test]
fn without_queues_no_request_waits() {
    let one = level("one", limit(1, 0, 1), 0, 0);
    let pool = pool(&[&one]);
    let first = seat(&pool, &one);
    assert_eq!(enter(&pool, &one, 0).0, Taken::ConcurrencyLimit);
    pool.leave(&one, first, Duration::ZERO);
    one.set_limit(limit(0, 0, 0));
    let only = seat(&pool, &one);
    assert_eq!(enter(&pool, &one, 0).0, Taken::ConcurrencyLimit, "without seats it admits one at a time");
    pool.leave(&one, only, Duration::ZERO);
    let _ = seat(&pool, &one);
}

#[test]
fn seats_are_lent_and_come_back() {
    let (poor, rich) = (level("poor", limit(1, 0, 3), 1, 9), level("rich", limit(3, 2, 3), 1, 9));
    let pool = pool(&[&poor, &rich]);
    let own = seat(&pool, &poor);
    let lent = [seat(&pool, &poor), seat(&pool, &poor)];
    let (_, mut more) = wait(&pool, &poor, 0);
    assert_eq!(poor.executing(), 3, "not the seat that is not lent");
    // A level takes its own seats at once, even while they are lent.
    let back = [seat(&pool, &rich), seat(&pool, &rich), seat(&pool, &rich)];
    pool.leave(&poor, own, Duration::ZERO);
    assert!(more.try_recv().is_err(), "the level has borrowed more than there is now");
    back.into_iter().for_each(|seat| pool.leave(&rich, seat, Duration::ZERO));
    assert!(more.try_recv().is_ok(), "a request that ends offers the seat that its level lends");
    lent.into_iter().for_each(|seat| pool.leave(&poor, seat, Duration::ZERO));
    assert_eq!((poor.executing(), rich.executing()), (1, 0));
}

#[test]
fn higher_limits_give_seats_to_waiting_requests() {
    let one = level("one", limit(0, 0, 0), 1, 9);
    let pool = pool(&[&one]);
    let mut waiting: Vec<_> = (0..3).map(|_| wait(&pool, &one, 0).1).collect();
    one.set_limit(limit(2, 0, 2));
    pool.set(vec![Arc::clone(&one)]);
    let seats: Vec<_> = waiting.iter_mut().filter_map(|seat| seat.try_recv().ok()).collect();
    assert_eq!(seats.len(), 2);
    seats.into_iter().for_each(|seat| pool.leave(&one, seat, Duration::ZERO));
    assert_eq!(one.executing(), 1);
}

#[test]
fn a_deleted_level_goes_on_until_it_is_empty() {
    let one = level("one", limit(0, 0, 0), 1, 9);
    let pool = pool(&[&one]);
    let mut waiting: Vec<_> = (0..3).map(|_| wait(&pool, &one, 0).1).collect();
    pool.set(Vec::new());
    for receiver in &mut waiting {
        pool.leave(&one, receiver.try_recv().unwrap(), Duration::ZERO);
    }
    assert_eq!((one.executing(), pool.waiting()), (0, 0));
}

/// A request of the simulation.
enum Request {
    Waits(QueuePosition, Receiver),
    Seated(Seat),
}

/// Marks the waiting requests that have got a seat as seated.
fn notice(requests: &mut HashMap<u64, (usize, Request)>) {
    for (_, request) in requests.values_mut() {
        if let Request::Waits(_, receiver) = request
            && let Ok(seat) = receiver.try_recv()
        {
            *request = Request::Seated(seat);
        }
    }
}

/// Random requests, ends, departures and changes of limits: limits hold, no free seat stays unused while a request
/// could have it, and no request is forgotten.
#[test]
fn limits_hold_and_no_request_is_forgotten() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut any = |most: u32| random.random_range(0..=most);
        let levels: Vec<_> = (0..3)
            .map(|at| {
                let nominal = any(4);
                level(&at.to_string(), limit(nominal, any(nominal), nominal + any(4)), any(3), 5)
            })
            .collect();
        let pool = pool(&levels.iter().collect::<Vec<_>>());
        let mut requests: HashMap<u64, (usize, Request)> = HashMap::new();
        for number in 0..1_000_u64 {
            let at = random.random_range(0..levels.len());
            let mut keys: Vec<u64> = requests.keys().copied().collect();
            keys.sort_unstable();
            match (random.random_range(0..10), keys.choose(&mut random)) {
                (0..=4, _) | (_, None) => match enter(&pool, &levels[at], random.random()) {
                    (Taken::Seat(seat), _) => drop(requests.insert(number, (at, Request::Seated(seat)))),
                    (Taken::Queued(position), Some(seat)) => {
                        drop(requests.insert(number, (at, Request::Waits(position, seat))))
                    }
                    _ => {}
                },
                (9, _) => {
                    let nominal = random.random_range(0..=4);
                    levels[at].set_limit(limit(nominal, random.random_range(0..=nominal), nominal + 2));
                    pool.set(levels.clone());
                }
                (_, Some(key)) => match requests.remove(key) {
                    Some((at, Request::Seated(seat))) => pool.leave(&levels[at], seat, Duration::from_millis(1)),
                    Some((at, Request::Waits(position, _))) => {
                        assert!(pool.withdraw(&levels[at], position), "seed {seed}")
                    }
                    None => {}
                },
            }
            notice(&mut requests);
            for (at, level) in levels.iter().enumerate() {
                let of = |is: fn(&Request) -> bool| requests.values().filter(|(own, it)| *own == at && is(it)).count();
                let (seated, waiting) =
                    (of(|it| matches!(it, Request::Seated(_))), of(|it| matches!(it, Request::Waits(..))));
                assert_eq!(level.executing() as usize, seated, "seed {seed}");
                assert_eq!(level.has_waiting(), waiting > 0, "seed {seed}");
                assert!(waiting == 0 || level.executing() >= level.limit().nominal, "seed {seed}: a seat is unused");
                let may_borrow = level.executing() < level.limit().most;
                assert!(waiting == 0 || !may_borrow || pool.lent(&levels) <= 0, "seed {seed}: a lent seat is unused");
            }
        }
        for level in &levels {
            level.set_limit(limit(1, 0, 1));
        }
        pool.set(levels.clone());
        while !requests.is_empty() {
            notice(&mut requests);
            let key = requests.iter().find(|(_, (_, it))| matches!(it, Request::Seated(_))).map(|(key, _)| *key);
            let key = key.unwrap_or_else(|| panic!("seed {seed}: {} requests are forgotten", requests.len()));
            if let Some((at, Request::Seated(seat))) = requests.remove(&key) {
                pool.leave(&levels[at], seat, Duration::ZERO);
            }
        }
        assert!(levels.iter().all(|level| level.executing() == 0) && pool.waiting() == 0, "seed {seed}");
    }
}

/// After threads have taken and given back seats at the same time, no seat is taken and no request waits.
#[test]
fn threads_lose_no_seat() {
    let levels = [level("a", limit(2, 2, 4), 2, 100), level("b", limit(1, 0, 3), 2, 100)];
    let pool = pool(&levels.iter().collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let (pool, levels) = (&pool, &levels);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(thread);
                for _ in 0..2_000 {
                    let level = &levels[random.random_range(0..2)];
                    let seat = match enter(pool, level, random.random()) {
                        (Taken::Seat(seat), _) => seat,
                        (Taken::Queued(position), Some(mut seat)) => match random.random_range(0..4) {
                            0 if pool.withdraw(level, position) => continue,
                            0 => seat.try_recv().expect("a request that has left its queue has a seat"),
                            _ => seat.blocking_recv().expect("a waiting request gets a seat"),
                        },
                        other => panic!("{other:?}"),
                    };
                    assert!(level.executing() <= level.limit().most);
                    if random.random() {
                        std::thread::yield_now();
                    }
                    pool.leave(level, seat, Duration::from_micros(10));
                }
            });
        }
    });
    assert!(levels.iter().all(|level| level.executing() == 0 && !level.has_waiting()) && pool.waiting() == 0);
}
