//! `binding`: a scheduler assigns a pod to a node.

use flotilla_proto::value::Value;

use super::{Acted, Call, Pending, core};
use crate::field::Errors;
use crate::kinds::admission;
use crate::kinds::core::pod::subresources::binding;
use crate::registry::now;
use crate::rules::names;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_value;

/// Serves POST to `bindings`, where the document names the pod.
pub(super) fn bind_by_name(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let name = call.body.str_at(&["metadata", "name"]).to_owned();
        assign(call, &name).await
    })
}

/// Serves POST to a pod's `binding`.
pub(super) fn bind(mut call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let name = call.target.name.to_owned();
        if call.body.str_at(&["metadata", "name"]) != name {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        copy_topology(&mut call)?;
        assign(call, &name).await
    })
}

fn copy_topology(call: &mut Call<'_>) -> ApiResult<()> {
    let node = call.body.str_at(&["target", "name"]);
    let Some(node) = call.registry.tables.current(&*core(call.registry, "nodes")?, "", node) else { return Ok(()) };
    admission::copy_topology_labels(&mut call.body, &stored_value(&node)?);
    Ok(())
}

async fn assign(call: Call<'_>, name: &str) -> ApiResult<Acted> {
    let Call { registry, target, body, options, .. } = call;
    let mut errors = Errors::default();
    binding::validate(&body, &mut errors);
    if !errors.is_empty() {
        return Err(ApiError::unknown(errors.joined()));
    }
    names::check_parameter(name)?;
    let pods = core(registry, "pods")?;
    let target = super::Target::object(&pods, target.namespace, name);
    let stated = |field: &str| Some(body.str_at(&["metadata", field])).filter(|text| !text.is_empty());
    let (uid, revision) = (stated("uid"), stated("resourceVersion"));
    let assign = |pod: &mut Value| {
        binding::assign(pod, &body, now()).map_err(|why| ApiError::conflict("", "pods/binding", name, &why))
    };
    registry.tables.revise(target, uid, revision, options.dry_run, &assign).await?;
    Ok(Acted::Done)
}
