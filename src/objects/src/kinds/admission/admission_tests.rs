use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::*;

fn pod() -> Value {
    value!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}})
}

#[test]
fn pods_get_account_token_priority_and_patience() {
    let mut pod = pod();
    set_service_account(&mut pod, "ns", "abcde", |name| Some(value!({"metadata": {"name": name}}))).unwrap();
    assert_eq!(pod.str_at(&["spec", "serviceAccount"]), "default");
    assert_eq!(pod.list_at(&["spec", "volumes"])[0].str_at(&["name"]), "kube-api-access-abcde");
    let container = &pod.list_at(&["spec", "containers"])[0];
    assert_eq!(container.list_at(&["volumeMounts"])[0].str_at(&["name"]), "kube-api-access-abcde");
    set_priority(&mut pod, None, std::iter::empty()).unwrap();
    assert_eq!(pod.int_at(&["spec", "priority"]), Some(0));
    tolerate_lost_nodes(&mut pod);
    tolerate_lost_nodes(&mut pod);
    assert_eq!(pod.list_at(&["spec", "tolerations"]).len(), 2);
}

#[test]
fn what_is_unknown_is_refused() {
    let mut pod = pod();
    let refused = set_service_account(&mut pod, "ns", "abcde", |_| None).unwrap_err();
    assert_eq!(refused, "error looking up service account ns/default: serviceaccount \"default\" not found");
    pod.set_at(&["spec", "priorityClassName"], "high");
    let refused = set_priority(&mut pod, None, std::iter::empty()).unwrap_err();
    assert_eq!(refused, "no PriorityClass with name high was found");
    pod.set_at(&["spec", "runtimeClassName"], "sandbox");
    let refused = set_runtime_class(&mut pod, None).unwrap_err();
    assert_eq!(refused, "pod rejected: RuntimeClass \"sandbox\" not found");
}

#[test]
fn runtime_classes_add_overhead_and_scheduling() {
    let mut pod = pod();
    pod.set_at(&["spec", "runtimeClassName"], "sandbox");
    let class = value!({
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    });
    set_runtime_class(&mut pod, Some(&class)).unwrap();
    assert_eq!(check_overhead(&pod, Some(&class)), Ok(()));
    assert_eq!(pod.at(&["spec", "nodeSelector"]), &value!({"a": "b"}));
    assert_eq!(pod.list_at(&["spec", "tolerations"]).len(), 1);
    assert!(check_overhead(&pod, None).is_err());
}

#[test]
fn the_newest_default_class_wins() {
    let class = |name: &str, since: &str| {
        let annotations = value!({"storageclass.kubernetes.io/is-default-class": "true"});
        value!({"metadata": {"name": name, "creationTimestamp": since, "annotations": annotations}})
    };
    let classes = [class("old", "2024-01-01T00:00:00Z"), class("new", "2025-01-01T00:00:00Z")];
    let mut claim = value!({"spec": {}});
    assert!(needs_storage_class(&claim));
    default_storage_class(&mut claim, classes.iter());
    assert_eq!(claim.str_at(&["spec", "storageClassName"]), "new");
    protect("persistentvolumeclaims", &mut claim);
    assert_eq!(claim.list_at(&["metadata", "finalizers"]).len(), 1);
}

#[test]
fn a_pod_fits_its_node() {
    let node = value!({"status": {"allocatable": {"cpu": "3", "memory": "3Gi"}}});
    let pod = |cpu: &str, memory: &str| {
        let resources = |cpu: &str, memory: &str| value!({"requests": {"cpu": (cpu), "memory": (memory)}});
        value!({"spec": {"containers": [
            {"name": "a", "resources": (resources(cpu, memory))}, {"name": "b", "resources": (resources("500m", "0"))}]}})
    };
    assert_eq!(beyond_node(&pod("2500m", "3Gi"), &node), None);
    let why = "node didn't have enough allocatable resources: cpu, requested: 3001, allocatable: 3000";
    assert_eq!(beyond_node(&pod("2501m", "1Gi"), &node).as_deref(), Some(why));
    let why = "node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 0; \
               memory, requested: 1024, allocatable: 0";
    assert_eq!(beyond_node(&pod("1", "1Ki"), &Value::Null).as_deref(), Some(why));
}
