//! Tokens of an OpenID Connect provider.

use std::fs;
use std::sync::{Arc, Mutex, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::called::send;
use crate::support::{Backend, Connection, DataDir};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A key of the provider, with its id.
struct Key(EcdsaKeyPair, &'static str);

impl Key {
    fn new(id: &'static str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let der = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        Self(EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).expect("a key"), id)
    }

    fn jwk(&self) -> Value {
        let (x, y) = self.0.public_key().as_ref()[1..].split_at(32);
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "EC", "crv": "P-256", "kid": self.1, "x": encode(x), "y": encode(y)})
    }

    /// Returns a token of a user until the year 2100.
    fn token(&self, issuer: &str, user: &str) -> String {
        let header = json!({"alg": "ES256", "kid": self.1}).to_string();
        let claims = json!({"iss": issuer, "aud": "cluster", "sub": user, "exp": 4_102_444_800_u64, "roles": ["dev"]});
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A provider whose keys the test sets.
struct Provider {
    server: Backend,
    issuer: String,
    keys: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    fn start(key: &Key) -> Self {
        let keys = Arc::new(Mutex::new(vec![key.jwk()]));
        let issuer = Arc::new(OnceLock::<String>::new());
        let (shown, own) = (Arc::clone(&keys), Arc::clone(&issuer));
        let server = Backend::start(move |exchange| {
            let own = own.get().map_or("", String::as_str);
            let body = match exchange.line() {
                "GET /.well-known/openid-configuration" => json!({"issuer": own, "jwks_uri": format!("{own}/keys")}),
                "GET /keys" => json!({"keys": *shown.lock().expect("no test panics while it holds this")}),
                _ => return exchange.answer("404 Not Found", "", ""),
            };
            exchange.answer("200 OK", "Content-Type: application/json\r\n", &body.to_string())
        });
        let url = format!("https://127.0.0.1:{}", server.port());
        issuer.set(url.clone()).expect("it is set once");
        Self { server, issuer: url, keys }
    }
}

/// Returns the status and the user of a token.
fn who(client: &mut Connection, token: &str) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let answer = send(client, "POST", REVIEWS, &[("Authorization", &bearer)], "{}");
    let user = if answer.status == 201 { answer.json()["status"]["userInfo"].clone() } else { Value::Null };
    (answer.status, user)
}

#[test]
fn tokens_of_the_provider_are_credentials() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let provider = Provider::start(&old);
    let data = DataDir::new();
    let file = data.path().with_extension("provider.crt");
    fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    fs::write(&file, provider.server.certificate()).expect("a file");
    let server = data.start_with(&[
        "--oidc-issuer-url",
        &provider.issuer,
        "--oidc-client-id=cluster",
        "--oidc-ca-file",
        file.to_str().expect("text"),
        "--oidc-groups-claim=roles",
        "--oidc-groups-prefix=oidc:",
        "--oidc-signing-algs=RS256,ES256",
    ]);
    let mut client = server.connect_anonymously();
    let token = old.token(&provider.issuer, "ann");
    until("the keys are fetched", || who(&mut client, &token).0 == 201);
    let (_, user) = who(&mut client, &token);
    assert_eq!(user["username"], format!("{}#ann", provider.issuer));
    assert_eq!(user["groups"], json!(["oidc:dev", "system:authenticated"]));
    assert_eq!(who(&mut client, &new.token(&provider.issuer, "ann")).0, 401, "the provider has no such key");
    assert_eq!(who(&mut client, &old.token("https://other", "ann")).0, 401);
    *provider.keys.lock().expect("no thread panics while it holds this") = vec![new.jwk()];
    let token = new.token(&provider.issuer, "bob");
    until("a token of a new key makes the server fetch the keys", || who(&mut client, &token).0 == 201);
    assert_eq!(who(&mut client, &old.token(&provider.issuer, "ann")).0, 401, "the provider has withdrawn that key");
    let review = json!({"spec": {"token": token}});
    let review = server.connect().post("/apis/authentication.k8s.io/v1/tokenreviews", &review).expect(201);
    assert_eq!(review["status"]["user"]["username"], format!("{}#bob", provider.issuer));
}

#[test]
fn contradicting_flags_end_the_start() {
    let data = DataDir::new();
    for (flags, text) in [
        (vec!["--oidc-issuer-url=https://i.example"], "must be given together"),
        (vec!["--oidc-issuer-url=http://i.example", "--oidc-client-id=c"], "must be an https URL"),
        (vec!["--oidc-issuer-url=https://i", "--oidc-client-id=c", "--oidc-signing-algs=HS256"], "is not supported"),
    ] {
        let refusal = data.try_start_with(&flags).err().expect("a refusal");
        assert!(refusal.messages.contains(text), "{}", refusal.messages);
    }
}

#[test]
fn a_file_names_the_issuers() {
    let key = Key::new("k");
    let (one, other) = (Provider::start(&key), Provider::start(&key));
    let data = DataDir::new();
    let file = data.path().with_extension("authentication");
    fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    let issuer = |provider: &Provider| {
        json!({
            "issuer": {"url": provider.issuer, "audiences": ["cluster", "more"], "audienceMatchPolicy": "MatchAny",
                "certificateAuthority": provider.server.certificate()},
            "claimMappings": {
                "username": {"expression": "'sso:' + claims.sub"},
                "groups": {"claim": "roles", "prefix": ""},
                "extra": [{"key": "example.org/roles", "valueExpression": "claims.roles"}],
            },
            "claimValidationRules": [{"expression": "claims.sub != 'bob'", "message": "not bob"}],
            "userValidationRules": [{"expression": "user.username != 'sso:eve'", "message": "not eve"}],
        })
    };
    let write = |issuers: Value| {
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": issuers,
            "anonymous": {"enabled": true, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]},
        });
        fs::write(&file, configuration.to_string()).expect("a file");
    };
    let flag = format!("--authentication-config={}", file.display());
    write(json!([{"issuer": {"url": "http://i", "audiences": ["a"]}, "claimMappings": {}}]));
    let refusal = data.try_start_with(&[&flag]).err().expect("a refusal");
    let why = "invalid authentication configuration: [jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be \
        https, jwt[0].claimMappings.username: Required value: claim or expression is required]";
    assert!(refusal.messages.contains(why), "{}", refusal.messages);
    write(json!([issuer(&one)]));
    let refusal = data.try_start_with(&[&flag, "--anonymous-auth=false"]).err().expect("a refusal");
    assert!(refusal.messages.contains("--anonymous-auth flag cannot be set"), "{}", refusal.messages);
    let both = ["--oidc-issuer-url=https://i.example", "--oidc-client-id=c", &flag];
    let refusal = data.try_start_with(&both).err().expect("a refusal");
    assert!(refusal.messages.contains("mutually exclusive"), "{}", refusal.messages);

    let server = data.start_with(&[&flag]);
    let mut client = server.connect_anonymously();
    until("the keys are fetched", || who(&mut client, &key.token(&one.issuer, "ann")).0 == 201);
    let (_, user) = who(&mut client, &key.token(&one.issuer, "ann"));
    let found = json!({"username": "sso:ann", "groups": ["dev", "system:authenticated"],
        "extra": {"example.org/roles": ["dev"]}});
    assert_eq!(user, found);
    for refused in ["bob", "eve"] {
        assert_eq!(who(&mut client, &key.token(&one.issuer, refused)).0, 401, "{refused}");
    }
    let review = json!({"spec": {"token": key.token(&one.issuer, "bob")}});
    let review = server.connect().post("/apis/authentication.k8s.io/v1/tokenreviews", &review).expect(201);
    let why = "[invalid bearer token, oidc: error evaluating claim validation expression: validation expression \
        'claims.sub != 'bob'' failed: not bob]";
    assert_eq!(review["status"]["error"], why);
    assert_eq!(client.get("/livez").status, 200);
    assert_eq!(client.get("/version").status, 401, "the path needs credentials");

    assert_eq!(who(&mut client, &key.token(&other.issuer, "ann")).0, 401);
    write(json!([issuer(&other)]));
    until("the changed file is read", || who(&mut client, &key.token(&other.issuer, "ann")).0 == 201);
    assert_eq!(who(&mut client, &key.token(&one.issuer, "ann")).0, 401, "the issuer was removed");
}
