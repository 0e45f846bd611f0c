//! The parameters with which a policy is evaluated.

use std::sync::Arc;

use flotilla_cluster::{Object, Scope, Selection};
use flotilla_proto::value::Value;

use super::super::{Attributes, GroupVersionKind};
use super::ParamKind;
use super::binding::ParamRef;
use crate::registry::{Registry, stored_tree};
use crate::rules::labels;
use crate::served::Served;
use crate::unreadable::others;

/// Objects that are read at a time.
const CHUNK: usize = 256;

/// The resource of a kind of parameters.
///
/// # Errors
/// In the reference's words, where there is none.
pub fn resource(registry: &Registry, kind: &ParamKind) -> Result<Arc<Served>, String> {
    let all = registry.resources.all();
    let is_it = |served: &&Arc<Served>| {
        let own = GroupVersionKind::of(served, "");
        (own.group == kind.group) && (own.version == kind.version) && (own.kind == kind.kind)
    };
    let found = all.iter().find(is_it).cloned();
    found.ok_or_else(|| format!("failed to find resource referenced by paramKind: '{kind}'"))
}

/// The parameters of a binding for a write, each of which the policy is evaluated with; null stands for none.
///
/// # Errors
/// In the reference's words, where there must be some.
pub async fn collect(
    attributes: &Attributes<'_>,
    served: Option<&Arc<Served>>,
    reference: Option<&ParamRef>,
) -> Result<Vec<Value>, String> {
    // A policy without parameters ignores what bindings say of them; a binding need not say anything.
    let (Some(served), Some(reference)) = (served, reference) else { return Ok(vec![Value::Null]) };
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
    let registry = attributes.registry;
    let found = if reference.name.is_empty() {
        selected(registry, served, namespace, &reference.selector)?
    } else {
        registry.current(served, namespace, &reference.name).into_iter().collect()
    };
    let mut params = Vec::with_capacity(found.len());
    let kind = GroupVersionKind::of(served, "");
    for object in found {
        let stored = stored_tree(&object).map_err(|error| error.message)?;
        params.push(registry.convert_object(served, &stored, &kind).await.map_err(|error| error.message)?);
    }
    if params.is_empty() && reference.denies_without {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(params)
}

fn selected(
    registry: &Registry,
    served: &Served,
    namespace: &str,
    selector: &Value,
) -> Result<Vec<Arc<Object>>, String> {
    let scope = if namespace.is_empty() { Scope::All } else { Scope::namespace(namespace) };
    let mut cursor = registry.table(served).snapshot().cursor(Selection { scope, ..Selection::default() }, None);
    let (mut all, mut objects) = (Vec::new(), Vec::new());
    loop {
        let more = cursor.read(CHUNK, &mut objects).map_err(|error| format!("cannot read parameters: {error:?}"))?;
        for object in objects.drain(..) {
            let is_selected = others(stored_tree(&object))
                .is_some_and(|tree| labels::selector_matches(selector, tree.map_at(&["metadata", "labels"])));
            all.extend(is_selected.then_some(object));
        }
        if !more {
            return Ok(all);
        }
    }
}
