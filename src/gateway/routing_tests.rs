use super::*;

/// What a request comes to, in a line.
fn summary(resources: &Resources, method: &str, path: &str, watch: bool) -> String {
    let objects = |who: &str, RequestInfo { of, verb, served }: RequestInfo| {
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
fn requests_come_to_those_who_answer_them() {
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
