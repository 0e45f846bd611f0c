//! Tests of policies in a file. Kubernetes 1.36.3 was asked about policies like these.

use flotilla_proto::value;

use super::*;

const BEGIN: &str = r#"{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":"#;

fn policies(lines: &[&str]) -> Policies {
    Policies::parse(&lines.join("\n")).expect("policies")
}

/// Returns the policy of version `v1beta1` with these fields.
fn current(spec: &str) -> Policies {
    policies(&[&format!("{BEGIN}{{{spec}}}}}")])
}

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.into(), groups: groups.iter().map(|group| (*group).into()).collect(), ..User::default() }
}

fn resource<'a>(verb: &'a str, namespace: &'a str, group: &'a str, resource: &'a str) -> Attributes<'a> {
    Attributes::Resource(ResourceAttributes { verb, namespace, group, resource, ..ResourceAttributes::default() })
}

#[test]
fn a_policy_concerns_its_user_and_its_group() {
    let get = resource("get", "ns", "", "pods");
    let of = |subject: &str| current(&format!(r#"{subject} "namespace": "ns", "resource": "pods""#));
    let (ann, in_team) = (user("ann", &[]), user("ann", &["team"]));
    let signed_in = user("bob", &[AUTHENTICATED]);
    for (subject, asked, expected) in [
        (r#""user": "ann","#, &ann, true),
        (r#""user": "ann","#, &signed_in, false),
        (r#""group": "team","#, &in_team, true),
        (r#""group": "team","#, &ann, false),
        (r#""user": "ann", "group": "team","#, &in_team, true),
        (r#""user": "ann", "group": "team","#, &ann, false),
        (r#""user": "bob", "group": "team","#, &in_team, false),
        (r#""user": "*","#, &signed_in, true),
        (r#""user": "*","#, &ann, false),
        (r#""user": "ann", "group": "*","#, &signed_in, true),
        ("", &signed_in, false),
    ] {
        assert_eq!(of(subject).allow(asked, &get), expected, "{subject} {asked:?}");
    }
}

#[test]
fn a_policy_allows_its_resources() {
    let ann = user("ann", &[]);
    for (spec, asked, expected) in [
        (r#""namespace": "ns", "resource": "pods""#, resource("delete", "ns", "", "pods"), true),
        (r#""namespace": "ns", "resource": "pods""#, resource("delete", "other", "", "pods"), false),
        (r#""namespace": "ns", "resource": "pods""#, resource("delete", "ns", "apps", "pods"), false),
        (r#""namespace": "ns", "resource": "pods""#, resource("delete", "ns", "", "secrets"), false),
        (r#""namespace": "*", "resource": "*", "apiGroup": "*""#, resource("use", "", "x", "y"), true),
        (r#""namespace": "ns", "resource": "*", "apiGroup": "*""#, resource("get", "", "", "nodes"), false),
        (r#""resource": "nodes""#, resource("delete", "", "", "nodes"), true),
        (r#""resource": "nodes", "readonly": true"#, resource("watch", "", "", "nodes"), true),
        (r#""resource": "nodes", "readonly": true"#, resource("delete", "", "", "nodes"), false),
    ] {
        let spec = format!(r#""user": "ann", {spec}"#);
        assert_eq!(current(&spec).allow(&ann, &asked), expected, "{spec} {asked:?}");
    }
}

#[test]
fn a_policy_allows_its_paths() {
    let ann = user("ann", &[]);
    for (path, asked, expected) in [
        ("*", "/metrics", true),
        ("/metrics", "/metrics", true),
        ("/metrics", "/metrics/x", false),
        ("/metrics/*", "/metrics/x", true),
        ("/metrics/*", "/metrics", false),
        ("", "/metrics", false),
    ] {
        let policies = current(&format!(r#""user": "ann", "nonResourcePath": "{path}", "readonly": true"#));
        assert_eq!(policies.allow(&ann, &Attributes::Path { verb: "get", path: asked }), expected, "{path} {asked}");
        assert!(!policies.allow(&ann, &Attributes::Path { verb: "post", path: asked }), "{path} {asked}");
    }
    let everything = current(r#""user": "ann", "namespace": "*", "resource": "*", "apiGroup": "*""#);
    assert!(!everything.allow(&ann, &Attributes::Path { verb: "get", path: "/metrics" }));
}

#[test]
fn policies_without_a_version_match_what_they_do_not_state() {
    let file = policies(&[
        "# comment",
        "",
        r#"  {"user": "ann"}  "#,
        r#"{"user": "in-ns", "namespace": "ns"}"#,
        r#"{"user": "of-pods", "resource": "pods", "readonly": true}"#,
        r#"{"apiVersion": "abac.authorization.kubernetes.io/v0", "kind": "Policy", "group": "team", "resource": "x"}"#,
        r#"{"namespace": "open", "resource": "pods"}"#,
        "user: in-yaml",
    ]);
    let path = Attributes::Path { verb: "post", path: "/x" };
    for (asking, asked, expected) in [
        (user("ann", &[]), resource("delete", "", "x", "y"), true),
        (user("ann", &[]), path, true),
        (user("in-ns", &[]), resource("delete", "ns", "x", "y"), true),
        (user("in-ns", &[]), resource("delete", "other", "x", "y"), false),
        (user("in-ns", &[]), path, false),
        (user("of-pods", &[]), resource("list", "", "x", "pods"), true),
        (user("of-pods", &[]), resource("delete", "", "x", "pods"), false),
        (user("eve", &["team"]), resource("delete", "ns", "", "x"), true),
        (user("eve", &[AUTHENTICATED]), resource("delete", "open", "", "pods"), true),
        (user("eve", &[]), resource("delete", "open", "", "pods"), false),
        (user("in-yaml", &[]), path, true),
    ] {
        assert_eq!(file.allow(&asking, &asked), expected, "{asking:?} {asked:?}");
    }
}

#[test]
fn policies_are_shown_as_rules() {
    let file = policies(&[
        &format!(r#"{BEGIN}{{"user": "ann", "namespace": "ns", "resource": "pods", "readonly": true}}}}"#),
        &format!(r#"{BEGIN}{{"user": "ann", "nonResourcePath": "/metrics"}}}}"#),
        r#"{"user": "ann"}"#,
    ]);
    let rules = |namespace: &str| file.rules(&user("ann", &[]), namespace).iter().map(Rule::to_value).collect();
    let everything = [
        value!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        value!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ];
    let shown: Vec<Value> = rules("ns");
    assert_eq!(shown[0], value!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]}));
    assert_eq!(shown[1..], everything);
    let shown: Vec<Value> = rules("other");
    assert_eq!(shown, everything);
}

#[test]
fn a_wrong_line_is_named() {
    let struct_of =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let unregistered = |version: &str, kind: &str| {
        format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\"")
    };
    let field = |kind: &str, field: &str| format!("json: cannot unmarshal {kind} into Go struct field {field}");
    for (line, expected) in [
        (format!("{BEGIN}{{\"user\": 3}}}}"), field("number", "PolicySpec.spec.user of type string")),
        (format!("{BEGIN}{{\"readonly\": \"true\"}}}}"), field("string", "PolicySpec.spec.readonly of type bool")),
        (format!("{BEGIN}[]}}"), field("array", "Policy.spec of type v1beta1.PolicySpec")),
        (r#"{"user": 5}"#.to_owned(), field("number", "Policy.user of type string")),
        (r#"{"readonly": 1}"#.to_owned(), field("number", "Policy.readonly of type bool")),
        (
            "nonsense".to_owned(),
            format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type \
                 {struct_of}"
            ),
        ),
        (
            r#"{"kind": 5}"#.to_owned(),
            format!("couldn't get version/kind; json parse error: {}", field("number", ".kind of type string")),
        ),
        (
            r#"{"user": "x""#.to_owned(),
            "couldn't get version/kind; json parse error: unexpected end of JSON input".into(),
        ),
        (r#"{"apiVersion": "v1", "kind": "Pod"}"#.to_owned(), unregistered("v1", "Pod")),
        (r#"{"apiVersion": "v1", "user": "x"}"#.to_owned(), unregistered("v1", "Policy")),
        (
            r#"{"apiVersion": "abac.authorization.kubernetes.io/v1", "kind": "Policy"}"#.to_owned(),
            unregistered("abac.authorization.kubernetes.io/v1", "Policy"),
        ),
        (
            r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1"}"#.to_owned(),
            "converting (v1beta1.Policy) to (v0.Policy): unknown conversion".to_owned(),
        ),
        (r#"{"kind": "Other", "user": "x"}"#.to_owned(), unregistered("abac.authorization.kubernetes.io/v0", "Other")),
        (r#"{"apiVersion": "a/b/c"}"#.to_owned(), "unexpected GroupVersion string: a/b/c".to_owned()),
    ] {
        let (number, text, why) = Policies::parse(&format!("# first\n{line}")).expect_err(&line);
        assert_eq!((number, &text, &why), (2, &line, &expected));
    }
    assert!(Policies::parse("null\n{}").is_ok(), "the reference takes policies without any field");
}
