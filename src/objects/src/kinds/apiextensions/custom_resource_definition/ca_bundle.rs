//! The CA bundle that verifies the conversion webhook of a definition.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value::Value;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::field::{Errors, Path};
use crate::rules::key_pair;

fn bundle(object: &Value) -> &str {
    object.str_at(&["spec", "conversion", "webhook", "clientConfig", "caBundle"])
}

/// Returns the fault of the CA bundle of a definition. `None` if the bundle is valid or absent.
pub fn fault(object: &Value) -> Option<&'static str> {
    let text = STANDARD.decode(bundle(object)).unwrap_or_default();
    if text.is_empty() {
        return None;
    }
    let blocks = key_pair::pem_blocks(&text);
    let mut certificates = blocks.iter().filter(|block| block.label == "CERTIFICATE" && !block.headers).peekable();
    if certificates.peek().is_none() {
        return Some("unable to load root certificates: unable to parse bytes as PEM block");
    }
    let readable = certificates.any(|block| X509Certificate::from_der(&block.der).is_ok());
    (!readable).then_some("unable to load root certificates: failed to parse certificate: x509: malformed certificate")
}

/// Checks the CA bundle in an update of an established definition whose stored CA bundle is valid.
pub fn validate(object: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(why) = fault(object).filter(|_| fault(old).is_none()) {
        errors.invalid_str(&path.child("caBundle"), bundle(object), why);
    }
}
