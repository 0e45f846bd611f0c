use super::*;
use crate::access::rbac::uncovered;
use flotilla_proto::value;

fn input() -> BootstrapInput {
    BootstrapInput {
        service_cidrs: vec!["10.96.0.0/16".into()],
        port: 6443,
        client_ca: Some("ca".into()),
        front_proxy: None,
        enablement: Enablement::default(),
        now: "2026-01-02T03:04:05Z".into(),
    }
}

fn find<'a>(objects: &'a [BootstrapObject], resource: &str, name: &str) -> &'a BootstrapObject {
    let mut found = objects.iter().filter(|s| s.resource == resource && s.object.str_at(&["metadata", "name"]) == name);
    found.next().unwrap_or_else(|| panic!("no {resource} {name}"))
}

#[test]
fn tables_parse_and_names_are_unique() {
    let objects = objects(&input()).expect("tables parse");
    let mut names: Vec<_> = objects
        .iter()
        .map(|s| (s.resource, s.object.str_at(&["metadata", "namespace"]), s.object.str_at(&["metadata", "name"])))
        .collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    let count = |resource| objects.iter().filter(|s| s.resource == resource).count();
    assert_eq!((count("clusterroles"), count("clusterrolebindings")), (69, 50));
    assert_eq!((count("roles"), count("rolebindings")), (7, 7));
    assert_eq!((count("flowschemas"), count("prioritylevelconfigurations"), count("apiservices")), (11, 8, 21));
}

#[test]
fn aggregated_roles_have_the_rules_of_their_sources() {
    let objects = objects(&input()).expect("tables parse");
    let rules = |name| {
        let applied = find(&objects, "clusterroles", name).applied.as_ref().expect("aggregated");
        applied.fields.list_at(&["rules"]).to_vec()
    };
    let (admin, edit, view) = (rules("admin"), rules("edit"), rules("view"));
    assert!(!view.is_empty() && view.iter().all(|rule| edit.contains(rule)));
    assert!(edit.len() > view.len() && edit.iter().all(|rule| admin.contains(rule)));
    assert!(admin.len() > edit.len());
}

#[test]
fn published_addresses_read_back_as_written() {
    let addresses = ["192.0.2.7", "192.0.2.8"].map(|address| address.parse().expect("an address"));
    let [endpoints, slice] = endpoints(&addresses, 6443);
    assert_eq!(
        *endpoints.object.at(&["subsets"]),
        value!([{
            "addresses": [{"ip": "192.0.2.7"}, {"ip": "192.0.2.8"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]
        }])
    );
    assert_eq!(published(&endpoints.object), addresses);
    assert_eq!(slice.object.list_at(&["endpoints"]).len(), 2);
}

#[test]
fn the_service_has_the_first_address_of_its_range() {
    let objects = objects(&input()).expect("tables parse");
    assert_eq!(find(&objects, "services", "kubernetes").object.str_at(&["spec", "clusterIP"]), "10.96.0.1");
    let six = BootstrapInput { service_cidrs: vec!["fd00:1::/108".into()], ..input() };
    let six = super::objects(&six).expect("tables parse");
    assert_eq!(find(&six, "services", "kubernetes").object.str_at(&["spec", "clusterIP"]), "fd00:1::1");
}

#[test]
fn objects_that_are_as_wanted_are_not_written() {
    for desired in objects(&input()).expect("tables parse") {
        let mut existing = desired.object.clone();
        if let Some(applied) = desired.applied.as_ref().filter(|applied| applied.subresource == "status") {
            existing.set_at(&["status"], applied.fields.at(&["status"]).clone());
        }
        assert_eq!(desired.renewal(&existing), Renewal::Unchanged, "{:?}", desired.object);
    }
}

#[test]
fn objects_that_a_running_server_maintains_are_listed() {
    let objects = objects(&input()).expect("tables parse");
    let mut kept: Vec<_> = objects
        .iter()
        .filter(|desired| desired.trigger != ReconcileTrigger::AtStart)
        .map(|desired| (desired.resource, desired.trigger))
        .collect();
    kept.dedup();
    assert_eq!(
        kept,
        [
            ("namespaces", ReconcileTrigger::Missing),
            ("prioritylevelconfigurations", ReconcileTrigger::Always),
            ("flowschemas", ReconcileTrigger::Always),
            ("servicecidrs", ReconcileTrigger::Always),
            ("configmaps", ReconcileTrigger::Always),
            ("services", ReconcileTrigger::Missing),
        ]
    );
}

#[test]
fn the_default_range_gets_a_second_family_and_a_missing_condition() {
    let two = BootstrapInput { service_cidrs: vec!["10.96.0.0/16".into(), "fd00::/112".into()], ..input() };
    let (one, two) = (objects(&input()).expect("tables parse"), objects(&two).expect("tables parse"));
    let (one, two) = (find(&one, "servicecidrs", "kubernetes"), find(&two, "servicecidrs", "kubernetes"));
    assert_eq!(one.renewal(&one.object), Renewal::Apply);
    let Renewal::Update(grown) = two.renewal(&one.object) else { panic!("it does not grow") };
    assert_eq!(grown.at(&["spec"]), two.object.at(&["spec"]));
    assert_eq!(one.renewal(&two.object), Renewal::Unchanged, "it is another one's");
    let mut refused = one.object.clone();
    refused.set_at(&["status", "conditions"], value!([{"type": "Ready", "status": "False"}]));
    assert_eq!(one.renewal(&refused), Renewal::Unchanged);
    let mut going = one.object.clone();
    going.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(one.renewal(&going), Renewal::Unchanged);
}

#[test]
fn the_start_of_token_tracking_is_a_date() {
    let objects = objects(&input()).expect("tables parse");
    let desired = find(&objects, "configmaps", "kube-apiserver-legacy-service-account-token-tracking");
    let mut existing = desired.object.clone();
    existing.set_at(&["data", "since"], "2020-02-30");
    assert_eq!(desired.renewal(&existing), Renewal::Update(desired.object.clone()));
    existing.set_at(&["data", "since"], "2020-02-29");
    assert_eq!(desired.renewal(&existing), Renewal::Unchanged);
}

#[test]
fn roles_regain_lost_grants_and_keep_added_ones() {
    let objects = objects(&input()).expect("tables parse");
    let desired = find(&objects, "clusterroles", "system:basic-user");
    let own = value!({"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]});
    let mut existing = desired.object.clone();
    existing.set_at(&["rules"], vec![own.clone()]);
    let Renewal::Update(renewed) = desired.renewal(&existing) else { panic!("not renewed") };
    assert_eq!(renewed.list_at(&["rules"])[0], own);
    assert!(uncovered(renewed.list_at(&["rules"]), desired.object.list_at(&["rules"])).is_empty());
    existing.set_at(&["metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"], "false");
    assert_eq!(desired.renewal(&existing), Renewal::Unchanged);
}

#[test]
fn bindings_regain_subjects_and_are_replaced_if_their_role_differs() {
    let objects = objects(&input()).expect("tables parse");
    let desired = find(&objects, "clusterrolebindings", "system:public-info-viewer");
    let mut existing = desired.object.clone();
    existing.set_at(&["subjects"], vec![]);
    assert_eq!(desired.renewal(&existing), Renewal::Update(desired.object.clone()));
    existing.set_at(&["roleRef", "name"], "other");
    assert_eq!(desired.renewal(&existing), Renewal::Replace);
}

#[test]
fn the_annotation_decides_whether_suggested_flow_control_is_renewed() {
    let objects = objects(&input()).expect("tables parse");
    let desired = find(&objects, "prioritylevelconfigurations", "workload-low");
    let mut existing = desired.object.clone();
    existing.set_at(&["spec", "limited", "nominalConcurrencyShares"], 7);
    assert_eq!(desired.renewal(&existing), Renewal::Update(desired.object.clone()));
    existing.set_at(&["metadata", "annotations", "apf.kubernetes.io/autoupdate-spec"], "false");
    assert_eq!(desired.renewal(&existing), Renewal::Unchanged);
    existing.remove_at(&["metadata", "annotations"]);
    existing.set_at(&["metadata", "generation"], 2);
    let Renewal::Update(marked) = desired.renewal(&existing) else { panic!("not marked") };
    assert_eq!(marked.int_at(&["spec", "limited", "nominalConcurrencyShares"]), Some(7));
    assert_eq!(marked.str_at(&["metadata", "annotations", "apf.kubernetes.io/autoupdate-spec"]), "false");

    let exempt = find(&objects, "prioritylevelconfigurations", "exempt");
    let mut existing = exempt.object.clone();
    existing.set_at(&["spec", "exempt", "lendablePercent"], 9);
    assert_eq!(exempt.renewal(&existing), Renewal::Unchanged);
}
