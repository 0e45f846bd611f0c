use std::time::{Duration, Instant};

use flotilla_cluster::{Options, Store};
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::*;
use crate::access::tokens::{INVALID_SINCE, LAST_USED, SpareKey, Use};
use crate::config::PortRange;
use crate::drain::DrainBegin;
use crate::enablement::Enablement;
use crate::limits;
use crate::outbound::CredentialFiles;
use crate::request::{DeleteOptions, Propagation};
use crate::scratch::Scratch;
use crate::served::Served;
use crate::status::ApiError;
use crate::tables::{Tables, Target};

/// The longest time, on any machine, until the controllers have done what a test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Controllers over a store of their own.
struct Cluster {
    agent: Rc<Agent>,
    _dir: Scratch,
    controllers: Controllers,
    _begin: DrainBegin,
}

impl Cluster {
    async fn start() -> Self {
        let dir = Scratch::new();
        let spare = SpareKey::prepare(&dir);
        let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
        let registry = Arc::new(Registry::new(Tables::new(store), PortRange::NODE_PORTS));
        let issuer = Issuer::new(spare.open(&dir).unwrap(), "test".into());
        let (root_ca, host, member) = ("ROOT".into(), "host".into(), "member".into());
        let advertised = SocketAddr::from(([192, 0, 2, 7], 6443));
        let bootstrap = BootstrapInput {
            service_cidrs: Vec::new(),
            port: 6443,
            client_ca: None,
            front_proxy: None,
            enablement: Enablement::default(),
            now: crate::registry::now().to_string(),
        };
        let aggregation = Arc::new(Aggregation::new(Arc::clone(&registry), CredentialFiles::default(), None));
        let settings = Settings {
            publishes: true,
            embedded: true,
            member,
            issuer,
            legacy_uses: Arc::default(),
            root_ca,
            event_ttl: None,
            authority: Arc::new(Authority::open(&dir, "ca", "test-ca").unwrap()),
            advertised,
            bootstrap,
            aggregation,
            host,
        };
        let (begin, drain) = Drain::new();
        let controllers = start(&registry, &settings, &drain);
        Self { agent: Rc::new(Agent::new(registry, settings)), _dir: dir, controllers, _begin: begin }
    }

    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let served = self.agent.resource("", resource).unwrap();
        self.agent.get(Target::object(&served, namespace, name)).unwrap()
    }

    async fn create(&self, resource: &str, object: Value) -> String {
        let served = self.agent.resource("", resource).unwrap();
        let metadata = object.at(&["metadata"]).clone();
        let (namespace, name) = (metadata.str_at(&["namespace"]), metadata.str_at(&["name"]));
        let target = Target::resource(&served, namespace);
        self.agent.create(target, object).await.unwrap(); // the object may exist, like those of every cluster
        self.get(resource, namespace, name).unwrap().str_at(&["metadata", "uid"]).to_owned()
    }

    async fn edit(&self, resource: &str, namespace: &str, name: &str, edit: impl FnMut(&mut Value) + Send) {
        let served = self.agent.resource("", resource).unwrap();
        let target = Target::object(&served, namespace, name);
        self.agent.edit(target, "", edit).await.unwrap();
    }

    async fn delete(&self, resource: &str, namespace: &str, name: &str, propagation: Option<Propagation>) {
        let served = self.agent.resource("", resource).unwrap();
        let target = Target::object(&served, namespace, name);
        self.agent.delete(target, &DeleteOptions { propagation, ..DeleteOptions::default() }).await.unwrap();
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Makes a namespace, and waits until it has the objects that every namespace gets.
    async fn namespace(&self, name: &str) {
        // An annotation with the name `deletionTimestamp` does not make an object a deleted one.
        let metadata = value!({"name": name, "annotations": {"deletionTimestamp": "never"}});
        self.create("namespaces", value!({"metadata": metadata})).await;
        self.until("the namespace has its account and its config map", |cluster| {
            cluster.get("serviceaccounts", name, "default").is_some()
                && cluster.get("configmaps", name, "kube-root-ca.crt").is_some()
        })
        .await;
    }
}

fn release(object: &mut Value) {
    object.remove_at(&["metadata", "finalizers"]);
}

#[actix_web::test]
async fn it_is_known_whether_one_is_broken() {
    let cluster = Cluster::start().await;
    let broken = cluster.controllers.broken();
    cluster.namespace("n").await;
    assert!(!broken.any());
    let fails = || async { Err(ApiError::internal("on purpose")) };
    let failing = keep_running("test", fails, &broken);
    assert!(
        tokio::time::timeout(flotilla_cluster::limits::TASK_RESTART_DELAY / 2, failing).await.is_err(),
        "it is tried for ever"
    );
    assert!(!broken.any(), "a controller that is no longer run does not count as broken");
    let seen = broken.clone();
    tokio::select! {
        () = keep_running("test", fails, &broken) => {}
        () = cluster.until("it is seen to be broken", |_| seen.any()) => {}
    }
}

#[actix_web::test]
async fn namespaces_are_furnished_and_what_is_broken_is_restored() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let uid = cluster.get("serviceaccounts", "n", "default").unwrap().str_at(&["metadata", "uid"]).to_owned();
    cluster.delete("serviceaccounts", "n", "default", None).await;
    cluster.edit("configmaps", "n", "kube-root-ca.crt", |map| map.set_at(&["data", "ca.crt"], "forged")).await;
    cluster
        .until("both are restored", |cluster| {
            let account = cluster.get("serviceaccounts", "n", "default");
            let map = cluster.get("configmaps", "n", "kube-root-ca.crt").unwrap();
            account.is_some_and(|account| account.str_at(&["metadata", "uid"]) != uid)
                && map.str_at(&["data", "ca.crt"]) == "ROOT"
        })
        .await;
}

#[actix_web::test]
async fn the_server_is_published_and_stays_so() {
    let cluster = Cluster::start().await;
    cluster.namespace("default").await;
    let published = |cluster: &Cluster| {
        let endpoints = cluster.get("endpoints", "default", "kubernetes");
        endpoints.map(|endpoints| crate::bootstrap::published(&endpoints)).unwrap_or_default()
    };
    let is_there = |cluster: &Cluster| published(cluster) == [cluster.agent.settings.advertised.ip()];
    cluster.until("it is published", is_there).await;
    cluster.delete("endpoints", "default", "kubernetes", None).await;
    cluster.until("it is published again", is_there).await;
    let forged = value!([{"addresses": [{"ip": "192.0.2.66"}]}]);
    cluster.edit("endpoints", "default", "kubernetes", |it| it.set_at(&["subsets"], forged.clone())).await;
    cluster.until("it is restored", is_there).await;
}

#[actix_web::test]
async fn a_deleted_namespace_waits_for_finalizers_and_goes() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let held = value!({"metadata": {"name": "held", "namespace": "n", "finalizers": ["x.y/hold"]}});
    cluster.create("configmaps", held).await;
    cluster.create("secrets", value!({"metadata": {"name": "plain", "namespace": "n"}})).await;
    cluster.delete("namespaces", "", "n", None).await;
    cluster
        .until("the status tells what remains", |cluster| {
            let namespace = cluster.get("namespaces", "", "n").unwrap();
            namespace.list_at(&["status", "conditions"]).iter().any(|condition| {
                condition.str_at(&["message"]) == "Some resources are remaining: configmaps. has 1 resource instances"
            })
        })
        .await;
    assert!(cluster.get("secrets", "n", "plain").is_none());
    assert!(cluster.get("serviceaccounts", "n", "default").is_none());
    cluster.edit("configmaps", "n", "held", release).await;
    cluster.until("the namespace is gone", |cluster| cluster.get("namespaces", "", "n").is_none()).await;
}

#[actix_web::test]
async fn token_secrets_are_filled_and_go_with_their_account() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let uid = cluster.create("serviceaccounts", value!({"metadata": {"name": "a", "namespace": "n"}})).await;
    let mut secret = value!({"metadata": {"name": "t", "namespace": "n"}});
    secret.set_at(&["type"], "kubernetes.io/service-account-token");
    secret.set_at(&["metadata", "annotations", "kubernetes.io/service-account.name"], "a");
    cluster.create("secrets", secret).await;
    cluster
        .until("the secret has a token", |cluster| {
            let secret = cluster.get("secrets", "n", "t").unwrap();
            let annotations = ["metadata", "annotations", "kubernetes.io/service-account.uid"];
            !secret.str_at(&["data", "token"]).is_empty()
                && secret.str_at(&annotations) == uid
                && secret.str_at(&["data", "namespace"]) == "bg=="
                && secret.str_at(&["data", "ca.crt"]) == "Uk9PVA=="
        })
        .await;
    cluster.delete("serviceaccounts", "n", "a", None).await;
    cluster.until("the secret is gone", |cluster| cluster.get("secrets", "n", "t").is_none()).await;
}

/// A config map whose owner waits for its deletion.
fn child(name: &str, owner: &str, uid: &str) -> Value {
    value!({"metadata": {"name": name, "namespace": "n", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true}]}})
}

fn plain(name: &str) -> Value {
    value!({"metadata": {"name": name, "namespace": "n"}})
}

#[actix_web::test]
async fn dependents_go_after_their_owner_or_before_or_stay() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let gone = |name: &'static str| move |cluster: &Cluster| cluster.get("configmaps", "n", name).is_none();

    let uid = cluster.create("configmaps", plain("background")).await;
    cluster.create("configmaps", child("behind", "background", &uid)).await;
    cluster.delete("configmaps", "n", "background", Some(Propagation::Background)).await;
    cluster.until("the dependent is gone", gone("behind")).await;

    let uid = cluster.create("configmaps", plain("foreground")).await;
    let mut held = child("before", "foreground", &uid);
    held.set_at(&["metadata", "finalizers"], value!(["x.y/hold"]));
    cluster.create("configmaps", held).await;
    cluster.delete("configmaps", "n", "foreground", Some(Propagation::Foreground)).await;
    cluster
        .until("the dependent is being deleted", |cluster| {
            !cluster.get("configmaps", "n", "before").unwrap().at(&["metadata", "deletionTimestamp"]).is_null()
        })
        .await;
    assert!(cluster.get("configmaps", "n", "foreground").is_some(), "it waits");
    cluster.edit("configmaps", "n", "before", release).await;
    cluster.until("the owner is gone", gone("foreground")).await;

    let uid = cluster.create("configmaps", plain("orphaning")).await;
    cluster.create("configmaps", child("orphan", "orphaning", &uid)).await;
    cluster.delete("configmaps", "n", "orphaning", Some(Propagation::Orphan)).await;
    cluster.until("the owner is gone", gone("orphaning")).await;
    assert!(cluster.get("configmaps", "n", "orphan").unwrap().at(&["metadata", "ownerReferences"]).is_null());

    cluster.create("configmaps", child("dangling", "never", "11111111-2222-3333-4444-555555555555")).await;
    cluster.until("what has no owner is gone", gone("dangling")).await;

    let uid = cluster.create("configmaps", plain("live")).await;
    let mut two = child("two", "live", &uid);
    let mut references = two.list_at(&["metadata", "ownerReferences"]).to_vec();
    let mut absent = references[0].clone();
    absent.set_at(&["uid"], "22222222-2222-3333-4444-555555555555");
    references.push(absent);
    two.set_at(&["metadata", "ownerReferences"], references);
    cluster.create("configmaps", two).await;
    cluster
        .until("only the reference to the existing owner is left", |cluster| {
            cluster.get("configmaps", "n", "two").unwrap().list_at(&["metadata", "ownerReferences"]).len() == 1
        })
        .await;
}

#[actix_web::test]
async fn aggregated_roles_follow_their_parts() {
    let cluster = Cluster::start().await;
    let served = cluster.agent.resource("rbac.authorization.k8s.io", "clusterroles").unwrap();
    let target = |name| Target::object(&served, "", name);
    let sum = value!({"metadata": {"name": "sum"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
    let rules = value!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let mut part = value!({"metadata": {"name": "part", "labels": {"part": "yes"}}});
    part.set_at(&["rules"], rules);
    cluster.agent.create(target(""), sum).await.unwrap();
    cluster.agent.create(target(""), part).await.unwrap();
    let count = |count| {
        let agent = &cluster.agent;
        move |_: &Cluster| agent.get(target("sum")).unwrap().unwrap().list_at(&["rules"]).len() == count
    };
    cluster.until("the part counts", count(1)).await;
    cluster.agent.delete(target("part"), &DeleteOptions::default()).await.unwrap();
    cluster.until("the part is taken out", count(0)).await;
}

#[actix_web::test]
async fn a_deletion_leaves_another_object_of_the_same_name_alone() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    cluster.create("configmaps", value!({"metadata": {"name": "c", "namespace": "n"}})).await;
    let served = cluster.agent.resource("", "configmaps").unwrap();
    let target = Target::object(&served, "n", "c");
    let options = DeleteOptions { uid: Some("of-the-former".to_owned()), ..DeleteOptions::default() };
    cluster.agent.delete(target, &options).await.unwrap();
    let uid = cluster.agent.get(target).unwrap().unwrap().str_at(&["metadata", "uid"]).to_owned();
    let outdated = DeleteOptions { resource_version: Some("1".to_owned()), uid: Some(uid), ..DeleteOptions::default() };
    assert_eq!(cluster.agent.delete(target, &outdated).await.unwrap_err().code, 409);
}

#[actix_web::test]
async fn a_deleted_pod_whose_node_is_not_there_ends_and_others_wait() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let container = || value!([{"name": "c", "image": "i", "resources": {}}]);
    for (name, node) in [("lost", "gone"), ("kept", "there")] {
        let spec = value!({"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": (container())});
        cluster.create("pods", value!({"metadata": {"name": name, "namespace": "n"}, "spec": spec})).await;
    }
    cluster.create("nodes", value!({"metadata": {"name": "there"}})).await;
    for name in ["lost", "kept"] {
        cluster.delete("pods", "n", name, None).await;
    }
    let pass = async |gone: &str| {
        let begun = Instant::now();
        while cluster.get("pods", "n", gone).is_some() {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {gone} is gone");
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(45)).await;
            tokio::time::resume();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    pass("lost").await;
    assert!(cluster.get("pods", "n", "kept").is_some(), "its kubelet ends it");
    cluster.delete("nodes", "", "there", None).await;
    pass("kept").await;
}

#[actix_web::test]
async fn addresses_of_no_service_are_freed_and_those_of_services_claimed() {
    let cluster = Cluster::start().await;
    let claims = cluster.agent.resource("networking.k8s.io", "ipaddresses").unwrap();
    fn target<'a>(served: &'a Served, name: &'a str) -> Target<'a> {
        Target::object(served, "", name)
    }
    let is_claimed = |address: &str| cluster.agent.get(target(&claims, address)).unwrap().is_some();
    let claim = async |address: &str, manager: &str| {
        let labels = value!({"ipaddress.kubernetes.io/managed-by": manager});
        let parent = value!({"resource": "services", "namespace": "default", "name": "gone"});
        let claim = value!({"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}});
        assert!(cluster.agent.create(target(&claims, ""), claim).await.unwrap());
    };
    cluster.create("namespaces", value!({"metadata": {"name": "default"}})).await;
    let ranges = cluster.agent.resource("networking.k8s.io", "servicecidrs").unwrap();
    let range = value!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}});
    let ready = value!([{"type": "Ready", "status": "True", "reason": "", "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
    let of_range = |subresource| Target::object(&ranges, "", "kubernetes").with_subresource(subresource);
    assert!(cluster.agent.create(Target { name: "", ..of_range("") }, range).await.unwrap());
    cluster
        .agent
        .edit(of_range("status"), "", |range| range.set_at(&["status", "conditions"], ready.clone()))
        .await
        .unwrap();
    let service = value!({
        "metadata": {"namespace": "default", "name": "kept"},
        "spec": {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": [{"port": 80}]},
    });
    cluster.create("services", service).await;
    assert!(is_claimed("10.96.0.7"));
    claim("10.96.0.8", "ipallocator.k8s.io").await;
    claim("10.96.0.9", "somebody").await;

    let pass = async |until: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !until() {
            assert!(begun.elapsed() < PATIENCE, "waited in vain");
            tokio::time::pause();
            tokio::time::advance(limits::ADDRESS_SETTLE_TIME).await;
            tokio::time::resume();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    // A claim may belong to a service that is being created, even if it replaces one that was about to be removed.
    let wait = async |time: Duration| {
        tokio::time::sleep(Duration::from_millis(50)).await; // until the controller follows it
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // Both times together are longer than the settle time. Each leaves half a minute for a slow machine.
    wait(limits::ADDRESS_SETTLE_TIME * 11 / 20).await;
    let first = target(&claims, "10.96.0.8");
    cluster.agent.delete(first, &DeleteOptions::default()).await.unwrap();
    claim("10.96.0.8", "ipallocator.k8s.io").await;
    wait(limits::ADDRESS_SETTLE_TIME * 11 / 20).await;
    assert!(is_claimed("10.96.0.8"));
    pass(&|| !is_claimed("10.96.0.8")).await;
    assert!(is_claimed("10.96.0.7") && is_claimed("10.96.0.9"));
    let lost = target(&claims, "10.96.0.7");
    cluster.agent.delete(lost, &DeleteOptions::default()).await.unwrap();
    cluster.until("it is gone", |_| !is_claimed("10.96.0.7")).await;
    pass(&|| is_claimed("10.96.0.7")).await;
}

/// A year and a little more than a day, in seconds.
const YEAR_AND_MORE: i64 = 367 * 86_400;

/// Creates Secrets with these names, and an account that lists them.
async fn generated_tokens(cluster: &Cluster, names: &[&str]) {
    let listed: Vec<Value> = names.iter().map(|name| value!({"name": (*name)})).collect();
    let account = value!({"metadata": {"name": "bot", "namespace": "n"}, "secrets": listed});
    cluster.create("serviceaccounts", account).await;
    for name in names {
        let annotations = value!({"kubernetes.io/service-account.name": "bot"});
        let metadata = value!({"name": (*name), "namespace": "n", "annotations": annotations});
        let token = value!({"metadata": metadata, "type": "kubernetes.io/service-account-token"});
        cluster.create("secrets", token).await;
    }
    cluster
        .until("they have tokens", |cluster| {
            names.iter().all(|name| !cluster.get("secrets", "n", name).unwrap().str_at(&["data", "token"]).is_empty())
        })
        .await;
}

#[actix_web::test]
async fn unused_tokens_are_refused_and_then_removed() {
    let cluster = Cluster::start().await;
    cluster.namespace("kube-system").await;
    cluster.namespace("n").await;
    generated_tokens(&cluster, &["unused", "used", "mounted", "unlisted"]).await;
    let listed = value!([{"name": "unused"}, {"name": "used"}, {"name": "mounted"}]);
    cluster.edit("serviceaccounts", "n", "bot", |bot| bot.set_at(&["secrets"], listed.clone())).await;
    let container = value!({"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "mounted"}}]});
    cluster
        .create("pods", value!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}}))
        .await;
    let now = crate::registry::now();
    let after = |years: i64| flotilla_proto::time::Timestamp { seconds: now.seconds + years * YEAR_AND_MORE, ..now };
    let tracking = value!({"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"});
    let day = |years| crate::access::tokens::day_of(after(years));
    cluster.create("configmaps", value!({"metadata": tracking, "data": {"since": (day(0))}})).await;
    let label = |cluster: &Cluster, name: &str, label| {
        cluster.get("secrets", "n", name).unwrap().str_at(&["metadata", "labels", label]).to_owned()
    };
    let cleaner = legacy_tokens::Cleaner::new(Rc::clone(&cluster.agent)).unwrap();
    cleaner.search(now).await.unwrap();
    assert_eq!(label(&cluster, "unused", INVALID_SINCE), "", "uses are recorded since today only");
    cluster.edit("secrets", "n", "used", |it| it.set_at(&["metadata", "labels", LAST_USED], day(1))).await;
    cleaner.search(after(1)).await.unwrap();
    assert_eq!(label(&cluster, "unused", INVALID_SINCE), day(1));
    for kept in ["used", "mounted", "unlisted"] {
        assert_eq!(label(&cluster, kept, INVALID_SINCE), "", "{kept}");
    }
    cleaner.search(after(1)).await.unwrap();
    assert!(cluster.get("secrets", "n", "unused").is_some(), "it is removed a year later");
    cleaner.search(after(2)).await.unwrap();
    assert!(cluster.get("secrets", "n", "unused").is_none());
    assert_eq!(label(&cluster, "used", INVALID_SINCE), day(2));
}

#[actix_web::test]
async fn uses_of_tokens_are_recorded() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    generated_tokens(&cluster, &["t"]).await;
    let uid = cluster.get("secrets", "n", "t").unwrap().str_at(&["metadata", "uid"]).to_owned();
    for uid in ["another", &uid] {
        let used = Use { namespace: "n".into(), secret: "t".into(), uid: uid.into() };
        assert!(cluster.agent.settings.legacy_uses.add(used));
    }
    cluster
        .until("the day is recorded", |cluster| {
            let secret = cluster.get("secrets", "n", "t").unwrap();
            let today = crate::access::tokens::day_of(crate::registry::now());
            secret.str_at(&["metadata", "labels", LAST_USED]) == today
        })
        .await;
}
