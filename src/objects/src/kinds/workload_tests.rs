//! Rules of the kinds that own pods, across kinds.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::{Strategy, strategy};
use crate::field::Errors;

const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanos: 0 };

fn template() -> Value {
    value!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn object(rules: &Strategy, spec: Value) -> Value {
    let mut object = value!({"metadata": {"name": "x", "namespace": "n", "uid": "u"}, "spec": spec});
    (rules.default)(&mut object);
    object
}

fn causes(rules: &Strategy, object: &Value) -> Vec<String> {
    let mut errors = Errors::default();
    (rules.validate)(object, &mut errors);
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn minimal_workloads_are_valid() {
    let selector = value!({"matchLabels": {"a": "b"}});
    for resource in ["deployments", "replicasets", "statefulsets", "daemonsets"] {
        let rules = strategy("apps", resource);
        let spec = value!({"selector": (selector.clone()), "template": (template())});
        let object = object(rules, spec);
        assert_eq!(causes(rules, &object), [""; 0], "{resource}");
    }
}

#[test]
fn messages_show_internal_structures() {
    let rules = strategy("apps", "deployments");
    let selector = value!({"matchLabels": {"a": "c"}});
    let spec = value!({"selector": selector, "template": (template()), "strategy": {"type": "Blue"}});
    let errors = causes(rules, &object(rules, spec));
    let mismatch = "`selector` does not match template `labels`";
    assert_eq!(errors[0], format!("spec.template.metadata.labels: Invalid value: {{\"a\":\"b\"}}: {mismatch}"));
    let shown = "{\"Type\":\"Blue\",\"RollingUpdate\":null}";
    let allowed = "supported values: \"Recreate\", \"RollingUpdate\"";
    assert_eq!(errors[1], format!("spec.strategy: Unsupported value: {shown}: {allowed}"));
}

#[test]
fn jobs_select_their_own_pods() {
    let rules = strategy("batch", "jobs");
    let mut spec = value!({"template": (template()), "completionMode": "Indexed"});
    spec.set_at(&["template", "spec", "restartPolicy"], "Never");
    let mut job = object(rules, spec);
    (rules.prepare_create)(&mut job, NOW);
    assert_eq!(job.int_at(&["spec", "completions"]), Some(1));
    let label = "batch.kubernetes.io/controller-uid";
    assert_eq!(job.str_at(&["spec", "selector", "matchLabels", label]), "u");
    assert_eq!(job.str_at(&["spec", "template", "metadata", "labels", "job-name"]), "x");
    assert_eq!(causes(rules, &job), [""; 0]);
    let old = job.clone();
    job.set_at(&["spec", "completions"], 2);
    let mut errors = Errors::default();
    (rules.validate_update)(&job, &old, &mut errors);
    let why = "can only be modified in tandem with spec.parallelism";
    assert_eq!(errors.0[0].to_string(), format!("spec.completions: Invalid value: 2: {why}"));
}

#[test]
fn generations_count_changes_of_the_spec() {
    for (group, resource) in [("apps", "deployments"), ("apps", "daemonsets"), ("", "replicationcontrollers")] {
        let rules = strategy(group, resource);
        let mut old = object(rules, value!({"selector": {"a": "b"}, "template": (template())}));
        (rules.prepare_create)(&mut old, NOW);
        old.set_at(&["metadata", "generation"], 1);
        let mut new = old.clone();
        (rules.prepare_update)(&mut new, &old, NOW);
        assert_eq!(new, old, "{resource}");
        new.set_at(&["spec", "minReadySeconds"], 5);
        (rules.prepare_update)(&mut new, &old, NOW);
        assert_eq!(new.int_at(&["metadata", "generation"]), Some(2), "{resource}");
    }
}

#[test]
fn finished_jobs_are_checked() {
    let rules = strategy("batch", "jobs");
    let old = value!({"metadata": {"name": "x"}, "spec": {"completionMode": "NonIndexed"}});
    let mut new = old.clone();
    let complete = value!({"type": "Complete", "status": "True"});
    new.set_at(&["status"], value!({"conditions": [complete], "active": 1}));
    let mut errors = Errors::default();
    (rules.validate_status)(&new, &old, &mut errors);
    let fields: Vec<String> = errors.0.iter().map(|error| error.field.clone()).collect();
    let expected = ["status.completionTime", "status.conditions", "status.active", "status.startTime"];
    assert_eq!(fields, expected);
}

#[test]
fn a_job_that_does_not_count_ready_pods_may_have_any_number() {
    let rules = strategy("batch", "jobs");
    let old = value!({"metadata": {"name": "x"}, "spec": {"completionMode": "NonIndexed"}});
    let broken = |status: Value| {
        let mut new = old.clone();
        new.set_at(&["status"], status);
        let mut errors = Errors::default();
        (rules.validate_status)(&new, &old, &mut errors);
        errors.0.iter().map(|error| error.field.clone()).collect::<Vec<_>>()
    };
    assert_eq!(broken(value!({"active": (-1)})), ["status.active"]);
    assert_eq!(broken(value!({"active": (-1), "ready": 0})), ["status.active", "status.ready"]);
}

#[test]
fn a_status_write_keeps_the_count_of_templates() {
    let rules = strategy("apps", "daemonsets");
    let path = ["metadata", "annotations", "deprecated.daemonset.template.generation"];
    let old = value!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "3"}}});
    let mut new = value!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "7"}}});
    (rules.prepare_status)(&mut new, &old, NOW);
    assert_eq!(new.str_at(&path), "3");
}

#[test]
fn overhead_of_a_class_may_be_finer_than_thousandths() {
    let class = value!({"metadata": {"name": "x"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1n"}}});
    let mut defaulted = class.clone();
    (strategy("node.k8s.io", "runtimeclasses").default)(&mut defaulted);
    assert_eq!(defaulted, class);
}
