use flotilla_proto::value;

use super::*;
use crate::audit::requested::ObjectRef;
use crate::audit::stage::Stage;

fn policy(rules: Value) -> Policy {
    Policy::of(&value!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})).unwrap()
}

fn refused(rules: Value) -> String {
    Policy::of(&value!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})).unwrap_err()
}

fn level(policy: &Policy, object: ObjectRef<'_>) -> Level {
    policy.decide(None, &Requested { verb: "get", path: "", object: Some(object) }).level
}

#[test]
fn rules_match_resources_and_subresources() {
    let pods = ObjectRef { version: "v1", resource: "pods", ..ObjectRef::default() };
    let log = ObjectRef { subresource: "log", ..pods };
    for (rule, of_pods, of_log) in [
        ("pods", true, false),
        ("pods/log", false, true),
        ("*", true, true),
        ("*/log", false, true),
        ("pods/*", true, true),
        ("*/status", false, false),
    ] {
        let policy = policy(value!([{"level": "Metadata", "resources": [{"group": "", "resources": [rule]}]}]));
        assert_eq!(level(&policy, pods) == Level::Metadata, of_pods, "{rule}");
        assert_eq!(level(&policy, log) == Level::Metadata, of_log, "{rule}");
    }
    let named = policy(value!([
        {"level": "Request", "resources": [{"group": "", "resources": ["pods"], "resourceNames": ["a"]}]},
        {"level": "Metadata", "namespaces": [""]}
    ]));
    assert_eq!(level(&named, ObjectRef { name: "a", namespace: "n", ..pods }), Level::Request);
    assert_eq!(level(&named, ObjectRef { name: "b", namespace: "n", ..pods }), Level::None);
    assert_eq!(level(&named, ObjectRef { name: "b", ..pods }), Level::Metadata);
}

#[test]
fn rules_match_users_and_paths() {
    let policy = policy(value!([
        {"level": "None", "users": ["ann"], "nonResourceURLs": ["/healthz*", "/version"]},
        {"level": "Request", "userGroups": ["devs"], "omitStages": ["RequestReceived"]},
        {"level": "Metadata", "nonResourceURLs": ["*"], "omitManagedFields": true}
    ]));
    let ann = User { name: "ann".into(), ..User::default() };
    let dev = User { name: "dan".into(), groups: vec!["devs".into()], ..User::default() };
    let requested = |path| Requested { verb: "get", path, object: None };
    assert_eq!(policy.decide(Some(&ann), &requested("/healthz/ping")).level, Level::None);
    assert_eq!(policy.decide(Some(&ann), &requested("/version/")).level, Level::Metadata);
    assert!(policy.decide(None, &requested("/healthz")).without_managed_fields);
    let decision = policy.decide(Some(&dev), &requested("/healthz"));
    assert!(decision.omitted.has(Stage::RequestReceived) && !decision.omitted.has(Stage::ResponseComplete));
    assert_eq!(
        policy.decide(None, &Requested { object: Some(ObjectRef::default()), ..requested("/") }).level,
        Level::None
    );
}

#[test]
fn wrong_policies_are_refused() {
    assert_eq!(refused(value!([])), "loaded illegal policy with 0 rules");
    assert_eq!(refused(value!([{}])), "rules[0].level: Required value");
    assert_eq!(
        refused(value!([{"level": "All"}])),
        "rules[0].level: Unsupported value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \
         \"RequestResponse\""
    );
    assert_eq!(
        refused(value!([{"level": "None", "nonResourceURLs": ["a*b"], "omitStages": ["x"]}])),
        "[rules[0].nonResourceURLs[0]: Invalid value: \"a*b\": non-resource URL rules must begin with a '/' character, \
         rules[0].nonResourceURLs[0]: Invalid value: \"a*b\": non-resource URL wildcards '*' must be the final \
         character of the rule, rules[0].omitStages[0]: Invalid value: \"x\": allowed stages are \
         RequestReceived,ResponseStarted,ResponseComplete,Panic]"
    );
    let error = Policy::of(&value!({"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy"})).unwrap_err();
    assert!(error.contains("no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\""), "{error}");
}
