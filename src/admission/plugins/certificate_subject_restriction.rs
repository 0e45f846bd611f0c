//! CertificateSubjectRestriction: refuses requests for client certificates in the group `system:masters`.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::certificates::certificate;
use crate::rules::names::MASTERS;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("CertificateSubjectRestriction", Presence::On).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_request = part.name() == ("certificates.k8s.io", "certificatesigningrequests", "");
    (is_request && operation == Operation::Create).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, request: &Value) -> ApiResult<()> {
    if !certificate::asks_for_masters(request) {
        return Ok(());
    }
    let signer = request.str_at(&["spec", "signerName"]);
    Err(write.refuse(request, &format!("use of {signer} signer with {MASTERS} group is not allowed")))
}
