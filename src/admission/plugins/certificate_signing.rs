//! CertificateSigning: refuses a certificate or a condition unless the user has the verb `sign` on the signer.

use flotilla_proto::value::Value;

use super::signers;
use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("CertificateSigning", Presence::On).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_status = part.name() == ("certificates.k8s.io", "certificatesigningrequests", "status");
    (is_status && operation == Operation::Update).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, request: &Value) -> ApiResult<()> {
    let signed = |of: &Value| (of.at(&["status", "certificate"]).clone(), of.at(&["status", "conditions"]).clone());
    if write.old.is_some_and(|old| signed(request) == signed(old)) {
        return Ok(());
    }
    signers::check(write, request, "sign")
}
