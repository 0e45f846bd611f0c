//! Serves OpenID Connect discovery of the issuer, by which other systems verify service account tokens.

use std::net::SocketAddr;

use super::keys::KeySet;

/// Path of the keys.
pub const JWKS_PATH: &str = "/openid/v1/jwks";
/// Path of the description of the issuer (OpenID Connect Discovery 1.0, section 4).
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// Media type of the keys.
pub const JWKS_MEDIA_TYPE: &str = "application/jwk-set+json";
/// `Cache-Control` of both answers.
pub const CACHE_CONTROL: &str = "public, max-age=3600";

/// Returns the URL of the keys at this server.
pub fn jwks_uri(address: SocketAddr) -> String {
    format!("https://{address}{JWKS_PATH}")
}

/// Returns the description of an issuer in JSON. `keys_at` is the URL of its keys.
pub fn configuration(issuer: &str, keys_at: &str, keys: &KeySet) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "{{\"issuer\":{},\"jwks_uri\":{},\"response_types_supported\":[\"id_token\"],\
         \"subject_types_supported\":[\"public\"],\"id_token_signing_alg_values_supported\":{}}}",
        text(issuer),
        text(keys_at),
        serde_json::Value::from(keys.algorithms()),
    )
}

#[cfg(test)]
mod tests {
    use super::super::keys::SigningKey;
    use super::*;

    #[test]
    fn the_description_names_issuer_and_keys() {
        let key = SigningKey::parse(&rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let keys = KeySet::new(&key, KeySet::default());
        assert_eq!(
            configuration("https://kubernetes.default.svc", &jwks_uri("127.0.0.1:6443".parse().unwrap()), &keys),
            r#"{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://127.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
        );
        let jwks: serde_json::Value = serde_json::from_str(&keys.jwks()).unwrap();
        assert_eq!(jwks["keys"][0]["kid"], key.public().id.as_str());
    }
}
