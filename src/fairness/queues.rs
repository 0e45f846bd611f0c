//! Fair queues: the requests of a priority level that wait for a seat.
//!
//! The hash of a flow deals it a hand of the level's queues (shuffle sharding), and a request joins the shortest queue
//! of the hand of its flow. A flow with many requests fills few queues. The hand of any other flow most likely has a
//! queue that is not among these.
//!
//! The queues take turns by virtual time (start-time fair queueing): each queue has the virtual time at which its next
//! request may start, and the queue with the earliest time is next. The time of a queue advances by how long its
//! requests held their seats. Over time, all busy queues therefore hold seats equally long. An idle queue does not save
//! up the time that it does not use.
//!
//! A queue takes memory only while requests wait in it, or hold seats that they got through it.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

/// The time that a request is expected to take, in nanoseconds. It counts until the real time is known.
const EXPECTED: u64 = Duration::from_millis(3).as_nanos() as u64;

/// The largest hand that one hash can deal.
const HAND: usize = 16;

/// How the requests of a level wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queuing {
    /// The number of queues.
    pub queues: NonZeroU32,
    /// The number of queues that each flow may use.
    pub hand: usize,
    /// The most requests in a queue.
    pub length: usize,
}

impl Queuing {
    /// Returns the queues of a flow, each once.
    fn deal(self, mut hash: u64) -> Vec<u32> {
        let size = self.hand.clamp(1, HAND).min(self.queues.get() as usize);
        // The hash selects one of the queues that are not dealt yet. `sorted` has those that are, in ascending order:
        // each that is not larger than the selected number shifts it by one.
        let (mut dealt, mut sorted) = (Vec::with_capacity(size), Vec::with_capacity(size));
        for left in (0..self.queues.get()).rev().take(size) {
            let others = u64::from(left) + 1;
            let mut queue = u32::try_from(hash % others).unwrap_or_default();
            hash /= others;
            for other in &sorted {
                queue += u32::from(*other <= queue);
            }
            let at = sorted.partition_point(|other| *other < queue);
            sorted.insert(at, queue);
            dealt.push(queue);
        }
        dealt
    }
}

/// The number of a queue, plus one.
pub type Number = NonZeroU32;

/// The position of a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    queue: Number,
    ticket: u64,
}

#[derive(Debug)]
struct QueuedRequest<W> {
    /// Later requests have larger ones.
    ticket: u64,
    /// The virtual time of its arrival: it must not start before.
    arrived: u64,
    waiter: W,
}

#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<QueuedRequest<W>>,
    /// Requests that got a seat through this queue and hold it.
    executing: usize,
    /// The virtual time at which the next request may start.
    start: u64,
}

impl<W> Queue<W> {
    /// Keeps a queue from saving up time that it did not use.
    fn bound(&mut self) {
        if let Some(first) = self.waiting.front() {
            self.start = self.start.max(first.arrived);
        }
    }
}

/// The queues of a level.
#[derive(Debug)]
pub struct Queues<W> {
    queuing: Option<Queuing>,
    queues: HashMap<Number, Queue<W>>,
    waiting: usize,
    tickets: u64,
    /// The virtual time: the start of the request that got a seat last.
    time: u64,
}

impl<W> Default for Queues<W> {
    fn default() -> Self {
        Self { queuing: None, queues: HashMap::new(), waiting: 0, tickets: 0, time: 0 }
    }
}

impl<W> Queues<W> {
    /// Sets how requests wait from now on. With `None`, no further requests may wait. Requests that wait already keep
    /// their positions.
    pub fn configure(&mut self, queuing: Option<Queuing>) {
        self.queuing = queuing;
    }

    /// Returns whether requests may wait.
    pub const fn may_wait(&self) -> bool {
        self.queuing.is_some()
    }

    /// Returns the number of requests that wait.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a request of a flow with this hash, and returns its position. Returns `None` if all queues of the flow's
    /// hand are full, or there are no queues.
    pub fn push(&mut self, hash: u64, waiter: W) -> Option<QueuePosition> {
        let queuing = self.queuing?;
        let hand = queuing.deal(hash);
        let length = |queue: &Number| self.queues.get(queue).map_or(0, |queue| queue.waiting.len());
        // Among queues of the same length, each is preferred in turn.
        let first = usize::try_from(self.tickets).unwrap_or_default() % hand.len();
        let rotated = hand[first..].iter().chain(&hand[..first]).filter_map(|queue| Number::new(queue + 1));
        let number = rotated.min_by_key(length)?;
        if length(&number) >= queuing.length {
            return None;
        }
        let (time, ticket) = (self.time, self.tickets);
        let empty = || Queue { waiting: VecDeque::new(), executing: 0, start: time };
        let queue = self.queues.entry(number).or_insert_with(empty);
        queue.waiting.push_back(QueuedRequest { ticket, arrived: time, waiter });
        queue.bound();
        self.tickets += 1;
        self.waiting += 1;
        Some(QueuePosition { queue: number, ticket })
    }

    /// Takes the next request out of its queue: it holds a seat from now on. `None` if none waits.
    pub fn next(&mut self) -> Option<(Number, W)> {
        let waiting = self.queues.iter_mut().filter(|(_, queue)| !queue.waiting.is_empty());
        let (number, queue) =
            waiting.min_by_key(|(_, queue)| (queue.start, queue.waiting.front().map(|first| first.ticket)))?;
        let entry = queue.waiting.pop_front()?;
        queue.executing += 1;
        self.time = self.time.max(queue.start);
        queue.start += EXPECTED;
        queue.bound();
        self.waiting -= 1;
        Some((*number, entry.waiter))
    }

    /// Records that a request which got its seat through a queue has given it back after this time.
    pub fn finished(&mut self, number: Number, took: Duration) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        queue.executing = queue.executing.saturating_sub(1);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / 2);
        queue.start = queue.start.saturating_add(took).saturating_sub(EXPECTED);
        queue.bound();
        self.forget_if_idle(number);
    }

    /// Removes a request that waits. `None` if it waits no longer.
    pub fn remove(&mut self, position: QueuePosition) -> Option<W> {
        let queue = self.queues.get_mut(&position.queue)?;
        let at = queue.waiting.binary_search_by_key(&position.ticket, |entry| entry.ticket).ok()?;
        let entry = queue.waiting.remove(at)?;
        queue.bound();
        self.waiting -= 1;
        self.forget_if_idle(position.queue);
        Some(entry.waiter)
    }

    /// Returns the numbers of the queues in use, in ascending order.
    pub fn in_use(&self) -> Vec<Number> {
        let mut numbers: Vec<Number> = self.queues.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the requests that wait in a queue, in order.
    pub fn waiting_in(&self, number: Number) -> impl Iterator<Item = &W> {
        self.queues.get(&number).into_iter().flat_map(|queue| queue.waiting.iter().map(|entry| &entry.waiter))
    }

    /// Returns the number of requests that got a seat through a queue and hold it.
    pub fn executing_from(&self, number: Number) -> usize {
        self.queues.get(&number).map_or(0, |queue| queue.executing)
    }

    /// Returns the virtual time at which the next request of a queue may start, in nanoseconds.
    pub fn start_of(&self, number: Number) -> u64 {
        self.queues.get(&number).map_or(0, |queue| queue.start)
    }

    /// Returns the time that the requests which wait in a queue are expected to take, in nanoseconds.
    pub fn expected_of(&self, number: Number) -> u64 {
        self.queues.get(&number).map_or(0, |queue| queue.waiting.len() as u64 * EXPECTED)
    }

    fn forget_if_idle(&mut self, number: Number) {
        if self.queues.get(&number).is_some_and(|queue| queue.waiting.is_empty() && queue.executing == 0) {
            self.queues.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    fn queuing(queues: u32, hand: usize, length: usize) -> Queuing {
        Queuing { queues: NonZeroU32::new(queues).unwrap(), hand, length }
    }

    fn queues<W>(of: Queuing) -> Queues<W> {
        let mut queues = Queues::default();
        queues.configure(Some(of));
        queues
    }

    #[test]
    fn hands_have_different_queues_and_reach_all() {
        let of = queuing(8, 3, 1);
        let mut hands = HashSet::new();
        for hash in 0..8 * 7 * 6 {
            let hand = of.deal(hash);
            assert_eq!(hand.iter().collect::<HashSet<_>>().len(), 3, "{hand:?}");
            assert!(hand.iter().all(|queue| *queue < 8), "{hand:?}");
            hands.insert(hand);
        }
        assert_eq!(hands.len(), 8 * 7 * 6, "every hand is dealt by one hash");
        assert_eq!(queuing(2, 5, 1).deal(7).len(), 2, "no more queues than there are");
        assert_eq!(queuing(1, 1, 1).deal(u64::MAX), [0]);
    }

    #[test]
    fn a_queue_is_in_order_and_full_at_its_length() {
        let mut queues = queues(queuing(1, 1, 3));
        let positions: Vec<_> = (0..3).map(|name| queues.push(0, name).unwrap()).collect();
        assert_eq!((queues.push(0, 3), queues.waiting()), (None, 3));
        assert_eq!(queues.remove(positions[1]), Some(1));
        assert_eq!(queues.remove(positions[1]), None);
        assert!(queues.push(0, 4).is_some());
        let order: Vec<_> = std::iter::from_fn(|| queues.next()).map(|(_, name)| name).collect();
        assert_eq!(order, [0, 2, 4]);
        assert_eq!(queues.remove(positions[0]), None, "it holds a seat");
        (0..3).for_each(|_| queues.finished(Number::MIN, Duration::ZERO));
        assert!(queues.queues.is_empty(), "queues that nobody uses are gone");
    }

    #[test]
    fn a_flow_with_more_requests_gets_no_more_turns() {
        // Flow 0 has a hundred requests before flow 1 comes with three.
        let mut queues = queues(queuing(2, 1, 1_000));
        (0..100).for_each(|_| assert!(queues.push(0, 0).is_some()));
        (0..3).for_each(|_| assert!(queues.push(1, 1).is_some()));
        let order: Vec<_> = (0..8).filter_map(|_| queues.next()).map(|(_, flow)| flow).collect();
        assert_eq!(order.iter().filter(|flow| **flow == 1).count(), 3, "{order:?}");
    }

    #[test]
    fn queues_share_time_and_not_the_number_of_requests() {
        // Requests of flow 0 take ten times as long as those of flow 1; both always have something to do.
        let mut queues = queues(queuing(2, 1, 1_000));
        for _ in 0..1_000 {
            assert!(queues.push(0, 0).is_some() && queues.push(1, 1).is_some());
        }
        let (mut done, mut time) = ([0_u32; 2], 0);
        while time < 1_500 {
            let (number, flow) = queues.next().unwrap();
            let took = [10, 1][flow];
            time += took;
            done[flow] += 1;
            queues.finished(number, Duration::from_millis(took));
        }
        let ratio = f64::from(done[1]) / f64::from(done[0]);
        assert!((8.0..12.0).contains(&ratio), "{done:?}");
    }

    #[test]
    fn an_idle_flow_saves_nothing_up() {
        let mut queues = queues(queuing(2, 1, 1_000));
        for _ in 0..1_000 {
            queues.push(0, 0);
        }
        for _ in 0..500 {
            let (number, _) = queues.next().unwrap();
            queues.finished(number, Duration::from_millis(10));
        }
        (0..200).for_each(|_| assert!(queues.push(1, 1).is_some()));
        let of_idle = (0..100)
            .filter(|_| {
                let (number, flow) = queues.next().unwrap();
                queues.finished(number, Duration::from_millis(10));
                flow == 1
            })
            .count();
        assert!((45..=55).contains(&of_idle), "{of_idle} of 100");
    }

    /// Many flows, random arrivals, service times and departures, in simulated time: no request waits for ever.
    #[test]
    fn no_flow_starves() {
        for seed in 0..50 {
            let mut random = StdRng::seed_from_u64(seed);
            let of = queuing(random.random_range(1..20), random.random_range(1..6), random.random_range(1..30));
            let (mut queues, mut positions) = (queues(of), Vec::new());
            let (mut executing, mut served, mut pushed, mut gone) = (Vec::new(), 0, 0, 0);
            for _ in 0..2_000 {
                match random.random_range(0..10) {
                    0..=3 => {
                        let flow = random.random_range(0..10_u64);
                        if let Some(position) = queues.push(flow.wrapping_mul(0x9e37_79b9_7f4a_7c15), pushed) {
                            positions.push(position);
                            pushed += 1;
                        }
                    }
                    4 if !positions.is_empty() => {
                        let position = positions.swap_remove(random.random_range(0..positions.len()));
                        gone += usize::from(queues.remove(position).is_some());
                    }
                    5..=7 if executing.len() < 4 => {
                        if let Some((number, _)) = queues.next() {
                            executing.push(number);
                            served += 1;
                        }
                    }
                    _ if !executing.is_empty() => {
                        let number = executing.swap_remove(random.random_range(0..executing.len()));
                        queues.finished(number, Duration::from_micros(random.random_range(0..20_000)));
                    }
                    _ => {}
                }
                assert_eq!(queues.waiting(), pushed - served - gone, "seed {seed}");
                let counted: usize = queues.queues.values().map(|queue| queue.waiting.len()).sum();
                assert_eq!(counted, queues.waiting(), "seed {seed}");
                let ordered = |queue: &Queue<usize>| queue.waiting.iter().is_sorted_by_key(|entry| entry.ticket);
                assert!(queues.queues.values().all(ordered), "seed {seed}");
                assert!(queues.queues.values().all(|queue| queue.waiting.len() <= of.length), "seed {seed}");
            }
            while let Some((number, _)) = queues.next() {
                queues.finished(number, Duration::ZERO);
            }
            executing.drain(..).for_each(|number| queues.finished(number, Duration::ZERO));
            assert!(queues.queues.is_empty() && queues.waiting() == 0, "seed {seed}");
        }
    }
}
