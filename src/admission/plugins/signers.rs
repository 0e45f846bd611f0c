//! The permissions on signers, by which plugins decide about certificate signing requests.

use flotilla_proto::value::Value;

use crate::access::{Attributes, ResourceAttributes};
use crate::admission::BuiltInAttributes;
use crate::field::quote;
use crate::status::ApiResult;

/// Returns `Ok` if the user has the verb on the signer that the stored request names, or on all signers of its domain.
pub(super) fn check(write: &BuiltInAttributes<'_>, request: &Value, verb: &str) -> ApiResult<()> {
    let signer = write.old.unwrap_or(request).str_at(&["spec", "signerName"]);
    let domain = signer.split('/').next().unwrap_or("");
    let may = |name: &str| {
        let of = ResourceAttributes {
            verb,
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..ResourceAttributes::default()
        };
        let caller = write.caller;
        write.admission.tables.authorizer.allows(caller.identity.user(), &Attributes::Resource(of), &caller.inquiry)
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {}", quote(signer));
    Err(write.refuse(request, &why))
}
