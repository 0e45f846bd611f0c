//! Names sets of fields that an endpoint does not write. A request through it therefore does not become their owner.

/// Paths of fields, each with everything below it.
pub type Paths = &'static [&'static [&'static str]];

/// The status.
pub const STATUS: Paths = &[&["status"]];
/// The spec.
pub const SPEC: Paths = &[&["spec"]];
/// The spec and all metadata.
pub const SPEC_AND_METADATA: Paths = &[&["spec"], &["metadata"]];
