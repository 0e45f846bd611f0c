//! Enforces the pod security standards of namespaces (PodSecurity): refuses pods, and warns clients that write
//! templates of pods.

use std::time::Instant;

use flotilla_cluster::{Object, Scope, Selection};
use flotilla_proto::value::Value;

use super::{Request, Target};
use crate::field::Errors;
use crate::kinds::admission::pod_security::{Level, Policy, Standard, findings, in_detail, in_short, is_significant};
use crate::limits::{LIST_CHUNK_OBJECTS, NAMESPACE_PODS_CHECK, NAMESPACE_PODS_CHECKED};
use crate::registry::{Registry, stored_value};
use crate::status::{ApiError, ApiResult};
use crate::unreadable::others;

/// Where resources hold a template of pods.
static TEMPLATES: &[(&str, &str, &[&str])] = &[
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
];

/// Returns where the objects of a target hold a template of pods; `None` if they hold none.
fn template_of(target: Target<'_>) -> Option<&'static [&'static str]> {
    let place = (&*target.served.stored.group, &*target.served.resource.name);
    let found = TEMPLATES.iter().find(|(group, resource, _)| (*group, *resource) == place);
    found.filter(|_| target.subresource.is_empty()).map(|(_, _, path)| *path)
}

/// Refuses a finished pod that violates the standard of its namespace.
pub(super) fn pod(request: &Request<'_>, pod: &Value, old: Option<&Value>) -> ApiResult<()> {
    request.by("PodSecurity", || {
        let policy = request.registry.policy(request.target.namespace)?;
        if policy.is_privileged() || old.is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
        }
        let found = findings(policy.enforce, pod.at(&["metadata"]), pod.at(&["spec"]));
        if !found.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, in_detail(&found));
            return Err(request.refuse(pod, &why));
        }
        warn(request, policy.warn, pod);
        Ok(())
    })
}

/// Warns of a finished object whose template of pods violates the standard of its namespace.
pub(super) fn template(request: &Request<'_>, object: &Value) -> ApiResult<()> {
    let Some(path) = template_of(request.target) else { return Ok(()) };
    request.by("PodSecurity", || {
        let policy = request.registry.policy(request.target.namespace)?;
        warn(request, policy.warn, object.at(path));
        Ok(())
    })
}

fn warn(request: &Request<'_>, standard: Standard, pod: &Value) {
    let found = findings(standard, pod.at(&["metadata"]), pod.at(&["spec"]));
    if !found.is_empty() {
        request.warn(format!("would violate PodSecurity \"{standard}\": {}", in_detail(&found)));
    }
}

/// Refuses a namespace whose pod security labels are invalid, and warns of existing pods that violate a standard which
/// becomes stricter.
pub(super) fn namespace(request: &Request<'_>, namespace: &Value, old: Option<&Value>) -> ApiResult<()> {
    request.by("PodSecurity", || {
        let read = |namespace: &Value| {
            let mut errors = Errors::default();
            let label = |key: &str| namespace.at(&["metadata", "labels", key]).as_str();
            (Policy::read(label, &mut errors), errors)
        };
        let (policy, errors) = read(namespace);
        let before = old.map(read);
        let known = before.as_ref().is_some_and(|(_, before)| before.0 == errors.0);
        let name = namespace.str_at(&["metadata", "name"]);
        if !errors.is_empty() && !known {
            return Err(ApiError::invalid("", "Namespace", name, &errors.0));
        }
        let Some((before, _)) = before else { return Ok(()) };
        let (enforce, before) = (policy.enforce, before.enforce);
        let less = enforce.version == before.version && enforce.level <= before.level;
        if enforce != before && enforce.level != Level::Privileged && !less {
            request.registry.pods_that_violate(name, enforce)?.into_iter().for_each(|told| request.warn(told));
        }
        Ok(())
    })
}

/// Pods that violate a standard in the same way.
struct Alike {
    reasons: String,
    first: String,
    count: usize,
}

impl Registry {
    /// Returns the pod security standards that a namespace demands.
    fn policy(&self, namespace: &str) -> ApiResult<Policy> {
        let served = self.resources.of_resource("", "namespaces").ok_or_else(ApiError::no_such_path)?;
        let namespace = self.current(&served, "", namespace);
        let label = |key: &str| namespace.as_ref().and_then(|namespace| namespace.terms().label(key));
        // Labels that are invalid, though stored, are read as their fallback.
        Ok(Policy::read(label, &mut Errors::default()))
    }

    /// Returns warnings about the pods of a namespace that violate a standard. Pods with the same violations share one.
    fn pods_that_violate(&self, namespace: &str, standard: Standard) -> ApiResult<Vec<String>> {
        let began = Instant::now();
        let (mut alike, mut checked): (Vec<Alike>, usize) = (Vec::new(), 0);
        let (pods, all) = self.pods_to_check(namespace)?;
        for pod in &pods {
            checked += 1;
            let Some(pod) = others(stored_value(pod)) else { continue };
            let found = findings(standard, pod.at(&["metadata"]), pod.at(&["spec"]));
            if !found.is_empty() {
                let (reasons, name) = (in_short(&found), pod.str_at(&["metadata", "name"]));
                match alike.iter_mut().find(|alike| alike.reasons == reasons) {
                    Some(same) => {
                        same.count += 1;
                        if name < same.first.as_str() {
                            same.first = name.to_owned();
                        }
                    }
                    None => alike.push(Alike { reasons, first: name.to_owned(), count: 1 }),
                }
            }
            if began.elapsed() > NAMESPACE_PODS_CHECK {
                break;
            }
        }
        let mut told = Vec::new();
        if checked < all {
            told.push(format!(
                "new PodSecurity enforce level only checked against the first {checked} of {all} existing pods"
            ));
        }
        if !alike.is_empty() {
            told.push(format!(
                "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{standard}\""
            ));
        }
        alike.sort_by(|a, b| a.reasons.cmp(&b.reasons));
        let line = |alike: Alike| match alike {
            Alike { reasons, first, count: 1 } => format!("{first}: {reasons}"),
            Alike { reasons, first, count: 2 } => format!("{first} (and 1 other pod): {reasons}"),
            Alike { reasons, first, count } => format!("{first} (and {} other pods): {reasons}", count - 1),
        };
        let mut lines: Vec<String> = alike.into_iter().map(line).collect();
        lines.sort_unstable();
        told.extend(lines);
        Ok(told)
    }

    /// Returns the pods of a namespace that are to be checked, up to a bound, and how many there are in all.
    fn pods_to_check(&self, namespace: &str) -> ApiResult<(Vec<std::sync::Arc<Object>>, usize)> {
        let served = self.resources.of_resource("", "pods").ok_or_else(ApiError::no_such_path)?;
        let (scope, snapshot) = (Scope::namespace(namespace), self.table(&served).snapshot());
        let all = snapshot.count(&scope).map_err(ApiError::internal)?;
        let mut cursor = snapshot.cursor(Selection { scope, ..Selection::default() }, None);
        let mut pods = Vec::new();
        while pods.len() < NAMESPACE_PODS_CHECKED {
            let most = LIST_CHUNK_OBJECTS.min(NAMESPACE_PODS_CHECKED - pods.len());
            if !cursor.read(most, &mut pods).map_err(ApiError::internal)? {
                break;
            }
        }
        Ok((pods, usize::try_from(all).unwrap_or(usize::MAX)))
    }
}
