//! Plugins that decide about certificate signing requests: who may create, approve and sign them.

use flotilla_proto::value::Value;

use super::Request;
use crate::access::{Attributes, ResourceAttributes};
use crate::field::quote;
use crate::kinds::certificate;
use crate::pki::MASTERS;
use crate::status::ApiResult;

/// Refuses requests for client certificates in the group `system:masters` (CertificateSubjectRestriction).
pub(super) fn subject(request: &Request<'_>, object: &Value, old: Option<&Value>) -> ApiResult<()> {
    request.by("CertificateSubjectRestriction", || {
        if old.is_none() && certificate::asks_for_masters(object) {
            let (signer, group) = (object.str_at(&["spec", "signerName"]), MASTERS);
            return Err(request.refuse(object, &format!("use of {signer} signer with {group} group is not allowed")));
        }
        Ok(())
    })
}

/// Writes the requesting user into a new certificate signing request.
pub(super) fn requester(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    let user = &request.caller.user;
    let groups: Vec<String> = user.groups.iter().map(ToString::to_string).collect();
    let extra = user.extra.iter().map(|(key, values)| {
        let values: Vec<Value> = values.iter().map(|value| value.as_str().into()).collect();
        (key.as_str(), Value::from(values))
    });
    let extra = Value::Object(extra.collect());
    certificate::set_requester(object, &user.name, &user.uid, &groups, Some(extra));
    Ok(())
}

/// Refuses an approval unless the user has the verb `approve` on the signer (CertificateApproval).
pub(super) fn approval(request: &Request<'_>, object: &Value, old: &Value) -> ApiResult<()> {
    request.by("CertificateApproval", || permitted(request, object, old, "approve"))
}

/// Refuses a certificate or a condition unless the user has the verb `sign` on the signer (CertificateSigning).
pub(super) fn signing(request: &Request<'_>, object: &Value, old: &Value) -> ApiResult<()> {
    request.by("CertificateSigning", || {
        let signed = |of: &Value| (of.at(&["status", "certificate"]).clone(), of.at(&["status", "conditions"]).clone());
        if signed(object) == signed(old) { Ok(()) } else { permitted(request, object, old, "sign") }
    })
}

/// Returns `Ok` if the user has the verb on the signer that the stored request names, or on all signers of its domain.
fn permitted(request: &Request<'_>, object: &Value, old: &Value, verb: &str) -> ApiResult<()> {
    let signer = old.str_at(&["spec", "signerName"]);
    let domain = signer.split('/').next().unwrap_or("");
    let may = |name: &str| {
        let of = ResourceAttributes {
            verb,
            group: "certificates.k8s.io",
            resource: "signers",
            name,
            ..ResourceAttributes::default()
        };
        request.registry.authorizer.allows(&request.caller.user, &Attributes::Resource(of))
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {}", quote(signer));
    Err(request.refuse(object, &why))
}
