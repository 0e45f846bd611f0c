//! `/healthz`, `/livez`, `/readyz`, and a path per check (Kubernetes documentation, "Kubernetes API health endpoints").
//!
//! The checks have the names of the reference, since clients exclude checks by name: the check of the storage is named
//! `etcd`. Each check reports the state of the part of this server that does the named work.

use super::answer::{Answer, Request};
use crate::request::query::Query;

/// A part of the server that checks report on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPart {
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

/// The endpoints that a check belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Everywhere,
    Alive,
    Ready,
}

const CHECKS: [(&str, At, ServerPart); 38] = [
    ("ping", At::Everywhere, ServerPart::Process),
    ("log", At::Everywhere, ServerPart::Process),
    ("loopback-serving-certificate", At::Alive, ServerPart::Process),
    ("etcd", At::Everywhere, ServerPart::Storage),
    ("etcd-readiness", At::Ready, ServerPart::Storage),
    ("informer-sync", At::Ready, ServerPart::CustomResources),
    ("poststarthook/start-apiserver-admission-initializer", At::Everywhere, ServerPart::Process),
    ("poststarthook/generic-apiserver-start-informers", At::Everywhere, ServerPart::CustomResources),
    ("poststarthook/priority-and-fairness-config-consumer", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/priority-and-fairness-filter", At::Everywhere, ServerPart::Process),
    ("poststarthook/storage-object-count-tracker-hook", At::Everywhere, ServerPart::Storage),
    ("poststarthook/start-apiextensions-informers", At::Everywhere, ServerPart::CustomResources),
    ("poststarthook/start-apiextensions-controllers", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/crd-informer-synced", At::Everywhere, ServerPart::CustomResources),
    ("poststarthook/start-system-namespaces-controller", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/peer-endpoint-reconciler-controller", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/start-cluster-authentication-info-controller", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/storage-readiness", At::Everywhere, ServerPart::Storage),
    ("poststarthook/start-legacy-token-tracking-controller", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/start-service-ip-repair-controllers", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/rbac/bootstrap-roles", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/priority-and-fairness-config-producer", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/bootstrap-controller", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/start-kubernetes-service-cidr-controller", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/aggregator-reload-proxy-client-cert", At::Everywhere, ServerPart::Process),
    ("poststarthook/start-kube-aggregator-informers", At::Everywhere, ServerPart::CustomResources),
    ("poststarthook/apiservice-status-local-available-controller", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/apiservice-status-remote-available-controller", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/apiservice-registration-controller", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/apiservice-discovery-controller", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/kube-apiserver-autoregistration", At::Everywhere, ServerPart::Bootstrap),
    ("autoregister-completion", At::Everywhere, ServerPart::Bootstrap),
    ("poststarthook/apiservice-openapi-controller", At::Everywhere, ServerPart::Controllers),
    ("poststarthook/apiservice-openapiv3-controller", At::Everywhere, ServerPart::Controllers),
    ("shutdown", At::Ready, ServerPart::Staying),
];

/// The endpoints, each with the selection of its checks besides the common ones.
const ENDPOINTS: [(&str, At); 3] = [("healthz", At::Alive), (LIVEZ, At::Alive), ("readyz", At::Ready)];

/// The endpoint for liveness.
const LIVEZ: &str = "livez";
/// The reason of a part that gives no reason.
const NOT_READY: &str = "";

/// Returns `Ok` if a part is healthy now. `Err` holds the reason why it is not.
type Probe = Box<dyn Fn() -> Result<(), &'static str> + Send + Sync>;

/// The state of all parts. A part is unhealthy until its state is reported; the process itself is always healthy.
#[derive(Default)]
pub struct Health([Option<Probe>; PARTS]);

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

impl Health {
    /// Sets the probe of a part. It is called on every request for a check, so it must be quick.
    pub fn follow(&mut self, part: ServerPart, probe: impl Fn() -> bool + Send + Sync + 'static) {
        self.explain(part, move || if probe() { Ok(()) } else { Err(NOT_READY) });
    }

    /// Sets the probe of a part, as [`Health::follow`] does. The probe returns the reason why the part is not healthy.
    pub fn explain(&mut self, part: ServerPart, probe: impl Fn() -> Result<(), &'static str> + Send + Sync + 'static) {
        self.0[part as usize] = Some(Box::new(probe));
    }

    /// Marks a part as healthy for good.
    pub fn done(&mut self, part: ServerPart) {
        self.follow(part, || true);
    }

    /// Returns whether a part is healthy.
    pub fn is(&self, part: ServerPart) -> bool {
        self.asked(part).is_ok()
    }

    fn asked(&self, part: ServerPart) -> Result<(), &'static str> {
        match &self.0[part as usize] {
            _ if part == ServerPart::Process => Ok(()),
            Some(probe) => probe(),
            None => Err(NOT_READY),
        }
    }

    /// Returns the result of a check for an endpoint. Waiting for other servers does not fail `/livez`, since a restart
    /// of the process would not help.
    fn check(&self, endpoint: &str, part: ServerPart) -> Result<(), &'static str> {
        let waits = matches!(part, ServerPart::Storage | ServerPart::Bootstrap)
            || part == ServerPart::Controllers && !self.is(ServerPart::Bootstrap);
        if endpoint == LIVEZ && waits { Ok(()) } else { self.asked(part) }
    }

    /// Returns whether the server should get requests: the result of `/readyz`.
    pub fn ready(&self) -> bool {
        checks(At::Ready).all(|(_, part)| self.is(part))
    }

    /// Returns every check of every endpoint: the endpoint, the check, whether it passes.
    pub fn results(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        ENDPOINTS.iter().flat_map(|(endpoint, at)| {
            checks(*at).map(|(name, part)| (*endpoint, name, self.check(endpoint, part).is_ok()))
        })
    }

    /// Returns the answer to any method on a health endpoint or one of its checks. Returns `None` for other paths.
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

/// Returns the names and parts of an endpoint's checks in order.
fn checks(at: At) -> impl Iterator<Item = (&'static str, ServerPart)> {
    CHECKS.iter().filter(move |(_, of, _)| *of == At::Everywhere || *of == at).map(|(name, _, part)| (*name, *part))
}

fn plain(status: u16, text: String) -> Answer {
    let headers = vec![("x-content-type-options", "nosniff".into())];
    Answer { headers, ..Answer::text(status, text) }
}

/// Returns the paths of all health endpoints and checks.
pub fn paths() -> impl Iterator<Item = String> {
    ENDPOINTS.iter().flat_map(|(endpoint, at)| {
        let each = checks(*at).map(move |(name, _)| format!("/{endpoint}/{name}"));
        std::iter::once(format!("/{endpoint}")).chain(each)
    })
}
