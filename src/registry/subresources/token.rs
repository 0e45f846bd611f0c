//! `token`: issues a token for a service account (TokenRequest of `authentication.k8s.io`).

use flotilla_proto::value::Value;

use super::{Acted, Call, Pending};
use crate::access::tokens::request::{check_account, fulfil};
use crate::access::tokens::{Account, StoreObjects};
use crate::registry::{Registry, now};
use crate::tables::{Target, stored_value};
use crate::wall_clock;

/// The audit annotation with the id of the token.
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";

/// Fills in the metadata of the account in a request that does not state it, for validating policies and webhooks.
pub(super) fn complete(registry: &Registry, target: Target<'_>, request: &mut Value) {
    let Some(account) = registry.tables.current(target.served, target.namespace, target.name) else { return };
    let uid = stored_value(&account).map(|account| account.str_at(&["metadata", "uid"]).to_owned()).unwrap_or_default();
    for (member, value) in [("name", target.name), ("namespace", target.namespace), ("uid", &*uid)] {
        if request.str_at(&["metadata", member]).is_empty() {
            request.set_at(&["metadata", member], value);
        }
    }
    request.set_at(&["metadata", "creationTimestamp"], now().to_string());
}

/// Serves POST to a service account's `token`.
pub(super) fn issue(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let Call { registry, tokens, target, mut body, caller, .. } = call;
        check_account(target.name, &body)?;
        let object = registry.tables.get(target.served, target.namespace, target.name, None).await?;
        let account = Account {
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
            uid: stored_value(&object)?.str_at(&["metadata", "uid"]).to_owned(),
        };
        let objects = StoreObjects::new(&registry.tables.store);
        let audiences = tokens.authenticator.audiences();
        let fulfilled = fulfil(tokens.issuer, &objects, audiences, &account, &mut body, wall_clock::now())?;
        caller.notices.warnings.extend(fulfilled.warning);
        caller.notices.annotations.push((ISSUED.to_owned(), fulfilled.credential_id));
        Ok(Acted::Document(body))
    })
}
