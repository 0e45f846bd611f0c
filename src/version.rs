//! The version of Kubernetes that this server implements, and the version of its build.

/// Major version of the Kubernetes API.
pub const MAJOR: &str = "1";
/// Minor version of the Kubernetes API.
pub const MINOR: &str = "36";
/// The release of Kubernetes, without the suffix of this server.
pub const RELEASE: &str = "v1.36.3";
/// The version that clients see: that of Kubernetes, and after the plus sign that of the server itself.
pub const GIT_VERSION: &str = concat!("v1.36.3+flotilla.", env!("CARGO_PKG_VERSION"));
