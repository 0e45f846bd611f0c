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
    for _ in 0..20 {
        let (mut first, mut second) = (Box::pin(claim(&one, Some(30_000))), Box::pin(claim(&other, Some(30_000))));
        let (taken, last) = tokio::select! {
            taken = &mut first => (taken.unwrap(), second),
            taken = &mut second => (taken.unwrap(), first),
        };
        // The service is not written after all.
        super::end(taken.claimed);
        drop(taken.ports);
        let last = last.await.unwrap();
        assert_eq!(last.port_numbers(), [30_000]);
        super::end(last.claimed);
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
    let (others, stop) = (store.clone(), std::rc::Rc::new(std::cell::Cell::new(false)));
    let stopped = stop.clone();
    let outrunning = actix_web::rt::spawn(async move {
        let mut id = 1;
        while !stopped.get() {
            let claims = [Claim { id, service: String::new(), ports: vec![30_000] }];
            id += u64::from(put(&others, current(&others).map(|object| object.revision()), &claims).await.unwrap());
            if id % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await; // or this task might always win
            }
        }
    });
    for _ in 0..10 {
        let taken = claim(&registry, None).await.unwrap();
        assert_ne!(taken.port_numbers(), [30_000]);
    }
    stop.set(true);
    outrunning.await.unwrap();
    store.shutdown().await;
}

#[test]
fn a_claim_is_not_relied_on_once_others_may_consider_it_void() {
    let before = Duration::from_secs(1_000);
    assert!(lasts(before, Duration::from_secs(1_000)) && lasts(before, Duration::from_secs(1_030)));
    assert!(!lasts(before, Duration::from_secs(1_031)));
}
