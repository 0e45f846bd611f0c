use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::schema::{Ref, Resource};
use flotilla_proto::value::Value;

use super::health::{Health, ServerPart};
use super::*;
use crate::enablement::Enablement;
use crate::request::negotiate::{Media, Representation};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn documents() -> Documents {
    documents_of(&Enablement::default())
}

fn documents_of(enablement: &Enablement) -> Documents {
    Documents::build(&built_in(enablement).expect("priorities parse"), "127.0.0.1:6443")
}

fn get<'a>(path: &'a str, accept: &'a str) -> Request<'a> {
    Request { method: "GET", path, accept, ..Request::default() }
}

fn encoded(answer: &Answer) -> Value {
    let Body::Encoded(bytes) = &answer.body else { panic!("not encoded") };
    json::parse(bytes).expect("JSON")
}

fn body(documents: &Documents, path: &str, accept: &str) -> Value {
    encoded(&documents.answer(&get(path, accept)).expect("a document").expect("acceptable"))
}

fn names<'a>(list: &'a [Value], path: &[&str]) -> Vec<&'a str> {
    list.iter().map(|item| item.str_at(path)).collect()
}

#[test]
fn every_resource_is_in_its_list_and_in_the_aggregated_document() {
    let documents = documents_of(&"api/all=true".parse().expect("all versions"));
    let all = body(&documents, "/apis", AGGREGATED);
    for group in catalogue::groups().iter().filter(|group| !group.name.is_empty()) {
        let items = all.list_at(&["items"]);
        let item = items.iter().find(|item| item.str_at(&["metadata", "name"]) == group.name).expect("listed");
        for (version, listed) in group.versions.iter().zip(item.list_at(&["versions"])) {
            assert_eq!(listed.str_at(&["version"]), version.name);
            let wanted: Vec<&str> = version.resources.iter().map(|of| &*of.name).collect();
            assert_eq!(names(listed.list_at(&["resources"]), &["resource"]), wanted);
            let list = body(&documents, &format!("/apis/{}/{}", group.name, version.name), "");
            let legacy = names(list.list_at(&["resources"]), &["name"]).into_iter().filter(|name| !name.contains('/'));
            assert_eq!(legacy.collect::<Vec<_>>(), wanted);
        }
    }
}

#[test]
fn kinds_of_other_groups_are_named_in_full() {
    let documents = documents();
    let list = body(&documents, "/apis/apps/v1/", "*/*");
    let find = |name: &str| {
        list.list_at(&["resources"]).iter().find(|entry| entry.str_at(&["name"]) == name).expect("listed").clone()
    };
    let scale = find("deployments/scale");
    assert_eq!((scale.str_at(&["group"]), scale.str_at(&["version"])), ("autoscaling", "v1"));
    assert!(find("deployments/status").get("group").is_none());
    assert!(body(&documents, "/api/v1", "").get("apiVersion").is_none());
}

#[test]
fn aggregated_discovery_wins_over_plain_clauses_and_knows_its_tag() {
    let documents = documents();
    let both = format!("application/json,{AGGREGATED}");
    let answer = documents.answer(&get("/api", &both)).expect("a document").expect("acceptable");
    assert_eq!(answer.content_type, AGGREGATED);
    let tag = answer.headers.iter().find(|(name, _)| *name == "etag").map(|(_, tag)| tag.to_string()).expect("a tag");
    let cached = Request { if_none_match: Some(&tag), ..get("/api", AGGREGATED) };
    let unchanged = documents.answer(&cached).expect("a document").expect("acceptable");
    assert_eq!(unchanged.status, 304);
    let star = Request { if_none_match: Some("*"), ..get("/api", AGGREGATED) };
    assert_eq!(documents.answer(&star).expect("a document").expect("acceptable").status, 200);
    for (path, accept, code) in [
        ("/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", 406),
        ("/apis/", AGGREGATED, 406),
        ("/apis/apps", AGGREGATED, 406),
        ("/api", "text/html", 406),
    ] {
        let refused = documents.answer(&get(path, accept)).expect("a document").expect_err("not acceptable");
        assert_eq!(refused.code, code, "{path} {accept}");
    }
    let yaml = AGGREGATED.replace("json", "yaml");
    let answer = documents.answer(&get("/api", &yaml)).expect("a document").expect("acceptable");
    assert!(matches!(answer.body, Body::Object { representation: Representation { media: Media::Yaml, .. }, .. }));
}

#[test]
fn unsupported_methods_and_unknown_paths_get_different_errors() {
    let documents = documents();
    let with = |method, path| documents.answer(&Request { method, path, ..Request::default() });
    assert_eq!(with("POST", "/api/v1").expect("a document").expect_err("not allowed").code, 405);
    assert!(with("DELETE", "/apis").expect("a document").is_ok());
    for path in ["/apis/apps/v9", "/api/v2"] {
        assert_eq!(with("GET", path).expect("within a group").expect_err("unknown").code, 404, "{path}");
    }
    assert!(with("GET", "/apis/nope").is_none() && with("GET", "/apis/nope/v1").is_none());
    assert!(documents.has_group("") && documents.has_group("apps") && !documents.has_group("nope"));
    assert!(root::answer(&get("/", ""), &documents).is_some());
    assert_eq!(version::answer(&get("/version/x", ""), "v1.36.3-a").expect("below").expect_err("unknown").code, 404);
    let version = encoded(&version::answer(&get("/version", ""), "v1.36.3-a").expect("there").expect("acceptable"));
    assert_eq!(version.str_at(&["gitVersion"]), "v1.36.3-a");
}

#[test]
fn custom_groups_come_last_with_their_versions_ranked() {
    let pods = catalogue::resource("", "v1", "pods").expect("a resource");
    let mut served = built_in(&Enablement::default()).expect("priorities parse");
    for version in ["v1alpha1", "v1", "v2beta1", "v2"] {
        let resource = Resource { name: Cow::Borrowed("gizmos"), group: "a.example.com".into(), ..pods.clone() };
        served.push(Served {
            group: "a.example.com".into(),
            version: version.to_owned().into(),
            group_priority: CUSTOM_GROUP_PRIORITY,
            version_priority: CUSTOM_VERSION_PRIORITY,
            custom: true,
            stale: false,
            reported: None,
            resources: vec![Ref::Shared(Arc::new(resource))],
        });
    }
    let documents = Documents::build(&served, "");
    let all = body(&documents, "/apis", AGGREGATED);
    let last = all.list_at(&["items"]).last().expect("some");
    assert_eq!(last.str_at(&["metadata", "name"]), "a.example.com");
    assert_eq!(names(last.list_at(&["versions"]), &["version"]), ["v2", "v1", "v2beta1", "v1alpha1"]);
    let resource = &last.list_at(&["versions"])[0].list_at(&["resources"])[0];
    assert_eq!(resource.str_at(&["responseKind", "group"]), "a.example.com");
    assert_eq!(body(&documents, "/apis/a.example.com", "").str_at(&["preferredVersion", "version"]), "v2");
}

#[test]
fn checks_report_the_health_of_their_parts() {
    let mut health = Health::default();
    let ask_of = |health: &Health, path, query| {
        let answer = health.answer(&Request { method: "GET", path, query, ..Request::default() }).expect("health");
        let Body::Encoded(bytes) = answer.body else { panic!("not encoded") };
        (answer.status, String::from_utf8(bytes.to_vec()).expect("text"))
    };
    assert_eq!(ask_of(&health, "/livez/ping", "").0, 200);
    assert_eq!(ask_of(&health, "/readyz/etcd", ""), (500, "internal server error: etcd is not ready\n".into()));
    // A part that waits for other servers is no reason to restart the process.
    assert_eq!(
        (ask_of(&health, "/livez", "exclude=crd-informer-synced").0, ask_of(&health, "/livez/etcd", "").0),
        (500, 200)
    );
    health.done(ServerPart::CustomResources);
    assert_eq!((ask_of(&health, "/livez", "").0, ask_of(&health, "/healthz", "").0), (200, 500));
    health.explain(ServerPart::Storage, || Err("it is alone"));
    assert_eq!(ask_of(&health, "/readyz/etcd", ""), (500, "internal server error: it is alone\n".into()));
    let (status, text) = ask_of(&health, "/readyz", "");
    assert!(
        status == 500 && text.contains("[-]etcd failed: reason withheld\n") && text.ends_with("readyz check failed\n")
    );
    let staying = Arc::new(AtomicBool::new(true));
    for part in [ServerPart::Storage, ServerPart::Bootstrap, ServerPart::Controllers] {
        assert!(!health.ready());
        health.done(part);
    }
    assert!(!health.ready());
    let stays = Arc::clone(&staying);
    health.follow(ServerPart::Staying, move || stays.load(Ordering::Relaxed));
    assert!(health.ready());
    assert!(health.results().all(|(_, _, passes)| passes));
    let ask = |path, query| ask_of(&health, path, query);
    assert_eq!(ask("/readyz", "exclude=etcd"), (200, "ok".into()));
    let (_, text) = ask("/livez", "verbose&exclude=etcd&exclude=nope");
    assert!(text.contains("[+]etcd excluded: ok\n"));
    assert!(text.ends_with("cannot be excluded: no matches for \"nope\"\nlivez check passed\n"));
    for path in ["/livez/shutdown", "/healthz/", "/healthz/nope", "/readyz/loopback-serving-certificate"] {
        assert_eq!(ask(path, "").0, 404, "{path}");
    }
    staying.store(false, Ordering::Relaxed);
    let failing: Vec<_> = health.results().filter(|(_, _, passes)| !passes).collect();
    assert_eq!(failing, [("readyz", "shutdown", false)]);
    assert_eq!((ask("/readyz", "").0, ask("/livez", "").0), (500, 200));
    assert!(health.answer(&Request { path: "/healthy", ..Request::default() }).is_none());
}
