//! Enforces the pod security standards of namespaces (PodSecurity): refuses pods, and warns clients that write
//! templates of pods.

use std::time::Instant;

use flotilla_cluster::{Object, Scope, Selection};
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{Admission, BuiltInAttributes, Operation};
use crate::field::{Errors, quote};
use crate::kinds::admission::pod_security::{
    Level, Policy, Settings, Standard, in_detail, in_short, is_significant, violations,
};
use crate::limits::{NAMESPACE_PODS_CHECK, NAMESPACE_PODS_CHECKED};
use crate::scan::scan;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Tables, stored_value};
use crate::unreadable::skip_unreadable;

/// The paths at which resources hold a template of pods.
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

/// Audit annotations: the reason of an exemption, the standard that the namespace enforces, the violations of the
/// standard for the audit log, and the mistakes in the labels of the namespace.
const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATED: &str = "pod-security.kubernetes.io/audit-violations";
const FAILED: &str = "pod-security.kubernetes.io/error";

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("PodSecurity", Presence::On).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    match (part.name(), operation) {
        (("", "pods", ""), Operation::Create) => Some(DecidesBy::Tables),
        // The standard of the namespace matters only if the update changes parts of the pod that standards are about.
        (("", "pods", "" | "ephemeralcontainers" | "resize"), Operation::Update) => {
            Some(DecidesBy::TablesFor(is_significant))
        }
        // Clients are only warned about existing pods, and about templates.
        (("", "namespaces", ""), Operation::Create | Operation::Update) => Some(DecidesBy::Object),
        (_, Operation::Create | Operation::Update) => template_of(part).map(|_| DecidesBy::Object),
        _ => None,
    }
}

/// Returns the path at which objects hold a template of pods. Returns `None` if they hold none.
fn template_of(part: ResourcePart<'_>) -> Option<&'static [&'static str]> {
    let (own_group, own_resource, subresource) = part.name();
    let found = TEMPLATES.iter().find(|(group, resource, _)| (*group, *resource) == (own_group, own_resource));
    found.filter(|_| subresource.is_empty()).map(|(_, _, path)| *path)
}

fn validate(write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
    let part = ResourcePart { served: write.target.served, subresource: write.target.subresource };
    match part.name() {
        ("", "pods", _) => check_pod(write, object),
        ("", "namespaces", _) => check_namespace(write, object),
        _ => check_template(write, template_of(part).unwrap_or_default(), object),
    }
}

/// Returns whether the namespace or the user of a write is exempt from all standards. If so, annotates the reason.
fn is_exempt(write: &BuiltInAttributes<'_>) -> bool {
    let settings = settings(write.admission);
    let why = match () {
        () if settings.exempts_namespace(write.target.namespace) => "namespace",
        () if settings.exempts_user(&write.caller.identity.user().name) => "user",
        () => return false,
    };
    write.annotate(EXEMPT, || why.to_owned());
    true
}

/// Returns whether a pod or a template of pods is exempt because of its runtime class. If so, annotates that.
fn is_exempt_pod(write: &BuiltInAttributes<'_>, pod: &Value) -> bool {
    let is_exempt = settings(write.admission).exempts_pod(pod.at(&["spec"]));
    if is_exempt {
        write.annotate(EXEMPT, || "runtimeClass".to_owned());
    }
    is_exempt
}

fn settings(admission: &Admission) -> &Settings {
    &admission.configuration.pod_security
}

/// Refuses a pod that violates the standard of its namespace.
fn check_pod(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    if is_exempt(write) {
        return Ok(());
    }
    let (policy, errors) = policy(write.admission, write.target.namespace)?;
    if errors.is_empty() && policy.is_privileged() {
        write.annotate(ENFORCED, || Standard::default().to_string());
        return Ok(());
    }
    if write.old.is_some_and(|old| !is_significant(pod, old)) || is_exempt_pod(write, pod) {
        return Ok(());
    }
    write.annotate(ENFORCED, || policy.enforce.to_string());
    record(write, &policy, &errors, pod);
    let found = violations(policy.enforce, pod.at(&["metadata"]), pod.at(&["spec"]));
    if !found.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, in_detail(&found));
        return Err(write.refuse(pod, &why));
    }
    warn(write, policy.warn, pod);
    Ok(())
}

/// Warns of an object whose template of pods violates the standard of its namespace.
fn check_template(write: &BuiltInAttributes<'_>, path: &[&str], object: &Value) -> ApiResult<()> {
    let template = object.at(path);
    if is_exempt(write) {
        return Ok(());
    }
    let (policy, errors) = policy(write.admission, write.target.namespace)?;
    let demands = [policy.warn, policy.audit].iter().any(|standard| standard.level != Level::Privileged);
    if (demands || !errors.is_empty()) && !template.is_null() && !is_exempt_pod(write, template) {
        record(write, &policy, &errors, template);
        warn(write, policy.warn, template);
    }
    Ok(())
}

/// Adds the audit annotations about a pod or a template of pods.
fn record(write: &BuiltInAttributes<'_>, policy: &Policy, errors: &Errors, pod: &Value) {
    if write.caller.record.is_none() {
        return;
    }
    if !errors.is_empty() {
        let all: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        let all = if all.len() == 1 { all.concat() } else { format!("[{}]", all.join(", ")) };
        write.annotate(FAILED, || format!("Failed to parse policy: {all}"));
    }
    let found = violations(policy.audit, pod.at(&["metadata"]), pod.at(&["spec"]));
    if !found.is_empty() {
        write.annotate(VIOLATED, || format!("would violate PodSecurity \"{}\": {}", policy.audit, in_detail(&found)));
    }
}

fn warn(write: &BuiltInAttributes<'_>, standard: Standard, pod: &Value) {
    let found = violations(standard, pod.at(&["metadata"]), pod.at(&["spec"]));
    if !found.is_empty() {
        write.warn(format!("would violate PodSecurity \"{standard}\": {}", in_detail(&found)));
    }
}

/// Refuses a namespace whose pod security labels are invalid. Warns of existing pods that violate a standard which
/// becomes stricter, and of labels that have no effect because the namespace is exempt.
fn check_namespace(write: &BuiltInAttributes<'_>, namespace: &Value) -> ApiResult<()> {
    let settings = settings(write.admission);
    let read = |namespace: &Value| {
        let mut errors = Errors::default();
        let label = |key: &str| namespace.at(&["metadata", "labels", key]).as_str();
        (settings.defaults.read(label, &mut errors), errors)
    };
    let (policy, errors) = read(namespace);
    let before = write.old.map(read);
    let is_known = before.as_ref().is_some_and(|(_, before)| before.0 == errors.0);
    let name = namespace.str_at(&["metadata", "name"]);
    if !errors.is_empty() && !is_known {
        return Err(ApiError::invalid("", "Namespace", name, &errors.0));
    }
    if before.is_some_and(|(before, _)| !is_stricter(policy.enforce, before.enforce)) {
        return Ok(());
    }
    if settings.exempts_namespace(name) {
        warn_of_exemption(write, &policy, namespace);
    } else if write.old.is_some() {
        pods_that_violate(write.admission, name, policy.enforce)?.into_iter().for_each(|warning| write.warn(warning));
    }
    Ok(())
}

/// Returns whether pods that met the standard `before` may violate `standard`.
fn is_stricter(standard: Standard, before: Standard) -> bool {
    let is_less = standard.version == before.version && standard.level <= before.level;
    standard != before && standard.level != Level::Privileged && !is_less
}

fn warn_of_exemption(write: &BuiltInAttributes<'_>, policy: &Policy, namespace: &Value) {
    if policy.is_privileged() || policy.is_equivalent(&settings(write.admission).defaults) {
        return;
    }
    let stated = policy.stated(|key| namespace.at(&["metadata", "labels", key]).as_str());
    let name = quote(namespace.str_at(&["metadata", "name"]));
    write.warn(format!("namespace {name} is exempt from Pod Security, and the policy ({stated}) will be ignored"));
}

/// Pods that violate a standard in the same way.
struct Alike {
    reasons: String,
    first: String,
    count: usize,
}

/// Returns the pod security standards that a namespace demands, and the mistakes in its labels.
fn policy(admission: &Admission, namespace: &str) -> ApiResult<(Policy, Errors)> {
    let served = admission.tables.resources.of_resource("", "namespaces").ok_or_else(ApiError::no_such_path)?;
    let namespace = admission.tables.current(&served, "", namespace);
    let label = |key: &str| namespace.as_ref().and_then(|namespace| namespace.terms().label(key));
    // An invalid label that is stored counts as its fallback.
    let mut errors = Errors::default();
    Ok((settings(admission).defaults.read(label, &mut errors), errors))
}

/// Returns warnings about the pods of a namespace that violate a standard. Pods with the same violations share one.
fn pods_that_violate(admission: &Admission, namespace: &str, standard: Standard) -> ApiResult<Vec<String>> {
    let began = Instant::now();
    let (mut alike, mut checked): (Vec<Alike>, usize) = (Vec::new(), 0);
    let (pods, all) = pods_to_check(&admission.tables, namespace)?;
    for pod in &pods {
        checked += 1;
        let Some(pod) = skip_unreadable(stored_value(pod)) else { continue };
        if settings(admission).exempts_pod(pod.at(&["spec"])) {
            continue;
        }
        let found = violations(standard, pod.at(&["metadata"]), pod.at(&["spec"]));
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
    let mut warnings = Vec::new();
    if checked < all {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {all} existing pods"
        ));
    }
    if !alike.is_empty() {
        warnings.push(format!(
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
    warnings.extend(lines);
    Ok(warnings)
}

/// Returns the pods of a namespace to check, up to a bound, and the number of all.
fn pods_to_check(tables: &Tables, namespace: &str) -> ApiResult<(Vec<std::sync::Arc<Object>>, usize)> {
    let served = tables.resources.of_resource("", "pods").ok_or_else(ApiError::no_such_path)?;
    let (scope, snapshot) = (Scope::namespace(namespace), tables.table(&served).snapshot());
    let all = snapshot.count(&scope).map_err(ApiError::internal)?;
    let mut pods = Vec::new();
    for chunk in scan(&snapshot, Selection { scope, ..Selection::default() }) {
        pods.extend(chunk.map_err(ApiError::internal)?);
        if pods.len() >= NAMESPACE_PODS_CHECKED {
            break;
        }
    }
    pods.truncate(NAMESPACE_PODS_CHECKED);
    Ok((pods, usize::try_from(all).unwrap_or(usize::MAX)))
}
