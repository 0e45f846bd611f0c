use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::STRATEGY;
use crate::field::Errors;

const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanos: 0 };

fn pod(container: Value) -> Value {
    let mut pod = value!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"containers": [container]}});
    (STRATEGY.default)(&mut pod);
    pod
}

fn refused(rule: impl FnOnce(&mut Errors)) -> Vec<String> {
    let mut errors = Errors::default();
    rule(&mut errors);
    errors.0.iter().map(ToString::to_string).collect()
}

fn refused_at_creation(pod: &Value) -> Vec<String> {
    refused(|errors| (STRATEGY.validate)(pod, errors))
}

#[test]
fn defaults_are_written_once() {
    let probe = value!({"httpGet": {"port": 80}});
    let resources = value!({"limits": {"cpu": "1"}});
    let first = pod(value!({"name": "c", "image": "nginx", "livenessProbe": probe, "resources": resources}));
    let container = &first.list_at(&["spec", "containers"])[0];
    assert_eq!(container.str_at(&["imagePullPolicy"]), "Always");
    assert_eq!(container.str_at(&["livenessProbe", "httpGet", "scheme"]), "HTTP");
    assert_eq!(container.int_at(&["livenessProbe", "failureThreshold"]), Some(3));
    assert_eq!(container.str_at(&["resources", "requests", "cpu"]), "1");
    assert_eq!(first.int_at(&["spec", "terminationGracePeriodSeconds"]), Some(30));
    let mut again = first.clone();
    (STRATEGY.default)(&mut again);
    assert_eq!(again, first);
    assert!(refused_at_creation(&first).is_empty());
}

#[test]
fn errors_have_the_paths_that_clients_expect() {
    let mounts = value!([{"name": "x", "mountPath": "/a", "subPath": "/b"}]);
    let port = value!({"containerPort": 70000, "protocol": "ICMP"});
    let bad = pod(value!({"name": "C", "image": "a", "volumeMounts": mounts, "ports": [port]}));
    let errors = refused_at_creation(&bad);
    assert!(errors[0].starts_with("spec.containers[0].name: Invalid value: \"C\": a lowercase RFC 1123 label"));
    assert_eq!(
        errors[1..],
        [
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.containers[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            "spec.containers[0].volumeMounts[0].name: Not found: \"x\"",
            "spec.containers[0].volumeMounts.subPath: Invalid value: \"/b\": must be a relative path",
        ]
    );
}

#[test]
fn requests_stay_below_limits() {
    let resources = value!({"limits": {"cpu": "1", "a.b/c": "2"}, "requests": {"cpu": "2", "a.b/c": "1"}});
    let bad = pod(value!({"name": "c", "image": "a", "resources": resources}));
    assert_eq!(
        refused_at_creation(&bad),
        [
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            "spec.containers[0].resources.requests: Invalid value: \"1\": must be equal to a.b/c limit of 2",
        ]
    );
}

#[test]
fn only_images_and_few_other_fields_may_change() {
    let old = pod(value!({"name": "c", "image": "a:1"}));
    let mut new = old.clone();
    new.set_at(&["spec", "containers"], vec![value!({"name": "c", "image": "a:2"})]);
    (STRATEGY.default)(&mut new);
    assert!(refused(|errors| (STRATEGY.validate_update)(&new, &old, errors)).is_empty());
    new.set_at(&["spec", "hostname"], "h");
    let errors = refused(|errors| (STRATEGY.validate_update)(&new, &old, errors));
    assert!(errors[0].starts_with("spec: Forbidden: pod updates may not change fields other than"));
    assert!(errors[0].contains("\n- \"Hostname\": \"\",\n+ \"Hostname\": \"h\",\n"), "{}", errors[0]);
}

#[test]
fn a_resize_changes_resources_only() {
    let mut old = pod(value!({"name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}}}));
    old.set_at(&["metadata", "generation"], 1);
    let mut new = pod(value!({"name": "c", "image": "b", "resources": {"requests": {"cpu": "2"}}}));
    let resize = STRATEGY.subresource("resize").unwrap();
    (resize.prepare)(&mut new, &old, NOW);
    let container = &new.list_at(&["spec", "containers"])[0];
    assert_eq!((container.str_at(&["image"]), container.str_at(&["resources", "requests", "cpu"])), ("a", "2"));
    assert_eq!(new.int_at(&["metadata", "generation"]), Some(2));
    assert!(refused(|errors| (resize.validate)(&new, &old, errors)).is_empty());
    let mut gone = old.clone();
    gone.set_at(&["spec", "containers"], pod(value!({"name": "c", "image": "a"})).at(&["spec", "containers"]).clone());
    let errors = refused(|errors| (resize.validate)(&gone, &old, errors));
    assert_eq!(errors[0], "spec: Invalid value: \"\": Pod QOS Class may not change as a result of resizing");
}

#[test]
fn ephemeral_containers_are_only_added() {
    let mut old = pod(value!({"name": "c", "image": "a"}));
    old.set_at(&["spec", "ephemeralContainers"], vec![value!({"name": "e", "image": "a"})]);
    (STRATEGY.default)(&mut old);
    let mut new = old.clone();
    new.remove_at(&["spec", "ephemeralContainers"]);
    let part = STRATEGY.subresource("ephemeralcontainers").unwrap();
    let errors = refused(|errors| (part.validate)(&new, &old, errors));
    let why = "existing ephemeral containers \"e\" may not be removed\n";
    assert_eq!(errors, [format!("spec.ephemeralContainers: Forbidden: {why}")]);
}

#[test]
fn ended_containers_stay_ended() {
    let status = |state: Value| value!({"containerStatuses": [{"name": "c", "state": state}]});
    let mut old = pod(value!({"name": "c", "image": "a"}));
    old.set_at(&["spec", "restartPolicy"], "Never");
    let mut new = old.clone();
    old.set_at(&["status"], status(value!({"terminated": {"exitCode": 1}})));
    new.set_at(&["status"], status(value!({"running": {}})));
    let errors = refused(|errors| (STRATEGY.validate_status)(&new, &old, errors));
    let why = "may not be transitioned to non-terminated state";
    assert_eq!(errors, [format!("status.containerStatuses[0].state: Forbidden: {why}")]);
    old.set_at(&["spec", "restartPolicy"], "OnFailure");
    assert!(refused(|errors| (STRATEGY.validate_status)(&new, &old, errors)).is_empty());
}

#[test]
fn bindings_assign_once() {
    let binding = value!({"metadata": {"labels": {"z": "1"}}, "target": {"name": "node"}});
    let mut pod = pod(value!({"name": "c", "image": "a"}));
    super::subresources::binding::assign(&mut pod, &binding, NOW).unwrap();
    assert_eq!(pod.str_at(&["spec", "nodeName"]), "node");
    let condition = &pod.list_at(&["status", "conditions"])[0];
    let stated = ["type", "lastTransitionTime"].map(|key| condition.str_at(&[key]));
    assert_eq!(stated, ["PodScheduled", "2023-11-14T22:13:20Z"]);
    let again = super::subresources::binding::assign(&mut pod, &binding, NOW).unwrap_err();
    assert_eq!(again, "pod a is already assigned to node \"node\"");
}

#[test]
fn budgets_are_spent() {
    let mut budget = value!({
        "metadata": {"name": "b", "generation": 1},
        "status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 1}
    });
    super::subresources::eviction::spend(&mut budget, "a", false, NOW).unwrap();
    assert_eq!(budget.int_at(&["status", "disruptionsAllowed"]), Some(0));
    let refused = super::subresources::eviction::spend(&mut budget, "a", false, NOW).unwrap_err();
    assert_eq!(refused.code, 429);
    let causes = &refused.details.as_ref().unwrap().causes;
    assert_eq!(causes[0].message, "The disruption budget b needs 1 healthy pods and has 1 currently");
}

#[test]
fn pairs_of_items_cause_a_bounded_number_of_warnings() {
    let warnings = |pod: &Value| {
        let mut warnings = Vec::new();
        (STRATEGY.warnings)(pod, None, &mut warnings);
        warnings
    };
    let port = value!({"containerPort": 80, "protocol": "TCP"});
    let of_ports = pod(value!({"name": "c", "image": "a", "ports": (vec![port; 1_000])}));
    assert_eq!(warnings(&of_ports).len(), crate::limits::WARNINGS);

    let with_files = |paths: Vec<String>| {
        let mut pod = pod(value!({"name": "c", "image": "a"}));
        let items: Vec<Value> = paths.into_iter().map(|path| value!({"key": "k", "path": path})).collect();
        pod.set_at(&["spec", "volumes"], value!([{"name": "v", "configMap": {"name": "m", "items": items}}]));
        warnings(&pod)
    };
    let nested = (0..1_000).map(|depth| format!("a{}", "/a".repeat(depth))).collect();
    assert_eq!(with_files(nested).len(), crate::limits::WARNINGS);
    let mut equal = vec!["a".to_owned(); 1_000];
    equal.extend(["b".to_owned(), "b/c".to_owned()]);
    let overlap = |paths: &str| format!("volume \"v\" (ConfigMap \"m\"): overlapping paths: {paths}");
    assert_eq!(with_files(equal), [overlap("\"a\" with \"a\""), overlap("\"b/c\" with \"b\"")]);
}
