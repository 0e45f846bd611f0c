//! CertificateSigningRequests: the requested certificate, its approval, and the issued certificate.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use super::conditions::{self, repeated};
use super::signer_name::validate_signer;
use super::signers;
use crate::field::{Errors, Path, quote};
use crate::printing::{Printer, access};
use crate::rules::names::MASTERS;
use crate::rules::{Generation, NameRule, Strategy, Subresource, key_pair, metadata};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Rules of CertificateSigningRequests.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::PathSegment,
    generation: Generation::ClientOwned,
    status: true,
    prepare_create: |object, _| object.set_at(&["status"], value!({})),
    set_requester: Some(set_requester),
    prepare_update: |object, old, _| {
        for part in ["spec", "status"] {
            object.set_at(&[part], old.at(&[part]).clone());
        }
    },
    prepare_status: conditions::prepare_status,
    validate: |object, errors| validate(object, None, errors),
    validate_update: |object, old, errors| validate_change(object, old, WritablePart::Object, errors),
    validate_status: |object, old, errors| validate_change(object, old, WritablePart::Status, errors),
    subresources: &[("approval", Subresource { prepare: conditions::prepare_approval, validate: validate_approval })],
    selectable: &[("spec.signerName", |object| object.str_at(&["spec", "signerName"]).to_owned())],
    resets: &[
        ("", &[&["spec"], &["status"]]),
        ("status", &[&["spec"], &["status", "conditions"]]),
        ("approval", &[&["spec"], &["status", "certificate"]]),
    ],
    printer: Some(Printer::of(access::certificate_request)),
    ..Strategy::DEFAULT
};

/// The part of a CertificateSigningRequest that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WritablePart {
    Object,
    Status,
    Approval,
}

/// Returns whether a request asks for a client certificate in the group `system:masters`.
pub fn asks_for_masters(object: &Value) -> bool {
    if object.str_at(&["spec", "signerName"]) != signers::CLIENT {
        return false;
    }
    let request = STANDARD.decode(object.str_at(&["spec", "request"])).unwrap_or_default();
    key_pair::pem_blocks(&request).first().is_some_and(|block| {
        X509CertificationRequest::from_der(&block.der).is_ok_and(|(_, request)| {
            let mut organizations = request.certification_request_info.subject.iter_organization();
            organizations.any(|name| name.as_str() == Ok(MASTERS))
        })
    })
}

/// Returns the common name in the certificate request.
///
/// # Errors
/// If the certificate request cannot be parsed.
pub fn requested_name(object: &Value) -> Result<String, String> {
    let request = STANDARD.decode(object.str_at(&["spec", "request"])).unwrap_or_default();
    validate_request(&request)?;
    let block = key_pair::pem_blocks(&request).into_iter().next().ok_or("no request in it")?;
    let (_, parsed) = X509CertificationRequest::from_der(&block.der).map_err(|error| error.to_string())?;
    let names = parsed.certification_request_info.subject.iter_common_name();
    Ok(names.filter_map(|name| name.as_str().ok()).last().unwrap_or("").to_owned())
}

/// Writes the user who makes the request into a new CertificateSigningRequest, in place of the user that the client
/// sent.
fn set_requester(object: &mut Value, user: &Value) {
    for field in ["username", "uid", "groups", "extra"] {
        let value = user.at(&[field]);
        let is_empty = match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => members.is_empty(),
            other => other.as_str().is_none_or(str::is_empty),
        };
        match is_empty {
            true => drop(object.remove_at(&["spec", field])),
            false => object.set_at(&["spec", field], value.clone()),
        }
    }
}

/// Checks a write of `/approval`.
pub fn validate_approval(object: &Value, old: &Value, errors: &mut Errors) {
    validate_change(object, old, WritablePart::Approval, errors);
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let request = STANDARD.decode(spec.str_at(&["request"])).unwrap_or_default();
    if let Err(why) = validate_request(&request) {
        errors.invalid(&path.child("request"), spec.at(&["request"]), why);
    }
    let usages = spec.list_at(&["usages"]);
    if usages.is_empty() {
        errors.required(&path.child("usages"), "");
    }
    let known = |usage: &Value| usage.as_str().is_some_and(|usage| USAGES.contains(&usage));
    let before = old.map_or(&[][..], |old| old.list_at(&["spec", "usages"]));
    if before.iter().all(known) {
        for (index, usage) in usages.iter().enumerate().filter(|(_, usage)| !known(usage)) {
            errors.not_supported(&path.child("usages").index(index), usage.as_str().unwrap_or(""), &USAGES);
        }
    }
    if repeated(before.iter().map(Value::as_str)).next().is_none() {
        for index in repeated(usages.iter().map(Value::as_str)) {
            errors.duplicate(&path.child("usages").index(index), &usages[index]);
        }
    }
    let signer = spec.str_at(&["signerName"]);
    let legacy = old.is_some_and(|old| old.str_at(&["spec", "signerName"]) == LEGACY_SIGNER);
    if signer == LEGACY_SIGNER && !legacy {
        let why = "the legacy signerName is not allowed via this API version";
        errors.invalid_str(&path.child("signerName"), signer, why);
    } else {
        validate_signer(signer, &path.child("signerName"), errors);
    }
    if let Some(seconds) = spec.int_at(&["expirationSeconds"]).filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&path.child("expirationSeconds"), &seconds.into(), why);
    }
    conditions::validate(object, old, errors);
    let certificate = object.at(&["status", "certificate"]);
    let decoded = |certificate: &Value| STANDARD.decode(certificate.as_str().unwrap_or("")).unwrap_or_default();
    let tolerated = old.is_some_and(|old| {
        let before = old.at(&["status", "certificate"]);
        before == certificate || validate_certificate(&decoded(before)).is_err()
    });
    if !tolerated && let Err(why) = validate_certificate(&decoded(certificate)) {
        errors.invalid_str(&Path::root("status.certificate"), "<certificate data>", why);
    }
}

fn validate_request(pem: &[u8]) -> Result<(), String> {
    match key_pair::pem_blocks(pem).first() {
        Some(block) if block.label == "CERTIFICATE REQUEST" => {
            if key_pair::is_sequence(&block.der) {
                Ok(())
            } else {
                Err("asn1: structure error: tags don't match".into())
            }
        }
        _ => Err("PEM block type must be CERTIFICATE REQUEST".into()),
    }
}

fn validate_certificate(pem: &[u8]) -> Result<(), String> {
    if pem.is_empty() {
        return Ok(());
    }
    let blocks = key_pair::pem_blocks(pem);
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {}", quote(&block.label)));
        }
        if block.headers {
            return Err("no PEM block headers are permitted".into());
        }
        if block.der.is_empty() {
            return Err("found CERTIFICATE PEM block containing 0 certificates".into());
        }
        if !key_pair::is_sequence(&block.der) {
            return Err("x509: malformed certificate".into());
        }
    }
    if blocks.is_empty() { Err("must contain at least one CERTIFICATE PEM block".into()) } else { Ok(()) }
}

fn validate_change(object: &Value, old: &Value, part: WritablePart, errors: &mut Errors) {
    metadata::validate_again(STRATEGY.name, false, object, errors);
    validate(object, Some(old), errors);
    conditions::validate_change(object, old, part == WritablePart::Approval, errors);
    let before = old.str_at(&["status", "certificate"]);
    if object.str_at(&["status", "certificate"]) != before {
        let path = Path::root("status.certificate");
        if part != WritablePart::Status {
            errors.forbidden(&path, "updates may not set certificate content");
        } else if !before.is_empty() {
            errors.forbidden(&path, "updates may not modify existing certificate content");
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::time::Timestamp;

    use super::*;

    fn request() -> Value {
        let pem = "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n";
        value!({"metadata": {"name": "r"}, "spec": {"request": (STANDARD.encode(pem)), "usages": ["client auth"],
            "signerName": "example.com/s"}, "status": {}})
    }

    #[test]
    fn requests_are_checked() {
        let broken = |object: &Value| {
            let mut errors = Errors::default();
            validate(object, None, &mut errors);
            errors.0.iter().map(|error| error.field.clone()).collect::<Vec<_>>()
        };
        assert!(broken(&request()).is_empty());
        assert_eq!(broken(&value!({"spec": {}})), ["spec.request", "spec.usages", "spec.signerName"]);
        let mut signer = request();
        signer.set_at(&["spec", "signerName"], "nodomain/A_");
        assert_eq!(broken(&signer), ["spec.signerName", "spec.signerName"]);
    }

    #[test]
    fn approval_is_a_subresource() {
        let old = request();
        let mut new = old.clone();
        new.set_at(&["status", "conditions"], value!([{"type": "Approved", "status": "True"}]));
        let mut errors = Errors::default();
        validate_change(&new, &old, WritablePart::Status, &mut errors);
        assert_eq!(errors.0.len(), 1);
        conditions::prepare_approval(&mut new, &old, Timestamp { seconds: 0, nanos: 0 });
        let mut errors = Errors::default();
        validate_approval(&new, &old, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(new.list_at(&["status", "conditions"])[0].str_at(&["lastUpdateTime"]), "1970-01-01T00:00:00Z");
    }
}
