use flotilla_proto::value;

use super::*;

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.into(), groups: groups.iter().map(|group| (*group).into()).collect(), ..User::default() }
}

fn rule(rule: &Value) -> FlowRule {
    FlowRule::list(&value!({"spec": {"rules": [(rule.clone())]}}))[0].clone()
}

/// Returns whether a rule with this subject matches a user.
fn is(subject: Value, user: &User) -> bool {
    let everything = value!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
    let rule = rule(&value!({"subjects": [subject], "nonResourceRules": everything}));
    rule.is_for(user, &Attributes::Path { verb: "get", path: "/x" })
}

#[test]
fn a_rule_matches_its_subjects() {
    let ann = user("ann", &["devs", "system:authenticated"]);
    let account = user("system:serviceaccount:ns:a", &["system:serviceaccounts"]);
    let named = |kind: &str, field: &str, name: &str| value!({"kind": kind, field: {"name": name}});
    let account_of = |namespace: &str, name: &str| value!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}});
    for (subject, of_ann, of_account) in [
        (named("User", "user", "ann"), true, false),
        (named("User", "user", "*"), true, true),
        (named("User", "user", "system:serviceaccount:ns:a"), false, true),
        (named("Group", "group", "devs"), true, false),
        (named("Group", "group", "dev"), false, false),
        (named("Group", "group", "*"), true, true),
        (account_of("ns", "a"), false, true),
        (account_of("ns", "b"), false, false),
        (account_of("ns", "*"), false, true),
        (account_of("n", "*"), false, false),
        (named("Robot", "user", "*"), false, false),
    ] {
        assert_eq!((is(subject.clone(), &ann), is(subject.clone(), &account)), (of_ann, of_account), "{subject:?}");
    }
}

#[test]
fn a_path_of_a_rule_leads_to_paths_below_it() {
    let get = |rule: &str, path: &str| leads_to(rule, path);
    for (rule, path, leads) in [
        ("*", "/", true),
        ("/healthz", "/healthz", true),
        ("/healthz", "/healthz/etcd", true),
        ("/healthz", "/healthzz", false),
        ("/healthz/", "/healthz", false),
        ("/healthz/*", "/healthz", false),
        ("/healthz/*", "/healthz/", true),
        ("/healthz/*", "/healthz/a/b", true),
        ("/apis*", "/apis/apps", true),
        ("/apis*", "/apis", false),
        ("/", "/version", true),
    ] {
        assert_eq!(get(rule, path), leads, "{rule} {path}");
    }
    let rule = PathRule { verbs: Words::These(["get".into()].into()), paths: ["/a".into()].into() };
    assert!(rule.is_for("get", "/a") && !rule.is_for("post", "/a"));
}

#[test]
fn a_rule_matches_verb_resource_group_and_namespace() {
    let of = |verb, group, resource, subresource, namespace| ResourceAttributes {
        verb,
        group,
        resource,
        subresource,
        namespace,
        ..ResourceAttributes::default()
    };
    let read = |rule: Value| ResourceRule::read(&rule);
    let log = of("get", "", "pods", "log", "ns");
    for (resources, matches) in
        [(&["*"][..], true), (&["pods/log"], true), (&["pods"], false), (&["*/log"], false), (&["pods/*"], false)]
    {
        let resources: Vec<Value> = resources.iter().map(|text| Value::from(*text)).collect();
        let rule = read(value!({"verbs": ["*"], "apiGroups": ["*"], "resources": resources, "namespaces": ["*"]}));
        assert_eq!(rule.is_for(&log), matches, "{rule:?}");
    }
    let everywhere = read(value!({
        "verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["*"], "namespaces": ["*"],
    }));
    assert!(everywhere.is_for(&of("list", "apps", "deployments", "", "ns")));
    assert!(!everywhere.is_for(&of("watch", "apps", "deployments", "", "ns")));
    assert!(!everywhere.is_for(&of("get", "batch", "jobs", "", "ns")));
    assert!(!everywhere.is_for(&of("list", "", "nodes", "", "")), "it is for namespaces alone");
    let cluster = read(value!({
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
    }));
    assert!(cluster.is_for(&of("list", "", "nodes", "", "")));
    assert!(cluster.is_for(&of("", "", "pods", "", "")), "a method without a verb, across namespaces");
    assert!(!cluster.is_for(&of("list", "", "pods", "", "ns")));
    let one = read(value!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["a", "b"]}));
    assert!(one.is_for(&of("get", "", "pods", "", "b")) && !one.is_for(&of("get", "", "pods", "", "c")));
    assert!(!one.is_for(&of("get", "", "pods", "", "")));
}

#[test]
fn paths_and_resources_are_apart() {
    let nobody = user("ann", &["a"]);
    let everything = FlowRule::everything_of(&["a"]);
    assert!(everything.is_for(&nobody, &Attributes::Path { verb: "put", path: "/x" }));
    assert!(everything.is_for(&nobody, &Attributes::Resource(ResourceAttributes::default())));
    assert!(!everything.is_for(&user("ann", &["b"]), &Attributes::Path { verb: "put", path: "/x" }));
    let paths = rule(&value!({
        "subjects": [{"kind": "Group", "group": {"name": "a"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }));
    assert!(paths.is_for(&nobody, &Attributes::Path { verb: "get", path: "/" }));
    assert!(!paths.is_for(&nobody, &Attributes::Resource(ResourceAttributes::default())));
}
