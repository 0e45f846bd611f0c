use super::*;
use crate::scratch::Scratch;

fn elliptic(algorithm: &'static rcgen::SignatureAlgorithm) -> SigningKey {
    SigningKey::parse(&rcgen::KeyPair::generate_for(algorithm).unwrap().serialize_pem()).unwrap()
}

#[test]
fn a_key_is_made_once() {
    let dir = Scratch::new();
    let key = SigningKey::open(&dir).unwrap();
    assert_eq!(key.public().algorithm, Algorithm::Rs256);
    assert_eq!(key.public(), SigningKey::open(&dir).unwrap().public());
    let jwk = key.public().jwk();
    assert_eq!(jwk["e"], "AQAB");
    assert_eq!(jwk["n"].as_str().unwrap().len(), 342);
    std::fs::write(dir.join("sa.key"), "nonsense").unwrap();
    assert!(SigningKey::open(&dir).unwrap_err().to_string().contains("sa.key"));
}

#[test]
fn every_algorithm_verifies_what_it_signs() {
    let rsa = SigningKey::open(&Scratch::new()).unwrap();
    for key in [rsa, elliptic(&rcgen::PKCS_ECDSA_P256_SHA256), elliptic(&rcgen::PKCS_ECDSA_P384_SHA384)] {
        // Often enough that numbers of an ECDSA signature have leading zeros.
        for round in 0..200u32 {
            let message = round.to_le_bytes();
            let signature = key.sign(&message).unwrap();
            assert!(key.public().verify(&message, &signature), "{:?}", key.public().algorithm);
            assert!(!key.public().verify(b"other", &signature));
        }
    }
}

#[test]
fn a_key_file_may_have_several_keys() {
    let dir = Scratch::new();
    let (signing, other) = (elliptic(&rcgen::PKCS_ECDSA_P256_SHA256), rcgen::KeyPair::generate().unwrap());
    let path = dir.join("keys.pem");
    std::fs::write(&path, format!("{}{}", other.public_key_pem(), other.serialize_pem())).unwrap();
    let keys = KeySet::new(&signing, KeySet::read(&[path.clone(), path.clone()]).unwrap());
    assert_eq!(keys.candidates("").count(), 2);
    assert_eq!(keys.candidates(&signing.public().id).count(), 1);
    assert_eq!(keys.candidates("unknown").count(), 0);
    assert_eq!(keys.algorithms(), ["ES256"]);
    std::fs::write(&path, "nothing").unwrap();
    assert!(KeySet::read(&[path]).unwrap_err().to_string().contains("keys.pem"));
}
