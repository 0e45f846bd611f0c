//! `portforward`: connections to ports of a pod.

use super::exec::upgrade_to_kubelet;
use super::{Connect, Connected, Pending};
use crate::registry::stored_value;

/// GET or POST of a pod's `portforward`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, upgrade, .. } = request;
        let pod = stored_value(&*registry.get(target.served, target.namespace, target.name, None).await?)?;
        Err(upgrade_to_kubelet(registry, target, &pod, upgrade).await)
    })
}
