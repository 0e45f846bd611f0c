//! Reads the parameters with which a policy is evaluated.

use std::sync::Arc;

use flotilla_cluster::{Object, Scope, Selection};
use flotilla_proto::value::Value;

use super::super::{DynamicAttributes, Effort};
use super::ParamKind;
use super::binding::ParamRef;
use crate::limits;
use crate::rules::labels;
use crate::scan::scan;
use crate::served::Served;
use crate::tables::{GroupVersionKind, Tables, stored_tree};
use crate::unreadable::skip_unreadable;

/// Returns the resource of a kind of parameters.
///
/// # Errors
/// The resource does not exist. The error has the reference's wording.
pub fn resource(tables: &Tables, kind: &ParamKind) -> Result<Arc<Served>, String> {
    let found = tables.resources.with_kind(&kind.group, &kind.version, &kind.kind);
    found.ok_or_else(|| format!("failed to find resource referenced by paramKind: '{kind}'"))
}

/// One parameter of a policy, or none. It is decoded when it is needed, since a binding may select very many.
#[derive(Debug, Clone)]
pub struct Param(Option<(Arc<Served>, Arc<Object>)>);

impl Param {
    /// Returns the object. Null for no parameter.
    ///
    /// # Errors
    /// It cannot be decoded or converted; the error is a text for people.
    pub async fn read(&self, tables: &Tables) -> Result<Value, String> {
        let Some((served, object)) = &self.0 else { return Ok(Value::Null) };
        let stored = stored_tree(object).map_err(|error| error.message)?;
        let kind = GroupVersionKind::of(served, "");
        tables.convert_object(served, &stored, &kind).await.map_err(|error| error.message)
    }
}

/// Returns the parameters that a binding selects for a write. The policy is evaluated with each of them.
///
/// # Errors
/// The binding refers to parameters wrongly, selects too many, or requires parameters and none exist.
pub async fn collect(
    attributes: &DynamicAttributes<'_>,
    served: Option<&Arc<Served>>,
    reference: Option<&ParamRef>,
    effort: &mut Effort,
) -> Result<Vec<Param>, String> {
    // A policy without parameters ignores the binding's reference, and a binding need not have one.
    let (Some(served), Some(reference)) = (served, reference) else { return Ok(vec![Param(None)]) };
    let namespace = match (served.resource.namespaced, reference.namespace.as_str()) {
        (true, "") if attributes.namespace.is_empty() => {
            let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, "") => attributes.namespace.as_str(),
        (false, "") => "",
        (true, namespace) => namespace,
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let tables = &attributes.admission.tables;
    let found = if reference.name.is_empty() {
        selected(tables, served, namespace, &reference.selector, effort).await?
    } else {
        tables.current(served, namespace, &reference.name).into_iter().collect()
    };
    if found.is_empty() && reference.denies_without {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found.into_iter().map(|object| Param(Some((Arc::clone(served), object)))).collect())
}

async fn selected(
    tables: &Tables,
    served: &Served,
    namespace: &str,
    selector: &Value,
    effort: &mut Effort,
) -> Result<Vec<Arc<Object>>, String> {
    let scope = if namespace.is_empty() { Scope::All } else { Scope::namespace(namespace) };
    let mut all = Vec::new();
    for objects in scan(&tables.table(served).snapshot(), Selection { scope, ..Selection::default() }) {
        for object in objects.map_err(|error| format!("cannot read parameters: {error:?}"))? {
            let is_selected = skip_unreadable(stored_tree(&object))
                .is_some_and(|tree| labels::selector_matches(selector, tree.map_at(&["metadata", "labels"])));
            all.extend(is_selected.then_some(object));
        }
        if all.len() > limits::POLICY_PARAMETERS {
            return Err(format!("paramRef selects more than {} objects", limits::POLICY_PARAMETERS));
        }
        effort.pause().await;
    }
    Ok(all)
}
