//! The claims of a token of a provider, and the user that they describe.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flotilla_proto::time::Timestamp;
use serde_json::{Map, Value};

use super::settings::OpenIdSettings;
use crate::access::user::User;
use crate::field::quote;

/// How far the clock of the provider may be ahead: a token is valid from this long before it says so.
const LEEWAY: Duration = Duration::from_secs(300);
/// How the provider of Google names itself in some tokens, and its URL.
const GOOGLE: (&str, &str) = ("accounts.google.com", "https://accounts.google.com");

/// The last second of the year 9999, since 1970: later times cannot be written.
const LAST: u64 = 253_402_300_799;

/// When a token is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    begins: u64,
    ends: u64,
}

impl Validity {
    /// Checks that the token has begun and not expired.
    ///
    /// # Errors
    /// The message of the refusal.
    pub fn check(self, now: SystemTime) -> Result<(), String> {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if since > Duration::from_secs(self.ends) {
            return Err(format!("oidc: token is expired (Token Expiry: {})", shown(self.ends)));
        }
        if since + LEEWAY < Duration::from_secs(self.begins) {
            let (now, begins) = (shown(since.as_secs()), shown(self.begins));
            return Err(format!("oidc: current time {now} before the nbf (not before) time: {begins}"));
        }
        Ok(())
    }
}

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims(Map<String, Value>);

impl Claims {
    /// Reads claims. `None` if they are no JSON object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().map(Self)
    }

    /// Returns whether an issuer has issued the token, as the token itself says.
    pub fn is_of(&self, issuer: &str) -> bool {
        let stated = self.text("iss").unwrap_or("");
        stated == issuer || (stated, issuer) == GOOGLE
    }

    /// Checks that the token is for an audience.
    ///
    /// # Errors
    /// The message of the refusal.
    pub fn check_audience(&self, client: &str) -> Result<(), String> {
        let audiences: Vec<&str> = match self.0.get("aud") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if audiences.contains(&client) {
            return Ok(());
        }
        let audiences: Vec<String> = audiences.into_iter().map(quote).collect();
        Err(format!("oidc: expected audience {} got [{}]", quote(client), audiences.join(" ")))
    }

    /// Returns when the token is valid.
    pub fn validity(&self) -> Validity {
        let seconds = |claim: &str| self.0.get(claim).and_then(Value::as_f64).map_or(0, |seconds| seconds as u64);
        Validity { begins: seconds("nbf"), ends: seconds("exp") }
    }

    /// Returns the user.
    ///
    /// # Errors
    /// The message of the refusal: a claim is missing, or not as it must be.
    pub fn user(&self, settings: &OpenIdSettings) -> Result<User, String> {
        let claim = &settings.username_claim;
        let name = self.string(claim).map_err(|why| format!("parse username claims {}: {why}", quote(claim)))?;
        if claim == "email" {
            match self.0.get("email_verified") {
                None | Some(Value::Bool(true)) => {}
                Some(Value::Bool(false)) => return Err("email not verified".into()),
                Some(_) => return Err("parse 'email_verified' claim: it is no boolean".into()),
            }
        }
        let groups = match settings.groups_claim.as_deref().and_then(|claim| Some((claim, self.0.get(claim)?))) {
            Some((claim, value)) => {
                self.groups(value).map_err(|why| format!("parse groups claim {}: {why}", quote(claim)))?
            }
            None => Vec::new(),
        };
        for (claim, wanted) in &settings.required {
            if !self.0.contains_key(claim) {
                return Err(format!("required claim {claim} not present in ID token"));
            }
            let found = self.string(claim).map_err(|why| format!("parse claim {claim}: {why}"))?;
            if found != wanted {
                let why = format!("value does not match. Got = {found}, want = {wanted}");
                return Err(format!("required claim {claim} {why}"));
            }
        }
        let user = User {
            name: format!("{}{name}", settings.username_prefix).into(),
            groups: groups.into_iter().map(|group| format!("{}{group}", settings.groups_prefix).into()).collect(),
            ..User::default()
        };
        Ok(user.authenticated())
    }

    fn text(&self, claim: &str) -> Option<&str> {
        self.0.get(claim).and_then(Value::as_str)
    }

    fn string(&self, claim: &str) -> Result<&str, String> {
        match self.0.get(claim) {
            None => Err("claim not present".into()),
            Some(value) => value.as_str().ok_or_else(|| "it is no string".into()),
        }
    }

    /// Reads a list of groups, or a single one that is written as a string.
    fn groups<'a>(&self, value: &'a Value) -> Result<Vec<&'a str>, String> {
        match value {
            Value::String(one) => Ok(vec![one]),
            Value::Array(many) => {
                let texts = many.iter().map(|group| group.as_str().ok_or("a group is no string"));
                texts.collect::<Result<_, _>>().map_err(str::to_owned)
            }
            _ => Err("it is no list of strings".into()),
        }
    }
}

/// Formats a time in seconds since 1970 as Go does.
fn shown(seconds: u64) -> String {
    let seconds = seconds.min(LAST).cast_signed();
    Timestamp { seconds, nanos: 0 }.to_string().replace('T', " ").replace('Z', " +0000 UTC")
}
