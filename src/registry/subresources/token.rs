//! `token`: a token for a service account (TokenRequest of `authentication.k8s.io`).

use super::{Acted, Call, Pending};
use crate::access::tokens::request::fulfil;
use crate::access::tokens::{Account, StoreObjects};
use crate::registry::stored_value;
use crate::wall_clock;

/// POST to a service account's `token`.
pub(super) fn issue(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let Call { registry, powers, target, mut body, .. } = call;
        let object = registry.get(target.served, target.namespace, target.name, None).await?;
        let account = Account {
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
            uid: stored_value(&object)?.str_at(&["metadata", "uid"]).to_owned(),
        };
        let objects = StoreObjects::new(&registry.store);
        let audiences = powers.authenticator.audiences();
        fulfil(powers.issuer, &objects, audiences, &account, &mut body, wall_clock::now())?;
        Ok(Acted::Document(body))
    })
}
