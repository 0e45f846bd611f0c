//! `eviction`: deletes a pod unless disruption budgets forbid it (Kubernetes documentation, "API-initiated Eviction").

use flotilla_proto::value::Value;

use super::{Acted, Call, Pending};
use crate::field::{Errors, Path};
use crate::kinds::core::pod::subresources::eviction::{self, EvictionDecision};
use crate::limits;
use crate::registry::{Registry, now};
use crate::request::DeleteOptions;
use crate::request::query::Query;
use crate::request::unsafe_deletion::OPTION;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};

/// Serves POST to a pod's `eviction`.
pub(super) fn evict(call: Call<'_>) -> Pending<'_, Acted> {
    Box::pin(async move {
        let Call { registry, target, body, options, caller, .. } = call;
        if body.str_at(&["metadata", "name"]) != target.name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        refuse_unsafe(&body, target.name)?;
        let target = target.with_subresource("");
        let delete = match delete_options(&body, options.dry_run) {
            Err(error) if error.code == 422 => {
                // A missing pod is reported before wrong options, since the deletion finds the pod before it checks
                // them.
                registry.tables.get(target.served, target.namespace, target.name, None).await?;
                return Err(error);
            }
            read => read?,
        };
        let Some(pod) = delete_if_free(registry, target, &delete, caller).await? else { return Ok(Acted::Done) };
        let unready = ask_budget(registry, target, &pod, delete.dry_run).await?;
        let unready = unready.filter(|_| delete.resource_version.is_none());
        let mut delete = delete;
        if unready.is_some() {
            delete.resource_version = Some(pod.str_at(&["metadata", "resourceVersion"]).to_owned());
        }
        match (mark_and_delete(registry, target, delete, caller).await, unready) {
            (Err(error), Some(budget)) if error.reason == "Conflict" => Err(eviction::still_processed(&budget)),
            (deleted, _) => deleted.map(|()| Acted::Done),
        }
    })
}

/// Refuses the option that removes objects which cannot be decoded: such a pod cannot be evicted.
fn refuse_unsafe(body: &Value, name: &str) -> ApiResult<()> {
    if !body.is_true_at(&["deleteOptions", OPTION]) {
        return Ok(());
    }
    let mut errors = Errors::default();
    let why = "can not be set for pod eviction, try after removing the option";
    errors.invalid(&Path::root("deleteOptions").child(OPTION), &true.into(), why);
    Err(ApiError::invalid("policy", "Eviction", name, &errors.0))
}

/// Returns the options of the deletion: those of the document, with `dryRun` if the request states it.
fn delete_options(body: &Value, dry_run: bool) -> ApiResult<DeleteOptions> {
    let stated = body.at(&["deleteOptions"]);
    let own = stated.list_at(&["dryRun"]);
    let agrees = match own {
        [] => true,
        [one] => one.as_str() == Some("All"),
        _ => false,
    };
    if dry_run && !agrees {
        let own: Vec<&str> = own.iter().filter_map(Value::as_str).collect();
        let why = format!("Non-matching dry-run options in request and content: [All] and [{}]", own.join(" "));
        return Err(ApiError::unknown(&why));
    }
    let mut options = match stated {
        Value::Null => DeleteOptions::default(),
        stated => DeleteOptions::read(&Query::default(), Some(stated))?,
    };
    options.dry_run |= dry_run;
    options.is_decided = true; // policies and webhooks decided about the eviction
    Ok(options)
}

/// Deletes a pod that no budget protects and returns `None`. Otherwise returns the pod as it was read.
async fn delete_if_free(
    registry: &Registry,
    target: Target<'_>,
    options: &DeleteOptions,
    caller: &mut crate::request::Caller,
) -> ApiResult<Option<Value>> {
    let mut attempt = 1;
    loop {
        let object = registry.tables.get(target.served, target.namespace, target.name, None).await?;
        let pod = stored_value(&object)?;
        if !eviction::ignores_budgets(&pod) {
            return Ok(Some(pod));
        }
        let mut own = options.clone();
        if eviction::must_be_unchanged(&pod) && own.resource_version.is_none() {
            own.resource_version = Some(object.revision().to_string());
        }
        match registry.delete(target, &own, caller).await {
            Ok(_) => return Ok(None),
            Err(error)
                if error.reason == "Conflict"
                    && options.resource_version.is_none()
                    && attempt < limits::EVICTION_ATTEMPTS
                    && options.uid.is_none() =>
            {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Checks the pod's budget, if it has one. Returns the budget if it allows the eviction only while the pod stays as it
/// is.
async fn ask_budget(registry: &Registry, target: Target<'_>, pod: &Value, dry_run: bool) -> ApiResult<Option<Value>> {
    let mut budgets = registry.budgets_of(target.namespace, pod).await?;
    let Some(budget) = budgets.pop() else { return Ok(None) };
    if !budgets.is_empty() {
        return Err(eviction::several_budgets());
    }
    match eviction::decide(pod, &budget) {
        EvictionDecision::Free => Ok(None),
        EvictionDecision::FreeIfUnchanged => Ok(Some(budget)),
        EvictionDecision::Ask => registry.spend_disruption(&budget, target.name, dry_run).await.map(|()| None),
    }
}

/// Writes the condition that explains the disruption to the pod, then deletes it.
async fn mark_and_delete(
    registry: &Registry,
    target: Target<'_>,
    mut options: DeleteOptions,
    caller: &mut crate::request::Caller,
) -> ApiResult<()> {
    if !options.dry_run {
        let mark = |pod: &mut Value| {
            eviction::mark(pod, now());
            Ok(())
        };
        let (uid, revision) = (options.uid.as_deref(), options.resource_version.as_deref());
        let marked = registry.tables.revise(target, uid, revision, false, &mark).await?;
        if options.resource_version.is_some() {
            options.resource_version = Some(marked.to_string());
        }
    }
    registry.delete(target, &options, caller).await.map(drop)
}
