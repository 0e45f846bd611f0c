use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use flotilla_cel::access::{Expression, Subject};

use super::*;
use crate::outbound::Network;

const ISSUER: &str = "https://issuer.example";

fn claim(claim: &str, prefix: &str) -> Mapping {
    Mapping::Claim { claim: claim.into(), prefix: prefix.into() }
}

fn settings() -> IssuerSettings {
    IssuerSettings {
        url: ISSUER.into(),
        discovery_url: None,
        audiences: vec!["kubernetes".into()],
        authorities: Default::default(),
        network: Network::Direct,
        algorithms: vec![Algorithm::Es256],
        username: claim("sub", &format!("{ISSUER}#")),
        groups: Some(claim("groups", "oidc:")),
        uid: None,
        extra: Vec::new(),
        required: [("team".to_owned(), "red".to_owned())].into(),
        claim_rules: Vec::new(),
        user_rules: Vec::new(),
    }
}

/// A key of the provider.
struct Key {
    pair: EcdsaKeyPair,
    id: &'static str,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self { pair: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap(), id }
    }

    fn jwk(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "x": encode(x), "y": encode(y)})
    }

    fn sign(&self, algorithm: &str, claims: &Value) -> Vec<u8> {
        let header = json!({"alg": algorithm, "kid": self.id}).to_string();
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)).into_bytes()
    }
}

fn claims(changes: &Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": "kubernetes", "sub": "ann", "exp": 2_000, "groups": ["a", "b"],
        "team": "red"});
    for (claim, value) in changes.as_object().unwrap() {
        claims[claim] = value.clone();
    }
    claims
}

fn verifier(keys: &[&Key]) -> OpenId {
    let openid = OpenId::new(settings(), Outbound::default());
    let set = json!({"keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>()}).to_string();
    openid.keys.store(Some(Arc::new(ProviderKeys::parse(set.as_bytes()).unwrap())));
    openid
}

/// Returns the name and groups of the user of a token at second 1,000. `Err` has the reason of a refusal. `None` if the
/// token is not one of the provider.
fn user(openid: &OpenId, token: &[u8]) -> Option<Result<(String, Vec<String>), OpenIdError>> {
    let mut digest = [0; 32];
    digest.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, token).as_ref());
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let found = openid.known(&digest, now).or_else(|| openid.user(&UnverifiedToken::parse(token)?, &digest, now))?;
    Some(found.map(|user| (user.name.to_string(), user.groups.iter().map(ToString::to_string).collect())))
}

#[test]
fn claims_become_a_user() {
    let key = Key::new("k1");
    let openid = verifier(&[&key]);
    for _ in 0..2 {
        let (name, groups) = user(&openid, &key.sign("ES256", &claims(&json!({})))).unwrap().unwrap();
        assert_eq!(name, "https://issuer.example#ann");
        assert_eq!(groups, ["oidc:a", "oidc:b", "system:authenticated"]);
    }
    let one = user(&openid, &key.sign("ES256", &claims(&json!({"groups": "c", "aud": ["x", "kubernetes"]}))));
    assert_eq!(one.unwrap().unwrap().1, ["oidc:c", "system:authenticated"]);
    let none = user(&openid, &key.sign("ES256", &claims(&json!({"groups": null}))));
    assert_eq!(none.unwrap().unwrap().1, ["system:authenticated"]);
    assert_eq!(user(&openid, &key.sign("ES256", &claims(&json!({"iss": "https://other"})))), None);
    assert_eq!(user(&openid, b"opaque"), None);
}

#[test]
fn tokens_are_refused_in_the_words_of_kubernetes() {
    let key = Key::new("k1");
    let openid = verifier(&[&key]);
    let cases = [
        (json!({"aud": "x"}), "oidc: verify token: oidc: expected audience \"kubernetes\" got [\"x\"]"),
        (
            json!({"exp": 999}),
            "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:16:39 +0000 UTC)",
        ),
        (
            json!({"exp": null}),
            "oidc: verify token: oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)",
        ),
        (json!({"nbf": 1_301}), "oidc: verify token: oidc: current time 1970-01-01 00:16:40 +0000 UTC before the nbf"),
        (json!({"nbf": 1e300}), "oidc: verify token: oidc: current time 1970-01-01 00:16:40 +0000 UTC before the nbf"),
        (
            json!({"sub": 1}),
            "oidc: verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field \
             idToken.sub of type string",
        ),
        (json!({"groups": [1]}), "oidc: parse groups claim \"groups\": "),
        (json!({"team": "blue"}), "oidc: required claim team value does not match. Got = blue, want = red"),
    ];
    for (changes, text) in cases {
        let error = user(&openid, &key.sign("ES256", &claims(&changes))).unwrap().unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
        assert!(!error.is_by_keys(), "{error}");
    }
    assert!(user(&openid, &key.sign("ES256", &claims(&json!({"nbf": 1_300})))).unwrap().is_ok());
    let error = user(&openid, &key.sign("none", &claims(&json!({})))).unwrap().unwrap_err().to_string();
    let text = "oidc: id token signed with unsupported algorithm, expected [\"ES256\"] got \"none\"";
    assert!(error.ends_with(text), "{error}");
}

#[test]
fn other_keys_may_make_a_token_valid() {
    let (old, new) = (Key::new("k1"), Key::new("k2"));
    let openid = OpenId::new(settings(), Outbound::default());
    let token = new.sign("ES256", &claims(&json!({})));
    assert!(user(&openid, &token).unwrap().unwrap_err().is_by_keys(), "there are no keys yet");
    assert!(user(&verifier(&[&old]), &token).unwrap().unwrap_err().is_by_keys());
    assert!(user(&verifier(&[&old, &new]), &token).unwrap().is_ok());
    let mut forged = token.clone();
    let at = forged.len() - 40; // within the signature
    forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
    assert_eq!(user(&verifier(&[&new]), &forged).unwrap(), Err(OpenIdError::Signature));
}

#[test]
fn an_email_address_must_be_verified() {
    let key = Key::new("k1");
    let mut openid = verifier(&[&key]);
    openid.settings.username = claim("email", "");
    let name = |verified: Value| {
        let token = key.sign("ES256", &claims(&json!({"email": "ann@x.example", "email_verified": verified})));
        user(&openid, &token).unwrap().map(|(name, _)| name)
    };
    assert_eq!(name(json!(true)).unwrap(), "ann@x.example");
    assert_eq!(name(json!(false)).unwrap_err().to_string(), "oidc: email not verified");
}

#[test]
fn expressions_make_the_user() {
    let key = Key::new("k1");
    let mut openid = verifier(&[&key]);
    let of_claims = |text: &str| Expression::compile(text, Subject::Claims, false).unwrap();
    let settings = &mut openid.settings;
    settings.audiences = vec!["other".into(), "kubernetes".into()];
    settings.username = Mapping::Expression(of_claims("claims.sub + '@x'"));
    settings.groups = Some(Mapping::Expression(of_claims("claims.groups")));
    settings.uid = Some(claim("team", ""));
    settings.extra = vec![("example.org/n".into(), of_claims("claims.?nick.orValue('')"))];
    let rule = |text: &str, subject| ValidationRule {
        expression: Expression::compile(text, subject, true).unwrap(),
        message: "not so".into(),
    };
    settings.claim_rules = vec![rule("claims.exp < 3000", Subject::Claims)];
    settings.user_rules = vec![rule("!user.username.startsWith('system:')", Subject::User)];
    let found = |changes: Value| {
        let token = key.sign("ES256", &claims(&changes));
        let mut digest = [0; 32];
        digest.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, &token).as_ref());
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        openid.user(&UnverifiedToken::parse(&token).unwrap(), &digest, now).unwrap().map_err(|error| error.to_string())
    };
    let ann = found(json!({"nick": "a", "jti": "j"})).unwrap();
    assert_eq!((ann.name.as_str(), ann.uid.as_str()), ("ann@x", "red"));
    assert_eq!(ann.groups, ["a", "b", "system:authenticated"]);
    assert_eq!(ann.extra["example.org/n"], ["a"]);
    assert_eq!(ann.extra["authentication.kubernetes.io/credential-id"], ["JTI=j"]);
    assert!(found(json!({})).unwrap().extra.is_empty());
    for (changes, why) in [
        (json!({"aud": "x"}), "oidc: verify token: oidc: expected audience in [\"kubernetes\" \"other\"] got [\"x\"]"),
        (
            json!({"exp": 3000}),
            "oidc: error evaluating claim validation expression: validation expression 'claims.exp < 3000' failed: not so",
        ),
        (
            json!({"sub": "system:x"}),
            "oidc: error evaluating user info validation rule: validation expression \
             '!user.username.startsWith('system:')' failed: not so",
        ),
        (
            json!({"groups": [1]}),
            "oidc: error evaluating group claim expression: expression must return a string or a list of strings",
        ),
    ] {
        assert_eq!(found(changes).unwrap_err(), why);
    }
}
