//! CertificateApproval: refuses an approval unless the user has the verb `approve` on the signer.

use flotilla_proto::value::Value;

use super::signers;
use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("CertificateApproval", Presence::On).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_approval = part.name() == ("certificates.k8s.io", "certificatesigningrequests", "approval");
    (is_approval && operation == Operation::Update).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, request: &Value) -> ApiResult<()> {
    signers::check(write, request, "approve")
}
