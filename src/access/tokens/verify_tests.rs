use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};

use super::super::bound::BoundProperties;
use super::super::issue::{Account, IssueRequest, Issuer, LegacyAccount};
use super::super::keys::SigningKey;
use super::*;

const API: &str = "https://kubernetes.default.svc";

#[derive(Debug, Default)]
struct Objects(Mutex<HashMap<(BoundKind, String), BoundProperties>>);

impl Objects {
    fn put(&self, kind: BoundKind, path: &str, found: BoundProperties) {
        self.0.lock().insert((kind, path.to_owned()), found);
    }

    fn get(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<BoundProperties> {
        self.0.lock().get(&(kind, format!("{namespace}/{name}"))).cloned()
    }
}

impl BoundObjects for Objects {
    fn revision(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<u64> {
        self.get(kind, namespace, name).map(|found| found.revision)
    }

    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<BoundProperties> {
        self.get(kind, namespace, name)
    }
}

struct World {
    objects: Arc<Objects>,
    tokens: ServiceAccountTokens,
    issuer: Issuer,
    key: SigningKey,
    account: Account,
    now: SystemTime,
}

fn found(uid: &str, revision: u64) -> BoundProperties {
    BoundProperties { revision, uid: uid.into(), ..BoundProperties::default() }
}

impl World {
    fn new() -> Self {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let key = SigningKey::parse(&pem).unwrap();
        let keys = KeySet::new(&key, KeySet::default());
        let objects = Arc::new(Objects::default());
        objects.put(BoundKind::ServiceAccount, "ns/bot", found("u-1", 1));
        let api = [API.to_owned()];
        Self {
            tokens: ServiceAccountTokens::new(keys, &api, &api, Arc::clone(&objects) as _),
            issuer: Issuer::new(key.clone(), API.into()),
            key,
            objects,
            account: Account { namespace: "ns".into(), name: "bot".into(), uid: "u-1".into() },
            now: crate::wall_clock::now(),
        }
    }

    fn issue(&self, change: impl FnOnce(&mut IssueRequest)) -> String {
        let mut request = IssueRequest { audiences: vec![API.into()], seconds: 3_600, ..IssueRequest::default() };
        change(&mut request);
        self.issuer.issue(&self.account, &request, self.now).unwrap().token
    }

    fn check_at(&self, token: &str, now: SystemTime) -> Result<Option<Arc<Verified>>, TokenError> {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        self.tokens.authenticate(token.as_bytes(), &key, &[API.to_owned()], now)
    }

    fn check(&self, token: &str) -> Result<Option<Arc<Verified>>, TokenError> {
        self.check_at(token, self.now)
    }

    fn error(&self, token: &str) -> String {
        self.check(token).unwrap_err().to_string()
    }
}

#[test]
fn a_token_identifies_its_service_account() {
    let world = World::new();
    world.objects.put(BoundKind::Pod, "ns/p", found("u-p", 1));
    let token = world.issue(|request| {
        request.pod = Some(("p".into(), "u-p".into()));
        request.node = Some(("n".into(), "u-n".into()));
    });
    let verified = world.check(&token).unwrap().unwrap();
    let user = verified.user();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:ns:bot", "u-1"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]);
    assert_eq!(user.extra["authentication.kubernetes.io/pod-uid"], ["u-p"]);
    assert_eq!(user.extra["authentication.kubernetes.io/node-name"], ["n"]);
    assert!(user.extra[CREDENTIAL_ID][0].starts_with("JTI="));
    assert!(Arc::ptr_eq(&verified, &world.check(&token).unwrap().unwrap()), "remembered");
}

#[test]
fn a_token_is_invalid_without_its_bound_object() {
    let world = World::new();
    world.objects.put(BoundKind::Pod, "ns/p", found("u-p", 1));
    world.objects.put(BoundKind::Node, "/n", found("u-n", 1));
    let pod = world.issue(|request| request.pod = Some(("p".into(), "u-p".into())));
    let node = world.issue(|request| request.node = Some(("n".into(), "u-n".into())));
    assert!(world.check(&pod).unwrap().is_some() && world.check(&node).unwrap().is_some());
    world.objects.0.lock().remove(&(BoundKind::Pod, "ns/p".into()));
    assert_eq!(world.error(&pod), "service account token has been invalidated");
    world.objects.put(BoundKind::Node, "/n", found("another", 2));
    assert_eq!(world.error(&node), "service account token has been invalidated");
    world.objects.put(BoundKind::Node, "/n", BoundProperties { deleted_at: Some(world.now), ..found("u-n", 3) });
    assert!(world.check(&node).is_ok(), "still being deleted");
    assert!(world.check_at(&node, world.now + Duration::from_secs(61)).is_err(), "deleted for long");
    world.objects.put(BoundKind::ServiceAccount, "ns/bot", found("u-2", 2));
    assert_eq!(world.error(&pod), "service account UID (u-2) does not match claim (u-1)");
    world.objects.0.lock().clear();
    assert_eq!(world.error(&pod), "serviceaccounts \"bot\" not found");
}

#[test]
fn a_token_is_valid_in_its_time_for_its_audiences() {
    let world = World::new();
    let token = world.issue(|_| {});
    assert!(world.check_at(&token, world.now + Duration::from_secs(3_659)).is_ok());
    assert_eq!(world.check_at(&token, world.now + Duration::from_secs(3_662)).unwrap_err(), TokenError::Expired);
    assert_eq!(world.check_at(&token, world.now - Duration::from_secs(62)).unwrap_err(), TokenError::NotYet);
    let vault = world.issue(|request| request.audiences = vec!["vault".into(), "other".into()]);
    assert_eq!(
        world.error(&vault),
        "token audiences [\"vault\" \"other\"] is invalid for the target audiences [\"https://kubernetes.default.svc\"]"
    );
}

#[test]
fn forged_tokens_are_refused() {
    let world = World::new();
    let token = world.issue(|_| {});
    let (message, signature) = token.rsplit_once('.').unwrap();
    let mut changed = signature.to_owned();
    changed.replace_range(..1, if changed.starts_with('A') { "B" } else { "A" });
    assert_eq!(world.error(&format!("{message}.{changed}")), "invalid signature");
    assert_eq!(world.error(&format!("{message}.")), "invalid signature");
    let stranger = World::new();
    assert_eq!(world.error(&stranger.issue(|_| {})), "invalid signature, no keys found");
    for nothing in ["", "a", "a.b.c", "..", "....", "eyJhbGciOiJub25lIn0.e30.", message] {
        assert!(world.check(nothing).unwrap().is_none(), "{nothing:?}");
    }
    // The right issuer and account, with the algorithm `none`.
    let none = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMiLCJzdWIiOiJ4In0.";
    assert_eq!(world.error(none), "invalid signature");
    let other_issuer = super::super::jose::sign(&world.key, b"{\"iss\":\"https://elsewhere\"}").unwrap();
    assert!(world.check(&other_issuer).unwrap().is_none());
}

#[test]
fn a_token_in_a_secret_is_valid_while_the_secret_contains_it() {
    let world = World::new();
    let of = LegacyAccount { account: world.account.clone(), secret: "s".into() };
    let token = world.issuer.issue_legacy(&of).unwrap();
    assert_eq!(world.error(&token), "Token has been invalidated");
    let secret = |token: &str, revision| BoundProperties { token: Some(token.into()), ..found("u-s", revision) };
    world.objects.put(BoundKind::Secret, "ns/s", secret("other", 1));
    assert_eq!(world.error(&token), "Token does not match server's copy");
    world.objects.put(BoundKind::Secret, "ns/s", secret(&token, 2));
    assert_eq!(world.check(&token).unwrap().unwrap().user().name, "system:serviceaccount:ns:bot");
    let incomplete = b"{\"iss\":\"kubernetes/serviceaccount\",\"sub\":\"system:serviceaccount:ns:bot\"}";
    let incomplete = super::super::jose::sign(&world.key, incomplete).unwrap();
    assert_eq!(world.error(&incomplete), "namespace claim is missing");
}

#[test]
fn the_cache_is_bounded() {
    let world = World::new();
    for _ in 0..=2 * TOKEN_CACHE_ENTRIES {
        let claims = super::super::claims::Claims::default();
        let claims = Claims {
            iss: API.into(),
            kubernetes: Some(Kubernetes {
                serviceaccount: Reference { name: "bot".into(), uid: "u-1".into() },
                namespace: "ns".into(),
                ..Kubernetes::default()
            }),
            ..claims
        };
        let verified = world.tokens.bound(claims).unwrap();
        let mut key = [0; 32];
        key[..8].copy_from_slice(&(world.tokens.verified.len() as u64).to_le_bytes());
        world.tokens.remember(key, verified);
        assert!(world.tokens.verified.len() <= TOKEN_CACHE_ENTRIES);
    }
}

#[test]
fn tokens_in_secrets_depend_on_secret_and_account() {
    let world = World::new();
    let of = LegacyAccount { account: world.account.clone(), secret: "s".into() };
    let token = world.issuer.issue_legacy(&of).unwrap();
    let secret = |revision| BoundProperties { token: Some(token.clone().into()), ..found("u-s", revision) };
    world.objects.put(BoundKind::Secret, "ns/s", secret(1));
    assert!(world.check(&token).is_ok());
    world.objects.put(BoundKind::Secret, "ns/s", BoundProperties { deleted_at: Some(world.now), ..secret(2) });
    assert_eq!(world.error(&token), "Token has been invalidated", "a deletion counts at once");
    world.objects.put(BoundKind::Secret, "ns/s", secret(3));
    world.objects.put(BoundKind::ServiceAccount, "ns/bot", found("u-2", 4));
    assert_eq!(world.error(&token), "ServiceAccount UID (u-2) does not match claim (u-1)");
    let ending = BoundProperties { deleted_at: Some(world.now), ..found("u-1", 5) };
    world.objects.put(BoundKind::ServiceAccount, "ns/bot", ending);
    assert_eq!(world.error(&token), "ServiceAccount ns/bot has been deleted");
    world.objects.put(BoundKind::ServiceAccount, "ns/bot", found("u-1", 6));
    world.objects.put(BoundKind::Secret, "ns/s", BoundProperties { invalid_since: "2026-01-31".into(), ..secret(7) });
    assert!(world.error(&token).starts_with("the token in secret ns/s for service account ns/bot has been marked"));
}

#[test]
fn clients_with_generated_tokens_are_warned() {
    let world = World::new();
    let of = LegacyAccount { account: world.account.clone(), secret: "s".into() };
    let token = world.issuer.issue_legacy(&of).unwrap();
    world.objects.put(
        BoundKind::Secret,
        "ns/s",
        BoundProperties { token: Some(token.clone().into()), ..found("u-s", 1) },
    );
    assert_eq!(world.check(&token).unwrap().unwrap().warning(), None);
    let listing = BoundProperties { secrets: vec!["s".into()], ..found("u-1", 2) };
    world.objects.put(BoundKind::ServiceAccount, "ns/bot", listing);
    assert!(world.check(&token).unwrap().unwrap().warning().unwrap().contains("TokenRequest"));
}

#[test]
fn each_day_of_use_is_noted_once() {
    let world = World::new();
    let of = LegacyAccount { account: world.account.clone(), secret: "s".into() };
    let token = world.issuer.issue_legacy(&of).unwrap();
    let put = |revision, last_used: &str| {
        let secret = BoundProperties {
            token: Some(token.clone().into()),
            last_used: last_used.into(),
            ..found("u-s", revision)
        };
        world.objects.put(BoundKind::Secret, "ns/s", secret);
    };
    let (noon, day) = (UNIX_EPOCH + Duration::from_secs(1_767_268_800), Duration::from_secs(86_400)); // 2026-01-01
    let noted = || futures_util::FutureExt::now_or_never(world.tokens.uses().next());
    put(1, "");
    for _ in 0..2 {
        world.check_at(&token, noon).unwrap();
    }
    assert_eq!(
        noted().map(|used| (used.namespace, used.secret, used.uid)),
        Some(("ns".into(), "s".into(), "u-s".into()))
    );
    assert_eq!(noted(), None);
    put(2, "2026-01-01");
    world.check_at(&token, noon).unwrap();
    assert_eq!(noted(), None, "it is recorded");
    world.check_at(&token, noon - day).unwrap();
    assert_eq!(noted(), None, "another clock is ahead");
    world.check_at(&token, noon + day).unwrap();
    assert!(noted().is_some());
    put(3, "");
    world.check_at(&token, noon + day).unwrap();
    assert!(noted().is_some(), "somebody removed the label");
}
