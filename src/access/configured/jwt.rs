//! An issuer of an AuthenticationConfiguration: a JWTAuthenticator.

use std::collections::BTreeMap;

use bytes::Bytes;
use flotilla_cel::access::{Expression, Refused, Subject};
use flotilla_golang::url::Url;
use flotilla_proto::value::Value;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::document::DocumentForm;
use crate::access::openid::{Algorithm, IssuerSettings, Mapping, ValidationRule};
use crate::field::{ErrorKind, Errors, Path};
use crate::outbound::Network;
use crate::rules::names;

const PREFIXED: DocumentForm = DocumentForm::Object(
    "PrefixedClaimOrExpression",
    &[("claim", DocumentForm::Text), ("prefix", DocumentForm::Text), ("expression", DocumentForm::Text)],
);
const UNPREFIXED: DocumentForm =
    DocumentForm::Object("ClaimOrExpression", &[("claim", DocumentForm::Text), ("expression", DocumentForm::Text)]);
const EXTRA: DocumentForm =
    DocumentForm::Object("ExtraMapping", &[("key", DocumentForm::Text), ("valueExpression", DocumentForm::Text)]);
const CLAIM_RULE: DocumentForm = DocumentForm::Object(
    "ClaimValidationRule",
    &[
        ("claim", DocumentForm::Text),
        ("requiredValue", DocumentForm::Text),
        ("expression", DocumentForm::Text),
        ("message", DocumentForm::Text),
    ],
);
const USER_RULE: DocumentForm =
    DocumentForm::Object("UserValidationRule", &[("expression", DocumentForm::Text), ("message", DocumentForm::Text)]);
const ISSUER: DocumentForm = DocumentForm::Object(
    "Issuer",
    &[
        ("url", DocumentForm::Text),
        ("discoveryURL", DocumentForm::Text),
        ("certificateAuthority", DocumentForm::Text),
        ("audiences", DocumentForm::List(&DocumentForm::Text)),
        ("audienceMatchPolicy", DocumentForm::Text),
        ("egressSelectorType", DocumentForm::Text),
    ],
);
const MAPPINGS: DocumentForm = DocumentForm::Object(
    "ClaimMappings",
    &[("username", PREFIXED), ("groups", PREFIXED), ("uid", UNPREFIXED), ("extra", DocumentForm::List(&EXTRA))],
);
/// The form of an issuer.
pub const FORM: DocumentForm = DocumentForm::Object(
    "JWTAuthenticator",
    &[
        ("issuer", ISSUER),
        ("claimValidationRules", DocumentForm::List(&CLAIM_RULE)),
        ("claimMappings", MAPPINGS),
        ("userValidationRules", DocumentForm::List(&USER_RULE)),
    ],
);

/// Domains of extra keys that Kubernetes reserves.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];
const EMAIL: (&str, &str) = ("claims", "email");
const EMAIL_VERIFIED: (&str, &str) = ("claims", "email_verified");

/// Reads an issuer; adds an error for each field that is wrong. `own` has the issuers of service account tokens.
/// Returns `None` if the mapping of the user's name is missing or wrong.
pub fn read(path: &Path<'_>, stated: &Value, own: &[String], errors: &mut Errors) -> Option<IssuerSettings> {
    let (issuer, place) = (stated.at(&["issuer"]), path.child("issuer"));
    let (url, discovery) = (issuer.str_at(&["url"]), issuer.str_at(&["discoveryURL"]));
    if url.is_empty() {
        errors.required(&place.child("url"), "");
    } else {
        check_url(&place.child("url"), url, own, errors);
    }
    if !discovery.is_empty() {
        if !url.is_empty() && url.trim_end_matches('/') == discovery.trim_end_matches('/') {
            let why = "discoveryURL must be different from URL";
            errors.invalid_str(&place.child("discoveryURL"), discovery, why);
        }
        check_url(&place.child("discoveryURL"), discovery, &[], errors);
    }
    let audiences = audiences(&place, issuer, errors);
    let authorities = issuer.str_at(&["certificateAuthority"]);
    if !authorities.is_empty()
        && CertificateDer::pem_slice_iter(authorities.as_bytes()).filter_map(Result::ok).count() == 0
    {
        let why = "data does not contain any valid RSA or ECDSA certificates";
        errors.invalid_str(&place.child("certificateAuthority"), "<omitted>", why);
    }
    let network = match issuer.str_at(&["egressSelectorType"]) {
        "" => Network::Direct,
        name => Network::named(name).unwrap_or_else(|| {
            let why = "egress selector must be either controlplane or cluster";
            errors.invalid_str(&place.child("egressSelectorType"), name, why);
            Network::Direct
        }),
    };
    let (required, claim_rules) = claim_rules(&path.child("claimValidationRules"), stated, errors);
    let mappings = path.child("claimMappings");
    let of = stated.at(&["claimMappings"]);
    let username = mapping(&mappings.child("username"), of.at(&["username"]), Needs::ClaimAndPrefix, errors);
    let groups = mapping(&mappings.child("groups"), of.at(&["groups"]), Needs::Prefix, errors);
    let uid = mapping(&mappings.child("uid"), of.at(&["uid"]), Needs::Nothing, errors);
    let extra = extra(&mappings.child("extra"), of, errors);
    let is_verified = claim_rules.iter().map(|rule| &rule.expression).chain(extra.iter().map(|(_, value)| value));
    let is_verified =
        is_verified.chain(expression(username.as_ref())).any(|one| one.selects(EMAIL_VERIFIED.0, EMAIL_VERIFIED.1));
    if let Some(name) = expression(username.as_ref()).filter(|name| name.selects(EMAIL.0, EMAIL.1) && !is_verified) {
        let why = "claims.email_verified must be used in claimMappings.username.expression or \
            claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
            claimMappings.username.expression";
        errors.invalid_str(&mappings.child("username").child("expression"), &name.text, why);
    }
    let user_rules = user_rules(&path.child("userValidationRules"), stated, errors);
    Some(IssuerSettings {
        url: url.to_owned(),
        discovery_url: Some(discovery.to_owned()).filter(|url| !url.is_empty()),
        audiences,
        authorities: Bytes::copy_from_slice(authorities.as_bytes()),
        network,
        algorithms: Algorithm::all(),
        username: username?,
        groups,
        uid,
        extra,
        required,
        claim_rules,
        user_rules,
    })
}

fn expression(mapping: Option<&Mapping>) -> Option<&Expression> {
    match mapping {
        Some(Mapping::Expression(expression)) => Some(expression),
        _ => None,
    }
}

fn check_url(path: &Path<'_>, text: &str, own: &[String], errors: &mut Errors) {
    if own.iter().any(|own| own == text) {
        let mut own = own.to_vec();
        own.sort_unstable();
        let why = format!("URL must not overlap with disallowed issuers: [{}]", own.join(" "));
        errors.invalid_str(path, text, why);
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return errors.invalid_str(path, text, error.to_string()),
    };
    let wrong = [
        (url.scheme != "https", "URL scheme must be https"),
        (url.user.is_some(), "URL must not contain a username or password"),
        (!url.raw_query.is_empty(), "URL must not contain a query"),
        (!url.fragment.is_empty(), "URL must not contain a fragment"),
    ];
    wrong.into_iter().filter(|(is_wrong, _)| *is_wrong).for_each(|(_, why)| errors.invalid_str(path, text, why));
}

fn audiences(issuer: &Path<'_>, stated: &Value, errors: &mut Errors) -> Vec<String> {
    let path = issuer.child("audiences");
    let audiences: Vec<&str> = stated.list_at(&["audiences"]).iter().map(|one| one.as_str().unwrap_or("")).collect();
    if audiences.is_empty() {
        errors.required(&path, format!("at least one {path} is required"));
        return Vec::new();
    }
    for (at, audience) in audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.required(&path.index(at), "");
        }
        if audiences[..at].contains(audience) {
            errors.duplicate(&path.index(at), &(*audience).into());
        }
    }
    let (policy, place) = (stated.str_at(&["audienceMatchPolicy"]), issuer.child("audienceMatchPolicy"));
    let is_any = policy == "MatchAny";
    if audiences.len() > 1 && !is_any {
        errors.invalid_str(&place, policy, "audienceMatchPolicy must be MatchAny for multiple audiences");
    } else if !policy.is_empty() && !is_any {
        errors.invalid_str(&place, policy, "audienceMatchPolicy must be empty or MatchAny for single audience");
    }
    audiences.into_iter().map(str::to_owned).collect()
}

/// Compiles an expression; adds an error if it does not compile.
fn compile(path: &Path<'_>, text: &str, subject: Subject, is_bool: bool, errors: &mut Errors) -> Option<Expression> {
    match Expression::compile(text, subject, is_bool) {
        Ok(expression) => Some(expression),
        Err(refused) => {
            match refused {
                Refused::Invalid(why) => errors.invalid_str(path, text, why),
                Refused::Type(_) => errors.invalid_str(path, text, "must evaluate to bool"),
                Refused::Internal(why) => errors.push(ErrorKind::Internal, path, "", why),
            }
            None
        }
    }
}

type ClaimRules = (BTreeMap<String, String>, Vec<ValidationRule>);

fn claim_rules(path: &Path<'_>, stated: &Value, errors: &mut Errors) -> ClaimRules {
    let (mut required, mut rules) = (BTreeMap::new(), Vec::new());
    let mut expressions: Vec<&str> = Vec::new();
    for (at, rule) in stated.list_at(&["claimValidationRules"]).iter().enumerate() {
        let path = path.index(at);
        let text = |member: &str| rule.str_at(&[member]);
        let (claim, expression, message, value) =
            (text("claim"), rule.str_at(&["expression"]), text("message"), text("requiredValue"));
        match (claim, expression) {
            ("", "") => errors.required(&path, "claim or expression is required"),
            (claim, "") => {
                if !message.is_empty() {
                    errors.invalid_str(&path.child("message"), message, "may not be specified when claim is set");
                }
                if required.insert(claim.to_owned(), value.to_owned()).is_some() {
                    errors.duplicate(&path.child("claim"), &claim.into());
                }
            }
            ("", expression) => {
                if !value.is_empty() {
                    let why = "may not be specified when expression is set";
                    errors.invalid_str(&path.child("requiredValue"), value, why);
                }
                let place = path.child("expression");
                if expressions.contains(&expression) {
                    errors.duplicate(&place, &expression.into());
                    continue;
                }
                expressions.push(expression);
                let compiled = compile(&place, expression, Subject::Claims, true, errors);
                rules.extend(compiled.map(|expression| ValidationRule { expression, message: message.to_owned() }));
            }
            (claim, _) => errors.invalid_str(&path, claim, "claim and expression can't both be set"),
        }
    }
    (required, rules)
}

fn user_rules(path: &Path<'_>, stated: &Value, errors: &mut Errors) -> Vec<ValidationRule> {
    let (mut rules, mut expressions): (Vec<ValidationRule>, Vec<&str>) = (Vec::new(), Vec::new());
    for (at, rule) in stated.list_at(&["userValidationRules"]).iter().enumerate() {
        let (path, text) = (path.index(at), rule.str_at(&["expression"]));
        let place = path.child("expression");
        if text.is_empty() {
            errors.required(&place, "");
        } else if expressions.contains(&text) {
            errors.duplicate(&place, &text.into());
        } else {
            expressions.push(text);
            let compiled = compile(&place, text, Subject::User, true, errors);
            let message = rule.str_at(&["message"]).to_owned();
            rules.extend(compiled.map(|expression| ValidationRule { expression, message }));
        }
    }
    rules
}

/// The parts that a mapping must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// A claim or an expression, and a prefix with a claim.
    ClaimAndPrefix,
    /// A prefix with a claim.
    Prefix,
    /// Nothing.
    Nothing,
}

fn mapping(path: &Path<'_>, stated: &Value, needs: Needs, errors: &mut Errors) -> Option<Mapping> {
    let (claim, expression, prefix) =
        (stated.str_at(&["claim"]), stated.str_at(&["expression"]), stated.at(&["prefix"]).as_str());
    match (claim, expression) {
        ("", "") => {
            if needs == Needs::ClaimAndPrefix {
                errors.required(path, "claim or expression is required");
            }
            None
        }
        ("", expression) => {
            if let Some(prefix) = prefix {
                let why = "may not be specified when expression is set";
                errors.invalid_str(&path.child("prefix"), prefix, why);
            }
            let compiled = compile(&path.child("expression"), expression, Subject::Claims, false, errors);
            compiled.map(Mapping::Expression)
        }
        (claim, "") => {
            if prefix.is_none() && needs != Needs::Nothing {
                let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                errors.required(&path.child("prefix"), why);
            }
            Some(Mapping::Claim { claim: claim.to_owned(), prefix: prefix.unwrap_or("").to_owned() })
        }
        _ => {
            errors.invalid_str(path, "", "claim and expression can't both be set");
            None
        }
    }
}

fn extra(path: &Path<'_>, mappings: &Value, errors: &mut Errors) -> Vec<(String, Expression)> {
    let (mut extra, mut keys): (Vec<_>, Vec<&str>) = (Vec::new(), Vec::new());
    for (at, one) in mappings.list_at(&["extra"]).iter().enumerate() {
        let path = path.index(at);
        let (key, text, place) = (one.str_at(&["key"]), one.str_at(&["valueExpression"]), path.child("key"));
        names::check_domain_path(&place, key, errors);
        if key != key.to_lowercase() {
            errors.invalid_str(&place, key, "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        if RESERVED.iter().any(|own| domain == *own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')))
        {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            errors.invalid_str(&place, key, why);
        }
        if keys.contains(&key) {
            errors.duplicate(&place, &key.into());
            continue;
        }
        keys.push(key);
        let place = path.child("valueExpression");
        if text.is_empty() {
            errors.required(&place, "");
            continue;
        }
        let compiled = compile(&place, text, Subject::Claims, false, errors);
        extra.extend(compiled.map(|expression| (key.to_owned(), expression)));
    }
    extra
}
