use flotilla_proto::value;

use super::*;
use crate::custom::Definition;

/// The built-in resources, and custom ones with and without namespaces.
fn with_custom() -> Resources {
    let definition = |plural: &str, scope: &str| {
        let names = value!({"plural": plural, "kind": "Thing"});
        let definition = value!({
            "spec": {"group": "g.example", "scope": scope, "versions": [{"name": "v1", "served": true, "storage": true}]},
            "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]}
        });
        Arc::new(Definition::of(&definition).unwrap())
    };
    let resources = Resources::builtin();
    resources.define([&definition("notes", "Namespaced"), &definition("books", "Cluster")].into_iter());
    resources
}

#[test]
fn custom_resources_have_only_the_paths_that_their_definition_states() {
    let resources = with_custom();
    for (method, path, want) in [
        ("GET", "notes", "objects list g.example/notes -/-"),
        ("POST", "notes", "unserved create g.example/notes -/-"),
        ("DELETE", "notes", "unserved deletecollection g.example/notes -/-"),
        ("OPTIONS", "notes", "unserved nothing g.example/notes -/-"),
        ("OPTIONS", "namespaces/n/notes", "objects nothing g.example/notes n/-"),
        ("HEAD", "namespaces/n/notes/a", "objects get g.example/notes n/a"),
        ("GET", "namespaces/n/notes/a/nope", "objects get 404 n/a"),
        ("GET", "notes/a", "unserved get 404 -/a"),
        ("DELETE", "books", "objects deletecollection g.example/books -/-"),
        ("GET", "namespaces/n/books/a", "unserved get 404 n/a"),
    ] {
        let path = format!("/apis/g.example/v1/{path}");
        assert_eq!(summary(&resources, method, &path, false), want, "{method} {path}");
    }
}

/// Returns the route of a request as one line.
fn summary(resources: &Resources, method: &str, path: &str, watch: bool) -> String {
    let objects = |who: &str, RequestInfo { of, verb, served, .. }: RequestInfo| {
        let verb = verb.map_or("nothing", Verb::name);
        let served = served.map_or_else(|error| error.code.to_string(), |served| served.table.as_str().to_owned());
        let place = (of.namespace.as_deref().unwrap_or("-"), of.name.as_deref().unwrap_or("-"));
        format!("{who} {verb} {served} {}/{}", place.0, place.1)
    };
    match route(resources, method, path, watch) {
        Routed::Objects(info) => objects("objects", info),
        Routed::Unserved(info) => objects("unserved", info),
        other => format!("{other:?}"),
    }
}

#[test]
fn paths_and_methods_decide_routes() {
    let resources = Resources::builtin();
    for (method, path, watch, want) in [
        ("GET", "/api/v1/namespaces/n/pods/p", false, "objects get pods n/p"),
        ("GET", "/api/v1/namespaces/n/pods/p", true, "objects get pods n/p"),
        ("GET", "/api/v1/namespaces/n/pods", true, "objects watch pods n/-"),
        ("GET", "/api/v1/watch/namespaces/n/pods", false, "objects watch pods n/-"),
        ("GET", "/api/v1/%70ods", false, "objects list pods -/-"),
        ("POST", "/apis/apps/v1/namespaces/n/deployments", false, "objects create apps/deployments n/-"),
        ("DELETE", "/api/v1/namespaces/n/pods", false, "objects deletecollection pods n/-"),
        ("HEAD", "/api/v1/namespaces/n/pods/p", false, "objects nothing pods n/p"),
        ("GET", "/api/v1/namespaces/n/pods/p/nope", false, "objects get 404 n/p"),
        ("GET", "/api/v1/namespaces/n/nodes/p", false, "objects get 404 n/p"),
        ("GET", "/apis/apps/v9/deployments", false, "objects list 404 -/-"),
        ("GET", "/apis/example.com/v1/widgets", false, "unserved list 404 -/-"),
        ("GET", "/api/v1/watch", false, "WatchOfNothing"),
        ("GET", "/metrics", false, "Metrics"),
        ("GET", "/metrics/slis", false, "HealthMetrics"),
        ("POST", "/flotilla/v1/cluster/drain", false, "Cluster(\"drain\")"),
        ("GET", "/flotilla/v1/cluster", false, "Cluster(\"\")"),
        ("GET", "/flotilla/v1/backup", false, "Backup"),
        ("GET", "/apis/apps/v1", false, "Document"),
        ("GET", "/nothing", false, "Document"),
    ] {
        assert_eq!(summary(&resources, method, path, watch), want, "{method} {path}");
    }
}
