//! OpenAPI v2 and v3 documents, made from the catalogue and from schemas of custom resources.
//!
//! Paths are described once ([`paths`], [`roots`]) and written in either version. Schemas are built in the form of v3
//! and reduced for v2. Documents are built on request; only their hashes and the most recent documents are kept.

mod converted;
mod custom;
mod document;
mod operations;
mod parameters;
mod paths;
mod prose;
mod protobuf;
mod remote;
mod roots;
mod schemas;
mod serve;
mod v2;
mod v3;
mod write;

use flotilla_proto::catalogue;
use flotilla_proto::schema::Text;
use flotilla_proto::value::Value;

pub use converted::convert;
pub use custom::Custom;
pub use remote::{Remote, Swagger};
pub use serve::OpenApi;

/// Prefix of the published names of types of `meta/v1`.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/// The schema of `/version`.
const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

/// Returns the published name of a kind's schema: the name in the catalogue, or for a custom kind its reversed group,
/// version and name.
fn definition_name((group, version, kind): &(Text, Text, Text)) -> String {
    if let Some(of) = catalogue::kind(group, version, kind) {
        return of.of.openapi.to_string();
    }
    let group: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", group.join("."))
}

fn texts(list: &[Text]) -> Value {
    Value::Array(list.iter().map(|text| Value::from(&**text)).collect())
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
