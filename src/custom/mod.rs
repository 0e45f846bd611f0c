//! Objects of custom resources: what their definition says of them, checked.
//!
//! Schemas are [`flotilla_proto::structural`]; here is what the reference's validation makes of them, with the same
//! errors in the same order and words. Where it visits members in random order, members of the schema come sorted by
//! name and members of the object in their own order.
//!
//! # What a write does
//!
//! Decode, [`prune`](flotilla_proto::structural::prune), [`drop_nulls`](flotilla_proto::structural::drop_nulls),
//! [`coerce`](coerce::coerce) embedded objects, [`default`](flotilla_proto::structural::default()), then check
//! `metadata` as of any object and [`validate::validate`], [`ratchet::validate_update`] or
//! [`ratchet::validate_status_update`]. The outcome of an apply is not decoded: it is defaulted and checked only.

pub mod check;
pub mod coerce;
pub mod correlate;
pub mod embedded;
pub mod format;
mod format_text;
pub mod lists;
mod number;
pub mod ratchet;
pub mod validate;

#[cfg(test)]
mod tests;
