use std::sync::Arc;

use flotilla_cluster::{Options, Store};
use flotilla_proto::value;
use flotilla_proto::{conform, value::Value};

use super::*;
use crate::access::User;
use crate::config::PortRange;
use crate::registry::Incoming;
use crate::request::{Basis, DeleteOptions, WriteOptions};
use crate::scratch::Scratch;
use crate::status::ApiError;
use crate::tables::Tables;

fn caller() -> Caller {
    Caller::new(Arc::new(User::default()), "test")
}

/// An attempt based on a state of the object that is no longer current.
#[actix_web::test]
async fn a_write_with_an_unknown_outcome_is_not_tried_again() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
    let target = Target::resource(&served, "");
    let mut value: Value = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seen"}});
    conform::conform(served.of(), &mut value).unwrap();
    let incoming = Incoming { value, ..Incoming::default() };
    registry.create(target, incoming, &WriteOptions::default(), &mut caller()).await.unwrap();
    let seen = registry.tables.current(&served, "", "seen").unwrap();
    let target = Target { name: "seen", ..target };
    registry.delete(target, &DeleteOptions::default(), &mut caller()).await.unwrap();
    assert_ne!(registry.tables.current(&served, "", "seen").map(|now| now.revision()), Some(seen.revision()));

    type Tried = ApiResult<Option<bool>>;
    let is_final = async |tried: Tried| {
        let mut caller = Caller { basis: Basis::Unconfirmed, ..caller() };
        registry.is_final(target, &seen, &tried, |stored| *stored, &mut caller).await.unwrap()
    };
    assert!(is_final(Ok(Some(true))).await, "the store has proved it");
    assert!(!is_final(Ok(None)).await, "there is a newer state");
    assert!(!is_final(Ok(Some(false))).await, "a change without effect was decided by an old state");
    assert!(!is_final(Err(ApiError::bad_request("refused"))).await, "so was a refusal");
    let unknown = ApiError::new(504, "Timeout", "it may have been made");
    assert!(is_final(Err(unknown)).await, "a second attempt could refuse the write that was made");
    store.shutdown().await;
}
