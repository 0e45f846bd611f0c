use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::*;
use crate::rules::protection::CLAIMS;

fn pod() -> Value {
    value!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}})
}

#[test]
fn pods_get_account_token_priority_and_tolerations() {
    let mut pod = pod();
    set_service_account(&mut pod, "ns", "abcde", |name| Some(value!({"metadata": {"name": name}}))).unwrap();
    assert_eq!(pod.str_at(&["spec", "serviceAccount"]), "default");
    assert_eq!(pod.list_at(&["spec", "volumes"])[0].str_at(&["name"]), "kube-api-access-abcde");
    let container = &pod.list_at(&["spec", "containers"])[0];
    assert_eq!(container.list_at(&["volumeMounts"])[0].str_at(&["name"]), "kube-api-access-abcde");
    set_priority(&mut pod, None, std::iter::empty()).unwrap();
    assert_eq!(pod.int_at(&["spec", "priority"]), Some(0));
    tolerate_lost_nodes(&mut pod, LostNodes::default());
    tolerate_lost_nodes(&mut pod, LostNodes::default());
    assert_eq!(pod.list_at(&["spec", "tolerations"]).len(), 2);
}

#[test]
fn unknown_accounts_and_classes_are_refused() {
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
    protect(&CLAIMS, &mut claim);
    assert_eq!(claim.list_at(&["metadata", "finalizers"]).len(), 1);
}

#[test]
fn ephemeral_containers_use_secrets_of_their_account() {
    let pod = value!({"spec": {"ephemeralContainers": [
        {"name": "e", "env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]}]}});
    let account = |annotations: Value| value!({"metadata": {"name": "a", "annotations": annotations}, "secrets": [{"name": "own"}]});
    assert_eq!(check_ephemeral_containers(&pod, &account(value!({}))), Ok(()));
    let why = "ephemeral container e with envVar V referencing secret.secretName=\"other\" is not allowed because service \
               account a does not reference that secret";
    let demanding = account(value!({"kubernetes.io/enforce-mountable-secrets": "true"}));
    assert_eq!(check_ephemeral_containers(&pod, &demanding).unwrap_err(), why);
}

#[test]
fn a_pod_fits_its_node() {
    let node = value!({"status": {"allocatable": {"cpu": "3", "memory": "3Gi"}}});
    let pod = |cpu: &str, memory: &str| {
        let resources = |cpu: &str, memory: &str| value!({"requests": {"cpu": (cpu), "memory": (memory)}});
        value!({"spec": {"containers": [
            {"name": "a", "resources": (resources(cpu, memory))}, {"name": "b", "resources": (resources("500m", "0"))}]}})
    };
    let capacity = |why: &str| Some(("NodeCapacity", why.to_owned()));
    assert_eq!(refuse_resize(&pod("2500m", "3Gi"), &node), None);
    let why = "node didn't have enough allocatable resources: cpu, requested: 3001, allocatable: 3000";
    assert_eq!(refuse_resize(&pod("2501m", "1Gi"), &node), capacity(why));
    let why = "node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 0; \
               memory, requested: 1024, allocatable: 0";
    assert_eq!(refuse_resize(&pod("1", "1Ki"), &Value::Null), capacity(why));
    let mut shrinking = pod("1", "1Ki");
    let running = value!([{"name": "a", "resources": {"requests": {"cpu": "9"}}}]);
    shrinking.set_at(&["status", "containerStatuses"], running);
    assert_eq!(refuse_resize(&shrinking, &node), None);
    let mut whole = pod("1", "1Ki");
    whole.set_at(&["spec", "resources", "requests", "cpu"], "4");
    let why = "node didn't have enough allocatable resources: cpu, requested: 4000, allocatable: 3000";
    assert_eq!(refuse_resize(&whole, &node), capacity(why));
}

#[test]
fn only_linux_resizes() {
    let node = |system: &str| value!({"metadata": {"name": "n", "labels": {"kubernetes.io/os": (system)}}});
    let pod = value!({"spec": {"containers": []}});
    assert_eq!(refuse_resize(&pod, &node("linux")), None);
    assert_eq!(refuse_resize(&pod, &value!({"metadata": {"name": "n"}})), None);
    let why = "pod resize is only supported on linux nodes, node \"n\" is \"windows\"";
    assert_eq!(refuse_resize(&pod, &node("windows")), Some(("UnsupportedPlatform", why.to_owned())));
}

#[test]
fn updates_need_features_of_the_node() {
    let cpu = |cpu: &str| value!({"requests": {"cpu": (cpu)}});
    let pod = |own: &str, first: &str, sidecar: &str| {
        value!({"spec": {"resources": (cpu(own)), "initContainers": [
            {"name": "a", "resources": (cpu(first))},
            {"name": "b", "resources": (cpu(sidecar)), "restartPolicy": "Always"}]}})
    };
    let old = pod("1", "1", "1");
    let (whole, first) = ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers");
    assert!(features_for_update(&pod("1", "1", "2"), &old).is_empty());
    assert_eq!(features_for_update(&pod("2", "1", "1"), &old), [whole]);
    let both = features_for_update(&pod("2", "2", "1"), &old);
    assert_eq!(both, [whole, first]);
    let node = |features: Value| value!({"metadata": {"name": "n"}, "status": {"declaredFeatures": features}});
    assert_eq!(refuse_undeclared(&both, &node(value!([whole, "Other", first]))), None);
    let why = |names: &str| Some(format!("pod update requires features {names} which are not available on node \"n\""));
    assert_eq!(refuse_undeclared(&both, &node(value!([whole]))), why(first));
    assert_eq!(refuse_undeclared(&both, &node(value!([]))), why(&format!("{whole}, {first}")));
}
