use flotilla_cluster::Options;

use super::*;
use crate::config::PortRange;
use crate::kinds::core::service::allocation::{Allocations, Held};
use crate::scratch::Scratch;
use crate::tables::Tables;

const RANGE: PortRange = PortRange { first: 30_000, last: 30_001 };
const OWNER: Owner<'static> = Owner { namespace: "default", name: "web" };

async fn open(dir: &Scratch) -> Store {
    Store::open(Options::new(dir.join("store"))).await.unwrap()
}

/// Claims a certain port, or any.
async fn claim(registry: &Registry, wanted: Option<u16>) -> ApiResult<Taken> {
    let decide = move |_: &mut Value, taker: &mut Taker<'_>| {
        let refused = |refusal| ApiError::bad_request(format!("{refusal}"));
        taker.take_port(wanted.map(i64::from)).map(|_| Held::default()).map_err(refused)
    };
    registry.claim_ports(OWNER, &mut Value::Null, &decide).await
}

fn all(store: &Store) -> Vec<Claim> {
    current(store).map_or_else(Vec::new, |object| claims::of(&object).unwrap())
}

/// Waits until nothing is claimed any more.
async fn until_none(store: &Store) {
    while !all(store).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Claims ports as another member does.
async fn claim_elsewhere(store: &Store, id: ClaimId, ports: &[u16]) {
    let mut claims = all(store);
    claims.push(Claim { id, service: "default/other".into(), ports: ports.to_vec() });
    assert!(put(store, current(store).map(|object| object.revision()), &claims).await.unwrap());
}

#[actix_web::test]
async fn ports_are_claimed_until_their_write_has_ended() {
    let dir = Scratch::new();
    let store = open(&dir).await;
    let registry = Registry::new(Tables::new(store.clone()), RANGE);
    let (one, other) = (claim(&registry, Some(30_001)).await.unwrap(), claim(&registry, None).await.unwrap());
    assert_eq!((one.port_numbers(), other.port_numbers()), (vec![30_001], vec![30_000]));
    assert_eq!(all(&store).iter().map(|claim| claim.ports[0]).collect::<Vec<_>>(), [30_001, 30_000]);
    assert!(all(&store).iter().all(|claim| claim.service == "default/web"));
    super::end(one.claimed);
    super::end(other.claimed);
    until_none(&store).await;
    store.shutdown().await;
}

#[actix_web::test]
async fn of_two_members_one_gets_a_port_and_the_other_waits_for_what_becomes_of_it() {
    let dir = Scratch::new();
    let store = open(&dir).await;
    let [one, other] = [(); 2].map(|()| Registry::new(Tables::new(store.clone()), RANGE));
    let claim_for_a_while = async |registry: &Registry| {
        let taken = claim(registry, Some(30_000)).await?;
        assert_eq!(taken.port_numbers(), [30_000]);
        // The service is not written after all.
        super::end(taken.claimed);
        ApiResult::Ok(())
    };
    let (mut rounds, mut attempts) = (0, 1..=100);
    while rounds < 20 {
        assert!(attempts.next().is_some(), "only {rounds} times both got the port");
        let began = Instant::now();
        let claimed = tokio::join!(claim_for_a_while(&one), claim_for_a_while(&other));
        let both = claimed.0.is_ok() && claimed.1.is_ok();
        // A machine may stop for as long as a claim waits for another one: such a round does not count.
        assert!(both || began.elapsed() >= limits::PORT_CLAIM_WAIT, "{claimed:?}");
        rounds += u32::from(both);
        until_none(&store).await;
    }
    store.shutdown().await;
}

#[actix_web::test]
async fn ports_claimed_by_others_are_not_given() {
    let dir = Scratch::new();
    let store = open(&dir).await;
    let registry = Registry::new(Tables::new(store.clone()), RANGE);
    claim_elsewhere(&store, 7, &[30_001]).await;
    let refused = claim(&registry, Some(30_001)).await.unwrap_err();
    assert_eq!(refused.message, "provided port is already allocated");
    let any = claim(&registry, None).await.unwrap();
    assert_eq!(any.port_numbers(), [30_000]);
    assert_eq!(claim(&registry, None).await.unwrap_err().message, "range is full");

    // Void claims go with the next write.
    registry.node_ports.claiming.sight.lock().end(7, Instant::now());
    let given = claim(&registry, Some(30_001)).await.unwrap();
    assert_eq!(given.port_numbers(), [30_001]);
    assert!(all(&store).iter().all(|claim| claim.id != 7));
    store.shutdown().await;
}

#[actix_web::test]
async fn a_claim_that_another_write_overtook_is_decided_again() {
    let dir = Scratch::new();
    let store = open(&dir).await;
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    const TIMES: u32 = 10;
    let (others, given) = (store.clone(), std::rc::Rc::new(std::cell::Cell::new(0)));
    let seen = given.clone();
    let outrunning = actix_web::rt::spawn(async move {
        let mut id = 1;
        loop {
            let before = seen.get();
            if before == TIMES {
                return;
            }
            let claims = [Claim { id, service: String::new(), ports: vec![30_000] }];
            id += u64::from(put(&others, current(&others).map(|object| object.revision()), &claims).await.unwrap());
            // After ten writes it lets a claim succeed, or this task might always win.
            while id % 10 == 0 && seen.get() == before {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    for _ in 0..TIMES {
        let taken = claim(&registry, None).await.unwrap();
        assert_ne!(taken.port_numbers(), [30_000]);
        given.set(given.get() + 1);
    }
    outrunning.await.unwrap();
    store.shutdown().await;
}

#[test]
fn a_claim_is_not_relied_on_once_others_may_consider_it_void() {
    let before = Duration::from_secs(1_000);
    assert!(lasts(before, Duration::from_secs(1_000)) && lasts(before, Duration::from_secs(1_030)));
    assert!(!lasts(before, Duration::from_secs(1_031)));
}
