//! Black-box tests: they use the program only by its flags, signals, files and TLS port.
//!
//! `cargo test --workspace --test black_box`. Each test has its own server and data directory.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests and their stand-ins may block")]

mod abac;
mod access;
mod aggregation;
mod alerts;
mod asked;
mod audit;
mod audit_webhook;
mod backup;
mod bookmarks;
mod browsers;
mod cluster;
mod configuration;
mod console;
mod conversion;
mod crash;
mod custom;
mod damage;

mod deployed;
mod details;
mod disk;
mod dividing;
mod documented;
mod drain;
mod egress;
mod encryption;
mod ends;
mod expiring;
mod fairness;
mod farewell;
mod floods;
mod following;
mod found;
mod growing;
mod heads;
mod hostile;
mod images;
mod in_place;
mod joining;
mod lifecycle;
mod metrics;
mod moving;
mod node_ports;
mod numbers;
mod openid;
mod operating;
mod overview;
mod paging;
mod plugins;
mod policies;
mod preferring;
mod program;
mod refusals;
mod removing;
mod restrictions;
mod resume;
mod round_trips;
mod rules;
mod salvage;
mod server_names;
mod slow;
mod stalled;
mod starting;
mod streams;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other test programs use the rest")]
mod support;
mod texts;
mod timeouts;
mod together;
mod unreadable;
mod upkeep;
mod verbs;
mod versions;
mod webhook_users;
mod webhooks;
mod whole_way;
mod worst_case;
