//! Ways to send a generated text: where it stands in a body, a path or a header.

use serde_json::{Value, json};

use super::recipe::Recipe;
use crate::support::{CONFIG_MAPS, Connection};
use crate::unreadable::WIDGETS;

/// Where the generated text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Body,
    /// In the query, escaped.
    Path,
    /// In the header of this name.
    Header(&'static str),
}

/// One way to send a generated text.
#[derive(Debug)]
pub struct Way {
    pub method: &'static str,
    pub path: &'static str,
    pub media: &'static str,
    pub place: Place,
    /// The surrounding text; `%%` stands for the generated one.
    text: &'static str,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const PODS: &str = "/api/v1/namespaces/default/pods?dryRun=All";
const POD: &str = "/api/v1/namespaces/default/pods/there?dryRun=All";
const NEW_WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets?dryRun=All";
const WIDGET: &str = "/apis/example.com/v1/namespaces/default/widgets/there?dryRun=All";
const APPLIED: &str = "/apis/example.com/v1/namespaces/default/widgets/there?dryRun=All&fieldManager=m&force=true";
const APPLIED_POD: &str = "/api/v1/namespaces/default/pods/there?dryRun=All&fieldManager=m&force=true";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles?dryRun=All";
const NETWORK_POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies?dryRun=All";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All";
const LISTED: &str = "/api/v1/namespaces/default/configmaps";

const fn body(method: &'static str, path: &'static str, media: &'static str, text: &'static str) -> Way {
    Way { method, path, media, place: Place::Body, text }
}

const fn query(path: &'static str, text: &'static str) -> Way {
    Way { method: "GET", path, media: JSON, place: Place::Path, text }
}

const fn header(name: &'static str) -> Way {
    Way { method: "GET", path: LISTED, media: JSON, place: Place::Header(name), text: "%%" }
}

/// Inputs whose cost an earlier search found not to be linear, each with the way to send it.
pub fn found() -> Vec<(&'static Way, Recipe)> {
    let versions = WAYS.iter().find(|way| way.path == DEFINITIONS && way.text.contains("\"versions\":%%"));
    versions.map(|way| (way, Recipe::list_of("null"))).into_iter().collect()
}

/// All ways. The first one sends a plain object.
pub static WAYS: &[Way] = &[
    body("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", JSON, r#"{"metadata":{"name":"x"},"data":%%}"#),
    body("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", JSON, "%%"),
    body("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", YAML, "metadata: {name: x}\ndata: %%"),
    body("POST", "/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Strict", JSON, "%%"),
    body("POST", "/api/v1/namespaces/default/secrets?dryRun=All", JSON, r#"{"metadata":{"name":"x"},"data":%%}"#),
    body(
        "POST",
        NEW_WIDGETS,
        JSON,
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":%%}"#,
    ),
    body("POST", NEW_WIDGETS, JSON, r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":%%}"#),
    body("POST", NEW_WIDGETS, YAML, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: x}\nspec:\n%%"),
    body("POST", NEW_WIDGETS, YAML, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: x}\nspec: %%"),
    body(
        "POST",
        NEW_WIDGETS,
        JSON,
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","ownerReferences":%%}}"#,
    ),
    body(
        "POST",
        NEW_WIDGETS,
        JSON,
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","labels":%%}}"#,
    ),
    body(
        "POST",
        NEW_WIDGETS,
        JSON,
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","managedFields":%%}}"#,
    ),
    body("PATCH", WIDGET, MERGE, r#"{"spec":%%}"#),
    body("PATCH", WIDGET, MERGE, "%%"),
    body("PATCH", WIDGET, OPERATIONS, "%%"),
    body("PATCH", WIDGET, OPERATIONS, r#"[{"op":"add","path":"/spec","value":%%}]"#),
    body(
        "PATCH",
        APPLIED,
        APPLY,
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"there"},"spec":%%}"#,
    ),
    body("PATCH", APPLIED, APPLY, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: there}\nspec:\n%%"),
    body("PATCH", POD, STRATEGIC, r#"{"spec":{"containers":%%}}"#),
    body("PATCH", POD, STRATEGIC, r#"{"metadata":{"annotations":%%}}"#),
    body("PATCH", POD, STRATEGIC, r#"{"spec":{"tolerations":%%}}"#),
    body(
        "PATCH",
        APPLIED_POD,
        APPLY,
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":%%}}"#,
    ),
    body("POST", PODS, JSON, r#"{"metadata":{"name":"x"},"spec":{"containers":%%}}"#),
    body("POST", PODS, JSON, r#"{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","env":%%}]}}"#),
    body(
        "POST",
        PODS,
        JSON,
        r#"{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":%%}}"#,
    ),
    body(
        "POST",
        PODS,
        JSON,
        r#"{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":%%}}"#,
    ),
    body("POST", PODS, JSON, r#"{"metadata":{"name":"x"},"spec":%%}"#),
    body(
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":%%}}}]}}"#,
    ),
    body(
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":%%}}}]}}"#,
    ),
    body(
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":%%}}"#,
    ),
    body("POST", REVIEWS, JSON, r#"{"spec":{"resourceAttributes":%%}}"#),
    body("POST", REVIEWS, JSON, "%%"),
    body("POST", ROLES, JSON, r#"{"metadata":{"name":"x"},"rules":%%}"#),
    body("POST", NETWORK_POLICIES, JSON, r#"{"metadata":{"name":"x"},"spec":{"podSelector":{},"ingress":%%}}"#),
    body(
        "POST",
        POLICIES,
        JSON,
        r#"{"metadata":{"name":"x"},"spec":{"matchConstraints":{"resourceRules":[]},"validations":%%}}"#,
    ),
    body("POST", "/api/v1/namespaces/default/pods/there/eviction?dryRun=All", JSON, "%%"),
    body("DELETE", "/api/v1/namespaces/default/configmaps/none", JSON, "%%"),
    query(LISTED, "labelSelector=%%"),
    query(LISTED, "fieldSelector=%%"),
    query(LISTED, "continue=%%"),
    query(LISTED, "%%"),
    header("Accept"),
    header("Authorization"),
    header("Impersonate-User"),
    header("Accept-Encoding"),
];

impl Way {
    /// Returns the path, the header if the text stands in one, and the body.
    pub fn put(&self, filling: &str) -> (String, Option<(&'static str, String)>, String) {
        let text = |filling: &str| self.text.replacen("%%", filling, 1);
        match self.place {
            Place::Body => (self.path.to_owned(), None, text(filling)),
            Place::Path => (format!("{}?{}", self.path, text(&escaped(filling))), None, String::new()),
            Place::Header(name) => {
                let value = filling.chars().filter(|character| (' '..='~').contains(character)).collect();
                (self.path.to_owned(), Some((name, value)), String::new())
            }
        }
    }
}

/// Escapes a text for a query. Leaves `=`, `,`, `&` and the characters of selectors as they are.
fn escaped(filling: &str) -> String {
    let mut escaped = String::with_capacity(filling.len() + 64);
    for byte in filling.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'=' | b',' | b'&' | b'!' | b'(' | b')' | b'.' | b'-' | b'/' => {
                escaped.push(char::from(byte));
            }
            b' ' => escaped.push('+'),
            _ => escaped.push_str(&format!("%{byte:02x}")),
        }
    }
    escaped
}

/// Creates the objects that the requests change or list.
pub fn prepare(client: &mut Connection) {
    let account = json!({"metadata": {"name": "default"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account);
    let make = |client: &mut Connection, path: &str, object: &Value| {
        client.post(path, object).expect(201);
    };
    let containers = json!([{"name": "c", "image": "i"}]);
    let pods = "/api/v1/namespaces/default/pods";
    make(client, pods, &json!({"metadata": {"name": "there"}, "spec": {"containers": containers}}));
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "there"},
        "spec": {"list": (0..100).collect::<Vec<_>>(), "map": {"a": 1}},
    });
    make(client, WIDGETS, &widget);
    for number in 0..20 {
        let labels = json!({"a": "b", "k": number.to_string()});
        make(client, CONFIG_MAPS, &json!({"metadata": {"name": format!("m{number}"), "labels": labels}}));
    }
}
