//! The claims of service account tokens.

use serde::{Deserialize, Serialize};

/// Seconds since 1970; fractions are cut off (RFC 7519, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NumericDate(pub i64);

impl<'de> Deserialize<'de> for NumericDate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The cast saturates, and turns NaN into 0.
        f64::deserialize(deserializer).map(|seconds| Self(seconds as i64))
    }
}

/// A list that may be written as a single string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Audience(pub Vec<String>);

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(String),
            Many(Vec<String>),
        }
        Ok(Self(match Option::<Form>::deserialize(deserializer)? {
            None => vec![],
            Some(Form::One(one)) => vec![one],
            Some(Form::Many(many)) => many,
        }))
    }
}

/// The claims of a token, in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The audiences of the token.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub aud: Audience,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<NumericDate>,
    /// When it was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat: Option<NumericDate>,
    /// The issuer.
    #[serde(default)]
    pub iss: String,
    /// Its id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub jti: String,
    /// The claims that Kubernetes adds.
    #[serde(default, rename = "kubernetes.io", skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// When it becomes valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<NumericDate>,
    /// The user that the token identifies.
    #[serde(default)]
    pub sub: String,
}

fn is_empty(audience: &Audience) -> bool {
    audience.0.is_empty()
}

/// The claims that Kubernetes adds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubernetes {
    /// Namespace of service account, pod and secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// A node that the token is bound to, or that its pod runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// A pod that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// A secret that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The service account.
    #[serde(default)]
    pub serviceaccount: Reference,
    /// The time after which a warning says that the token should have been replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<NumericDate>,
}

/// A reference to an object by name and UID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its UID.
    #[serde(default)]
    pub uid: String,
}

/// The claims of a token that lives in a Secret. It has no audience and does not expire.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyClaims {
    /// The issuer.
    #[serde(default)]
    pub iss: String,
    /// Namespace of account and Secret.
    #[serde(default, rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
    /// The Secret.
    #[serde(default, rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret: String,
    /// The account.
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub account: String,
    /// UID of the account.
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub account_uid: String,
    /// The user that the token identifies.
    #[serde(default)]
    pub sub: String,
}
