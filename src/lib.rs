//! Flotilla: a Kubernetes API server that needs no etcd.
//!
//! `ARCHITECTURE.md` tells what a request meets on its way through the modules.

pub mod access;
pub mod administration;
pub mod admission;
pub mod aggregation;
pub mod ahead;
pub mod backup;
pub mod boot;
pub mod bootstrap;
pub mod config;
pub mod controllers;
pub mod custom;
pub mod discovery;
pub mod etcd;
pub mod expressions;
pub mod field;
pub mod fieldmanager;
pub mod follow;
pub mod gateway;
pub mod given;
pub mod kinds;
pub mod kube_apiserver;
pub mod large_pages;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod outbound;
pub mod patch;
pub mod pki;
pub mod printing;
pub mod registry;
#[cfg(test)]
mod scratch;
pub mod status;
pub mod streams;
pub mod transport;
pub mod unreadable;
pub mod version;
pub mod watch;
pub mod watchdog;
pub mod webhooks;
