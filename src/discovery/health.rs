//! `/healthz`, `/livez`, `/readyz`, and a path per check (Kubernetes documentation, "Kubernetes API health endpoints").
//!
//! Checks bear the names by which clients of Kubernetes know and exclude them; that of the storage is `etcd`. Each
//! tells whether the part of this server that does the named work does it.

use super::answer::{Answer, Request};
use crate::request::query::Query;

/// A part of the server whose state decides about checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The process answers requests.
    Process,
    /// Tables can be read and written.
    Storage,
    /// Bootstrap objects exist.
    Bootstrap,
    /// Controllers run.
    Controllers,
    /// Custom resources that were known when the server started are served.
    CustomResources,
    /// The server is not shutting down.
    Staying,
}

const PARTS: usize = 6;

/// Which of the endpoints a check belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Everywhere,
    Alive,
    Ready,
}

const CHECKS: [(&str, At, Part); 38] = [
    ("ping", At::Everywhere, Part::Process),
    ("log", At::Everywhere, Part::Process),
    ("loopback-serving-certificate", At::Alive, Part::Process),
    ("etcd", At::Everywhere, Part::Storage),
    ("etcd-readiness", At::Ready, Part::Storage),
    ("informer-sync", At::Ready, Part::CustomResources),
    ("poststarthook/start-apiserver-admission-initializer", At::Everywhere, Part::Process),
    ("poststarthook/generic-apiserver-start-informers", At::Everywhere, Part::CustomResources),
    ("poststarthook/priority-and-fairness-config-consumer", At::Everywhere, Part::Bootstrap),
    ("poststarthook/priority-and-fairness-filter", At::Everywhere, Part::Process),
    ("poststarthook/storage-object-count-tracker-hook", At::Everywhere, Part::Storage),
    ("poststarthook/start-apiextensions-informers", At::Everywhere, Part::CustomResources),
    ("poststarthook/start-apiextensions-controllers", At::Everywhere, Part::Controllers),
    ("poststarthook/crd-informer-synced", At::Everywhere, Part::CustomResources),
    ("poststarthook/start-system-namespaces-controller", At::Everywhere, Part::Bootstrap),
    ("poststarthook/peer-endpoint-reconciler-controller", At::Everywhere, Part::Controllers),
    ("poststarthook/start-cluster-authentication-info-controller", At::Everywhere, Part::Bootstrap),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", At::Everywhere, Part::Controllers),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", At::Everywhere, Part::Controllers),
    ("poststarthook/storage-readiness", At::Everywhere, Part::Storage),
    ("poststarthook/start-legacy-token-tracking-controller", At::Everywhere, Part::Bootstrap),
    ("poststarthook/start-service-ip-repair-controllers", At::Everywhere, Part::Bootstrap),
    ("poststarthook/rbac/bootstrap-roles", At::Everywhere, Part::Bootstrap),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", At::Everywhere, Part::Bootstrap),
    ("poststarthook/priority-and-fairness-config-producer", At::Everywhere, Part::Bootstrap),
    ("poststarthook/bootstrap-controller", At::Everywhere, Part::Bootstrap),
    ("poststarthook/start-kubernetes-service-cidr-controller", At::Everywhere, Part::Bootstrap),
    ("poststarthook/aggregator-reload-proxy-client-cert", At::Everywhere, Part::Process),
    ("poststarthook/start-kube-aggregator-informers", At::Everywhere, Part::CustomResources),
    ("poststarthook/apiservice-status-local-available-controller", At::Everywhere, Part::Bootstrap),
    ("poststarthook/apiservice-status-remote-available-controller", At::Everywhere, Part::Controllers),
    ("poststarthook/apiservice-registration-controller", At::Everywhere, Part::Controllers),
    ("poststarthook/apiservice-discovery-controller", At::Everywhere, Part::Controllers),
    ("poststarthook/kube-apiserver-autoregistration", At::Everywhere, Part::Bootstrap),
    ("autoregister-completion", At::Everywhere, Part::Bootstrap),
    ("poststarthook/apiservice-openapi-controller", At::Everywhere, Part::Controllers),
    ("poststarthook/apiservice-openapiv3-controller", At::Everywhere, Part::Controllers),
    ("shutdown", At::Ready, Part::Staying),
];

/// Endpoints with the checks that they have besides those of all.
const ENDPOINTS: [(&str, At); 3] = [("healthz", At::Alive), (LIVEZ, At::Alive), ("readyz", At::Ready)];

/// The endpoint that tells whether a process is of use.
const LIVEZ: &str = "livez";
/// What is told of a part that says nothing itself.
const NOT_READY: &str = "";

/// Tells whether a part is healthy now, or why it is not.
type Probe = Box<dyn Fn() -> Result<(), &'static str> + Send + Sync>;

/// The state of all parts. A part is unhealthy until it is said how it is; the process itself always is healthy.
#[derive(Default)]
pub struct Health([Option<Probe>; PARTS]);

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

impl Health {
    /// States how it is found out whether a part is healthy. It is asked with every request for a check, so it must be
    /// quick.
    pub fn follow(&mut self, part: Part, probe: impl Fn() -> bool + Send + Sync + 'static) {
        self.explain(part, move || if probe() { Ok(()) } else { Err(NOT_READY) });
    }

    /// States the same of a part that can tell why it is not healthy.
    pub fn explain(&mut self, part: Part, probe: impl Fn() -> Result<(), &'static str> + Send + Sync + 'static) {
        self.0[part as usize] = Some(Box::new(probe));
    }

    /// States that a part has become healthy, and stays so.
    pub fn done(&mut self, part: Part) {
        self.follow(part, || true);
    }

    /// Whether a part is healthy.
    pub fn is(&self, part: Part) -> bool {
        self.asked(part).is_ok()
    }

    fn asked(&self, part: Part) -> Result<(), &'static str> {
        match &self.0[part as usize] {
            _ if part == Part::Process => Ok(()),
            Some(probe) => probe(),
            None => Err(NOT_READY),
        }
    }

    /// What a check of an endpoint says. `/livez` tells whether to start the process anew, so that what it waits for is
    /// no failure there.
    fn check(&self, endpoint: &str, part: Part) -> Result<(), &'static str> {
        let waits =
            matches!(part, Part::Storage | Part::Bootstrap) || part == Part::Controllers && !self.is(Part::Bootstrap);
        if endpoint == LIVEZ && waits { Ok(()) } else { self.asked(part) }
    }

    /// Whether the server should get requests: what `/readyz` tells.
    pub fn ready(&self) -> bool {
        checks(At::Ready).all(|(_, part)| self.is(part))
    }

    /// Every check of every endpoint: the endpoint, the check, whether it passes.
    pub fn results(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        ENDPOINTS.iter().flat_map(|(endpoint, at)| {
            checks(*at).map(|(name, part)| (*endpoint, name, self.check(endpoint, part).is_ok()))
        })
    }

    /// The answer to any method on a health endpoint or one of its checks; `None` for other paths.
    pub fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        let path = request.path.strip_prefix('/')?;
        let (endpoint, check) = path.split_once('/').map_or((path, None), |(endpoint, check)| (endpoint, Some(check)));
        let (_, at) = ENDPOINTS.iter().find(|(name, _)| *name == endpoint)?;
        let Some(check) = check else { return Some(self.whole(endpoint, *at, request.query)) };
        let Some((_, part)) = checks(*at).find(|(name, _)| *name == check) else { return Some(Answer::not_found()) };
        Some(match self.check(endpoint, part) {
            Ok(()) => Answer::text(200, "ok"),
            Err(NOT_READY) => plain(500, format!("internal server error: {check} is not ready\n")),
            Err(why) => plain(500, format!("internal server error: {why}\n")),
        })
    }

    fn whole(&self, endpoint: &str, at: At, query: &str) -> Answer {
        let query = Query::parse(query);
        let excluded: Vec<&str> = query.all("exclude").collect();
        let mut lines = String::with_capacity(2048);
        let mut failed = false;
        for (name, part) in checks(at) {
            if excluded.contains(&name) {
                lines.push_str(&format!("[+]{name} excluded: ok\n"));
            } else if self.check(endpoint, part).is_ok() {
                lines.push_str(&format!("[+]{name} ok\n"));
            } else {
                failed = true;
                lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
            }
        }
        if failed {
            return plain(500, format!("{lines}{endpoint} check failed\n"));
        }
        if query.get("verbose").is_none() {
            return plain(200, "ok".into());
        }
        let unknown: Vec<String> = excluded
            .iter()
            .filter(|name| !checks(at).any(|(check, _)| check == **name))
            .map(|name| crate::field::quote(name))
            .collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(",");
            lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
        }
        plain(200, format!("{lines}{endpoint} check passed\n"))
    }
}

/// Names and parts of an endpoint's checks in order.
fn checks(at: At) -> impl Iterator<Item = (&'static str, Part)> {
    CHECKS.iter().filter(move |(_, of, _)| *of == At::Everywhere || *of == at).map(|(name, _, part)| (*name, *part))
}

fn plain(status: u16, text: String) -> Answer {
    let headers = vec![("x-content-type-options", "nosniff".into())];
    Answer { headers, ..Answer::text(status, text) }
}

/// Paths of all health endpoints and checks.
pub fn paths() -> impl Iterator<Item = String> {
    ENDPOINTS.iter().flat_map(|(endpoint, at)| {
        let each = checks(*at).map(move |(name, _)| format!("/{endpoint}/{name}"));
        std::iter::once(format!("/{endpoint}")).chain(each)
    })
}
