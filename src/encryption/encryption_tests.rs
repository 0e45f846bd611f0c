//! Values that other implementations have encrypted: Go's `crypto/aes`, `crypto/cipher`, and `nacl/secretbox`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_cluster::KeyWrapping;
use flotilla_proto::value;

use super::kms::{DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusResponse};
use super::*;
use crate::outbound::grpc;

const PLAIN: &[u8] = b"k8s\0 something that nobody else may read";
const KEY: &[u8] = b"/registry/secrets/default/a";

/// Provider, key length in bytes, and ciphertext. All bytes of a key are equal.
const SEALED: [(&str, u8, &str); 7] = [
    ("aescbc", 16, "BwcHBwcHBwcHBwcHBwcHB7glH1X5b0IM8FaYlwEspLlKxz+s+tJNtHAfNOObq7Nr7rsmMuK85kd/kclqYiKeCA=="),
    ("aescbc", 24, "BwcHBwcHBwcHBwcHBwcHB9fsayjbQ0VvKNCc/NR7RzpWmyoqxd2IFofSyBiLspK1wOcXc24JjBJ5z/zWnvS4qA=="),
    ("aescbc", 32, "BwcHBwcHBwcHBwcHBwcHBzVxdvUGG5KmPTn8N3SZwquKLNhWT5ZQMJ4g0bkaDbSWJW2hwJqT1iII5ZRX+04VkQ=="),
    ("aesgcm", 16, "CQkJCQkJCQkJCQkJsLT6Kpjs8xnjDgxBK/GSjHd6yZAtIGxxCjxg6U966H66qq8aMMaXP4Qxvv+A+8puHTgBMxIBIiU="),
    ("aesgcm", 24, "CQkJCQkJCQkJCQkJCQJM6B/eMOsnCNfgovUbv/rCRSciQK736tD1wc6QG54DccSjCO2MpvXMvcPDOZ3jbpEJGZThPIM="),
    ("aesgcm", 32, "CQkJCQkJCQkJCQkJYBYFV9usnohV5rsDN6g8o/WXuYeEWwAUF20rw8pK68BLJGZJGIEl7H0HfeOMtmdb1DlMYwBETek="),
    (
        "secretbox",
        32,
        "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUF2gi7zMHe3JLI6+TxJUoSy4UBBhThtyXhWbZbRTiyAr1DeR+kOs67j+h5NjH9EgCppvK+reQ17v0=",
    ),
];

fn stored(provider: &str, key: &str, sealed: &str) -> Vec<u8> {
    let mut value = format!("k8s:enc:{provider}:v1:{key}:").into_bytes();
    value.extend(STANDARD.decode(sealed).unwrap());
    value
}

/// Keys of all providers. Each follows another key of the same name, as after a configuration mistake.
fn keys() -> Keys {
    let provider = |name: &str, bytes: u8| {
        let secret = |value: u8| STANDARD.encode(vec![value; bytes.into()]);
        let keys = value!([
            {"name": (format!("k{bytes}")), "secret": (secret(bytes + 1))},
            {"name": (format!("k{bytes}")), "secret": (secret(bytes))}
        ]);
        let mut provider = Value::object();
        provider.set_at(&[name, "keys"], keys);
        provider
    };
    let mut providers: Vec<Value> = SEALED.iter().map(|(name, bytes, _)| provider(name, *bytes)).collect();
    providers.push(value!({"identity": {}}));
    let root = value!({
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": (Value::Array(providers))}]
    });
    Keys::of(&root, false).unwrap()
}

#[test]
fn values_that_kubernetes_encrypted_are_decrypted() {
    let keys = keys();
    for (provider, bytes, sealed) in SEALED {
        let value = stored(provider, &format!("k{bytes}"), sealed);
        assert_eq!(keys.decrypted(KEY, value).as_deref(), Ok(PLAIN), "{provider} {bytes}");
    }
    assert_eq!(keys.decrypted(KEY, PLAIN.to_vec()).as_deref(), Ok(PLAIN));
}

#[test]
fn errors_name_the_key_that_does_not_decrypt() {
    let keys = keys();
    for (provider, bytes, sealed) in SEALED {
        let name = format!("k{bytes}");
        let unknown = keys.decrypted(KEY, stored(provider, "other", sealed)).unwrap_err();
        assert_eq!(unknown, format!("by {provider}:v1 with the key \"other\""));
        let cut = stored(provider, &name, &sealed[..20]);
        assert!(keys.decrypted(KEY, cut).is_err(), "{provider}");
        if provider != "aescbc" {
            let mut changed = stored(provider, &name, sealed);
            *changed.last_mut().unwrap() ^= 1;
            assert!(keys.decrypted(KEY, changed).is_err(), "{provider}");
        }
        if provider == "aesgcm" {
            // A value that was copied to another key is refused.
            assert!(keys.decrypted(b"/registry/secrets/default/b", stored(provider, &name, sealed)).is_err());
        }
    }
    let service = keys.decrypted(KEY, b"k8s:enc:kms:v2:cloud:xyz".to_vec()).unwrap_err();
    assert_eq!(service, "by kms:v2 with \"cloud\", which cannot be decrypted here");
    assert!(keys.decrypted(KEY, b"k8s:enc:".to_vec()).is_err());
}

#[test]
fn impossible_keys_are_refused() {
    let with = |name: &str, secret: &str| {
        let providers = value!([{"aescbc": {"keys": [{"name": name, "secret": secret}]}}]);
        Keys::of(&value!({"kind": "EncryptionConfiguration", "resources": [{"providers": providers}]}), false).err()
    };
    assert_eq!(with("a", "!").as_deref(), Some("the key \"a\" of aescbc is no base64"));
    assert_eq!(with("a", "YWJj").as_deref(), Some("the key \"a\" of aescbc has 3 bytes"));
    assert_eq!(with("", "").as_deref(), Some("a key has no name"));
    assert!(Keys::of(&value!({"kind": "Config"}), false).is_err());
    // As in Go, line breaks are ignored, and the last digit may have further bits.
    assert_eq!(with("a:b", "MDEyMzQ1Njc4\nOTAxMjM0NR==\n"), None);
}

/// Returns a configuration whose rules have these providers, each with the byte of its key; `identity` has none.
fn storage(rules: &[&[(&str, u8)]]) -> StorageKeys {
    let provider = |(name, byte): &(&str, u8)| {
        let mut provider = Value::object();
        let secret = STANDARD.encode([*byte; 32]);
        let keys = value!({"keys": [{"name": (format!("key{}", byte / 10)), "secret": (secret)}]});
        provider.set_at(&[name], if *name == "identity" { Value::object() } else { keys });
        provider
    };
    let rule = |providers: &&[(&str, u8)]| {
        let providers = Value::Array(providers.iter().map(provider).collect());
        value!({"resources": ["secrets"], "providers": (providers)})
    };
    let rules = Value::Array(rules.iter().map(rule).collect());
    StorageKeys(Keys::of(&value!({"kind": "EncryptionConfiguration", "resources": (rules)}), true).unwrap())
}

#[test]
fn keys_of_files_are_encrypted_by_the_first_key_and_decrypted_by_all() {
    let file_key = [7; 64];
    for provider in ["aescbc", "aesgcm", "secretbox"] {
        let first = storage(&[&[(provider, 11), ("identity", 0)]]);
        let wrapped = first.wrap(&file_key).unwrap().unwrap();
        let beginning = format!("k8s:enc:{provider}:v1:key1:").into_bytes();
        assert!(wrapped.starts_with(&beginning) && !wrapped.windows(9).any(|part| part == [7; 9]));
        assert_ne!(wrapped, first.wrap(&file_key).unwrap().unwrap(), "each time with another nonce");
        assert_eq!(first.unwrap(&wrapped).unwrap(), file_key);
        assert!(first.is_current(&wrapped));
        let rotated = storage(&[&[(provider, 21), (provider, 11)]]);
        assert_eq!(rotated.unwrap(&wrapped).unwrap(), file_key);
        assert!(!rotated.is_current(&wrapped));
        // Another key of the same name, and none of the name.
        for keys in [storage(&[&[(provider, 12)]]), storage(&[&[(provider, 21)]])] {
            let error = keys.unwrap(&wrapped).unwrap_err().to_string();
            assert!(error.ends_with("\"key1\": --encryption-provider-config has no such key"), "{error}");
            assert!(!keys.is_current(&wrapped));
        }
    }
}

#[test]
fn everything_is_encrypted_if_the_first_provider_of_any_resource_encrypts() {
    let encrypts = |rules: &[&[(&str, u8)]]| storage(rules).wrap(&[7; 64]).is_some();
    assert!(!encrypts(&[&[("identity", 0), ("aesgcm", 11)]]), "new data is no longer encrypted");
    assert!(encrypts(&[&[("identity", 0)], &[("aesgcm", 11), ("identity", 0)]]));
}

#[test]
fn of_keys_with_one_name_the_right_one_is_found() {
    // A wrong key of aescbc has a valid padding now and then.
    for _ in 0..2_000 {
        let wrapped = storage(&[&[("aescbc", 12)]]).wrap(&[7; 64]).unwrap().unwrap();
        let both = storage(&[&[("aescbc", 11)], &[("aescbc", 12)]]);
        assert_eq!(both.unwrap(&wrapped).unwrap(), [7; 64]);
    }
}

#[test]
fn configurations_that_kubernetes_refuses_are_refused() {
    let (kind, version) = ("EncryptionConfiguration", "apiserver.config.k8s.io/v1");
    let refused = |resources: Value| {
        checks::check(&value!({"kind": kind, "apiVersion": version, "resources": (resources)})).err().unwrap()
    };
    assert_eq!(refused(value!([])), "it names no resources");
    assert_eq!(refused(value!([{"resources": ["secrets"]}])), "resources[0] has no providers");
    assert_eq!(refused(value!([{"providers": [{"identity": {}}]}])), "resources[0] has no resources");
    let of = |provider: Value| refused(value!([{"resources": ["secrets"], "providers": [(provider)]}]));
    let plugin = value!({"apiVersion": "v2", "name": "a", "endpoint": "unix:///a"});
    for (provider, part) in [
        (value!({"rot13": {}}), "has the unknown field \"rot13\""),
        (value!({"identity": {}, "aescbcc": {}}), "has the unknown field \"aescbcc\""),
        (value!({}), "must be one of"),
        (value!({"identity": {}, "aesgcm": {"keys": []}}), "must be one of"),
        (value!({"aesgcm": {"keys": []}}), "has no keys"),
        (value!({"aesgcm": {"keys": [{"name": "a", "key": ""}]}}), "has the unknown field \"key\""),
        (value!({"kms": {"name": "a", "endpoint": "unix:///a"}}), "v1 is not supported"),
        (value!({"kms": {"apiVersion": "v2", "endpoint": "unix:///a"}}), "must not be empty"),
        (value!({"kms": {"apiVersion": "v2", "name": "a", "endpoint": "http://a"}}), "unix:///PATH"),
        (value!({"kms": {"apiVersion": "v2", "name": "a", "endpoint": "unix:/a", "timeout": "soon"}}), "timeout"),
        (value!({"kms": {"apiVersion": "v2", "name": "a", "endpoint": "unix:/a", "timeout": "0s"}}), "of zero"),
    ] {
        let why = of(provider);
        assert!(why.starts_with("resources[0].providers[0]") && why.contains(part), "{why}");
    }
    let rule = value!({"resources": ["secrets"], "providers": [{"kms": (plugin.clone())}, {"kms": (plugin)}]});
    assert!(refused(value!([(rule)])).contains("another provider kms has"));
    assert!(checks::check(&value!({"kind": kind})).unwrap_err().contains("apiVersion"));
    let former = value!({"kind": "EncryptionConfig", "apiVersion": "v1", "resources": [
        {"resources": ["secrets"], "providers": [{"identity": {}}]}
    ]});
    assert_eq!(checks::check(&former), Ok(()));
}

/// Starts a KMS plugin on a socket, which encrypts by adding a byte. It answers that its key has this name.
fn plugin(socket: &Path, key_id: &'static str) {
    let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(answer(request, respond, key_id));
                    }
                });
            }
        });
    });
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<bytes::Bytes>,
    key_id: &str,
) {
    let (head, mut body) = request.into_parts();
    let mut received = bytes::BytesMut::new();
    while let Some(Ok(bytes)) = body.data().await {
        received.extend_from_slice(&bytes);
    }
    let shift = key_id.len() as u8;
    let added = |bytes: Vec<u8>, by: u8| bytes.into_iter().map(|byte| byte.wrapping_add(by)).collect::<Vec<_>>();
    let frame = match head.uri.path() {
        "/v2.KeyManagementService/Status" => {
            let key_id = key_id.to_owned();
            Some(grpc::framed(&StatusResponse { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id }))
        }
        "/v2.KeyManagementService/Encrypt" => {
            let EncryptRequest { plaintext, .. } = grpc::take(&mut received, 4096).unwrap().unwrap();
            let annotations = [("version.example".to_owned(), b"7".to_vec())].into();
            let (ciphertext, key_id) = (added(plaintext, shift), key_id.to_owned());
            Some(grpc::framed(&EncryptResponse { ciphertext, key_id, annotations }))
        }
        _ => {
            let asked: DecryptRequest = grpc::take(&mut received, 4096).unwrap().unwrap();
            let has_annotations = asked.annotations["version.example"] == b"7";
            let by = 0_u8.wrapping_sub(asked.key_id.len() as u8);
            has_annotations.then(|| grpc::framed(&DecryptResponse { plaintext: added(asked.ciphertext, by) }))
        }
    };
    let ok = http::Response::builder().header("content-type", "application/grpc");
    let Some(frame) = frame else {
        let refused = ok.header("grpc-status", "9").header("grpc-message", "not mine").body(()).unwrap();
        respond.send_response(refused, true).unwrap();
        return;
    };
    let mut stream = respond.send_response(ok.body(()).unwrap(), false).unwrap();
    stream.send_data(frame, false).unwrap();
    stream
        .send_trailers([(http::HeaderName::from_static("grpc-status"), "0".parse().unwrap())].into_iter().collect())
        .unwrap();
}

/// Returns a configuration with a KMS plugin.
fn plugin_at(socket: &Path, name: &str, timeout: &str) -> Value {
    let endpoint = format!("unix://{}", socket.display());
    let kms = value!({"apiVersion": "v2", "name": name, "endpoint": (endpoint), "timeout": timeout});
    let resources = value!([{"resources": ["secrets"], "providers": [{"kms": (kms)}]}]);
    value!({"kind": "EncryptionConfiguration", "resources": (resources)})
}

#[test]
fn a_kms_plugin_encrypts_a_key_that_encrypts_the_rest() {
    let dir = crate::scratch::Scratch::new();
    let keys =
        |socket: &str, name: &str| StorageKeys(Keys::of(&plugin_at(&dir.join(socket), name, "120s"), true).unwrap());
    plugin(&dir.join("first"), "one");
    plugin(&dir.join("second"), "second");
    let first = keys("first", "cloud");
    let wrapped = first.wrap(&[7; 64]).unwrap().unwrap();
    assert!(wrapped.starts_with(b"k8s:enc:kms:v2:cloud:") && !wrapped.windows(9).any(|part| part == [7; 9]));
    assert!(first.is_current(&wrapped));
    // A server that has started again, which asks the plugin for the key.
    let again = keys("first", "cloud");
    assert_eq!(again.unwrap(&wrapped).unwrap(), [7; 64]);
    assert!(again.is_current(&wrapped), "the plugin has the same key");
    assert_ne!(again.wrap(&[7; 64]).unwrap().unwrap(), wrapped);
    let rotated = keys("second", "cloud");
    assert_eq!(rotated.unwrap(&wrapped).unwrap(), [7; 64]);
    assert!(!rotated.is_current(&wrapped), "the plugin has another key");
    let other = keys("first", "other").unwrap(&wrapped).unwrap_err().to_string();
    assert!(other.starts_with("it is encrypted by kms:v2 with \"cloud\""), "{other}");
    // A plugin that is away is not needed for the keys of this run, nor for those that it has decrypted.
    std::fs::remove_file(dir.join("first")).unwrap();
    std::fs::remove_file(dir.join("second")).unwrap();
    for (keys, wrapped) in [(&first, first.wrap(&[9; 64]).unwrap().unwrap()), (&rotated, wrapped.clone())] {
        assert!(keys.unwrap(&wrapped).is_ok());
    }
    let absent = StorageKeys(Keys::of(&plugin_at(&dir.join("first"), "cloud", "300ms"), true).unwrap());
    let absent = absent.unwrap(&wrapped).unwrap_err().to_string();
    assert!(absent.contains("the KMS plugin \"cloud\" at") && absent.contains("cannot connect"), "{absent}");
}
