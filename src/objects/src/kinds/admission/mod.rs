//! The pure half of admission: the effect on an object of each plugin that is on by default. The functions take the
//! object and everything that was looked up for them. `Err` is the reason of a refusal, the text that follows `... is
//! forbidden: `.
//!
//! [`crate::admission::chain`] has the order in which they run.

mod classes;
mod limits;
pub mod node_restriction;
mod nodes;
pub mod pod_security;
mod priority;
pub mod quota;
mod runtime_class;
mod service_account;
mod tolerations;

pub use classes::{default_ingress_class, default_storage_class, needs_ingress_class, needs_storage_class, protect};
pub use limits::{check_claim_limits, check_pod_limits, set_default_resources};
pub use nodes::{
    TOPOLOGY_LABELS, copy_topology_labels, features_for_update, refuse_resize, refuse_undeclared, taint_new_node,
};
pub use priority::{check_default_class, keep_priority, set_priority};
pub use runtime_class::{check_overhead, set_runtime_class};
pub use service_account::{
    check_account, check_ephemeral_containers, check_mirror_pod, failed_look_up, is_mirror_pod, missing_account,
    set_service_account,
};
pub use tolerations::{LostNodes, tolerate_lost_nodes};

#[cfg(test)]
mod admission_tests;
