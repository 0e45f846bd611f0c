use flotilla_proto::value;

use super::*;

const NOW: Timestamp = Timestamp { seconds: 1_790_000_000, nanos: 0 };

fn quota() -> Value {
    value!({"metadata": {"name": "q"}, "spec": {}, "status": {
        "hard": {"pods": "2", "requests.cpu": "300m"}, "used": {"pods": "0", "requests.cpu": "200m"}
    }})
}

fn pod(cpu: &str) -> Value {
    value!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn of_pods<'a>(object: &'a Value, old: Option<&'a Value>) -> Charge<'a> {
    Charge { group: "", resource: "pods", subresource: "", object, old, now: NOW }
}

fn check(charge: Charge<'_>, quota: &Value) -> Result<Option<Usage>, String> {
    assert!(charge.is_due());
    charge.check(quota, &charge.usages())
}

fn shown(usage: &Usage) -> Vec<String> {
    usage.iter().map(|(name, amount)| format!("{name}={amount}")).collect()
}

#[test]
fn a_quota_refuses_what_exceeds_its_room() {
    let charged = |pod: &Value| check(of_pods(pod, None), &quota());
    let after = charged(&pod("100m")).unwrap().unwrap();
    assert_eq!(shown(&after), ["pods=1", "requests.cpu=300m"]);
    assert_eq!(
        charged(&pod("150m")).unwrap_err(),
        "exceeded quota: q, requested: requests.cpu=150m, used: requests.cpu=200m, limited: requests.cpu=300m"
    );
    let silent = value!({"spec": {"containers": [{"name": "c", "resources": {}}]}});
    assert_eq!(charged(&silent).unwrap_err(), "failed quota: q: must specify requests.cpu for: c");
    let mut unknown = quota();
    unknown.remove_at(&["status", "used", "pods"]);
    assert_eq!(
        check(of_pods(&pod("1m"), None), &unknown).unwrap_err(),
        "status unknown for quota: q, resources: pods,requests.cpu"
    );
}

#[test]
fn pods_as_a_whole_count_and_need_not_be_stated_by_containers() {
    let mut whole = value!({"spec": {"containers": [{"name": "c", "resources": {}}]}});
    whole.set_at(&["spec", "resources", "requests", "cpu"], "60m");
    let after = check(of_pods(&whole, None), &quota()).unwrap().unwrap();
    assert_eq!(shown(&after), ["pods=1", "requests.cpu=260m"]);
    whole.set_at(&["spec", "overhead", "cpu"], "50m");
    assert!(check(of_pods(&whole, None), &quota()).is_err(), "overhead counts");
}

#[test]
fn a_pod_that_moves_between_scopes_is_charged_as_a_whole() {
    let mut ending = quota();
    ending.set_at(&["spec", "scopes"], value!(["Terminating"]));
    let (before, mut after) = (pod("100m"), pod("100m"));
    let unmoved = of_pods(&after, Some(&before));
    assert!(!unmoved.is_due());
    after.set_at(&["spec", "activeDeadlineSeconds"], 5);
    let charged = check(of_pods(&after, Some(&before)), &ending).unwrap().unwrap();
    assert_eq!(shown(&charged), ["pods=1", "requests.cpu=300m"]);
    assert_eq!(check(of_pods(&after, Some(&before)), &quota()), Ok(None), "its use of this quota does not grow");
}

#[test]
fn only_growth_is_charged_again() {
    let service = |kind: &str| value!({"spec": {"type": kind, "ports": [{"port": 80}]}});
    let mut quota = quota();
    let limits = value!({"services": "5", "services.nodeports": "5"});
    quota.set_at(&["status"], value!({"hard": (limits.clone()), "used": limits}));
    quota.set_at(&["status", "used", "services.nodeports"], "1");
    let charge = |object: &Value, old: &Value| {
        let of = Charge { group: "", resource: "services", subresource: "", object, old: Some(old), now: NOW };
        check(of, &quota).unwrap().map(|after| shown(&after))
    };
    let grown = charge(&service("NodePort"), &service("ClusterIP"));
    assert_eq!(grown, Some(vec!["services.nodeports=2".to_owned()]));
    assert_eq!(charge(&service("ClusterIP"), &service("NodePort")), None);
}

#[test]
fn scopes_choose_pods_and_claims() {
    let mut best_effort = quota();
    best_effort.set_at(&["spec", "scopes"], value!(["BestEffort"]));
    assert_eq!(check(of_pods(&pod("100m"), None), &best_effort), Ok(None));
    let of_class = |operator: &str, values: Value, class: &str| {
        let mut quota = quota();
        let selector = value!({"scopeName": "VolumeAttributesClass", "operator": operator, "values": values});
        quota.set_at(&["spec", "scopeSelector", "matchExpressions"], vec![selector]);
        quota.set_at(
            &["status"],
            value!({"hard": {"persistentvolumeclaims": "1"}, "used": {"persistentvolumeclaims": "0"}}),
        );
        let claim = value!({"spec": {"volumeAttributesClassName": class}});
        let resource = "persistentvolumeclaims";
        let charge = Charge { group: "", resource, subresource: "", object: &claim, old: None, now: NOW };
        check(charge, &quota).unwrap().is_some()
    };
    assert!(of_class("In", value!(["gold"]), "gold") && !of_class("In", value!(["gold"]), "silver"));
    assert!(of_class("NotIn", value!(["gold"]), "") && !of_class("NotIn", value!(["gold"]), "gold"));
    assert!(of_class("Exists", Value::Null, "gold") && !of_class("Exists", Value::Null, ""));
    assert!(of_class("DoesNotExist", Value::Null, "") && !of_class("DoesNotExist", Value::Null, "gold"));
}

#[test]
fn claims_count_devices_of_each_class_at_worst() {
    let exactly = |class: &str, mode: &str, count: i64| value!({"exactly": {"deviceClassName": class, "allocationMode": mode, "count": count}});
    let either = value!({"firstAvailable": [
        {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
        {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        {"deviceClassName": "nic", "allocationMode": "ExactCount", "count": 1}
    ]});
    let requests = vec![exactly("gpu", "ExactCount", 2), exactly("disk", "All", 0), either];
    let claim = value!({"spec": {"devices": {"requests": requests}}});
    assert_eq!(
        shown(&usage("resource.k8s.io", "resourceclaims", &claim, NOW)),
        [
            "count/resourceclaims.resource.k8s.io=1",
            "disk.deviceclass.resource.k8s.io/devices=32",
            "gpu.deviceclass.resource.k8s.io/devices=5",
            "nic.deviceclass.resource.k8s.io/devices=1",
        ]
    );
}

#[test]
fn counts_begin_at_zero_and_skip_ended_pods() {
    let quota = value!({"spec": {"hard": {"pods": "5", "count/pods": "5", "requests.cpu": "1", "secrets": "2"}}});
    assert!(is_uncounted(&quota));
    let mut tally = Tally::new(&quota, "", "pods", NOW);
    let mut over = pod("100m");
    over.set_at(&["status", "phase"], "Succeeded");
    let mut gone = pod("100m");
    gone.set_at(&["metadata", "deletionTimestamp"], "2020-01-01T00:00:00Z");
    gone.set_at(&["metadata", "deletionGracePeriodSeconds"], 30);
    for pod in [&pod("100m"), &over, &gone] {
        tally.add(pod);
    }
    assert_eq!(shown(&tally.used()), ["count/pods=3", "pods=1", "requests.cpu=100m"]);
    let mut counted = quota.clone();
    counted.set_at(&["status", "hard"], quota.at(&["spec", "hard"]).clone());
    counted.set_at(&["status", "used"], quota.at(&["spec", "hard"]).clone());
    assert!(!is_uncounted(&counted));
}
