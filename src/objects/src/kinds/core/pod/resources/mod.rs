//! CPU, memory and other resources of pods and containers.
//!
//! `requirements` checks requests and limits, `quantities` computes with whole lists of them, and `pod_level` sets the
//! defaults of a pod as a whole and derives its quality-of-service class.

pub mod pod_level;
pub mod quantities;
pub mod requirements;
