//! Names sets of fields that an endpoint does not write. A request through it therefore does not become their owner.

/// Paths of fields, each with everything below it.
pub type FieldPaths = &'static [&'static [&'static str]];

/// The status.
pub const STATUS: FieldPaths = &[&["status"]];
/// The spec.
pub const SPEC: FieldPaths = &[&["spec"]];
/// The spec and all metadata.
pub const SPEC_AND_METADATA: FieldPaths = &[&["spec"], &["metadata"]];
