//! The claims of a token of a provider, and the user that they describe.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flotilla_cel::access::Expression;
use flotilla_cel::value::{Tree, Value as Cel};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Float;
use serde_json::{Map, Value};

use super::settings::{IssuerSettings, Mapping, ValidationRule};
use crate::access::connection::CREDENTIAL_ID;
use crate::access::user::{Extra, User};
use crate::field::quote;
use crate::limits;

/// The issuer in some of Google's tokens, and the URL of that issuer.
const GOOGLE: (&str, &str) = ("accounts.google.com", "https://accounts.google.com");

/// The last second of the year 9999, counted from 1970. Later years have more than four digits, and cannot be
/// formatted.
const LAST: u64 = 253_402_300_799;

/// The text that Go shows for a time that is not set.
const NEVER: &str = "0001-01-01 00:00:00 +0000 UTC";

/// The time in which a token is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    begins: u64,
    /// `None` if the token does not state when it expires: then it counts as expired.
    ends: Option<u64>,
}

impl Validity {
    /// Checks that the token is valid already and has not expired.
    ///
    /// # Errors
    /// The message of the refusal.
    pub fn check(self, now: SystemTime) -> Result<(), String> {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.ends.is_none_or(|ends| since > Duration::from_secs(ends)) {
            let ends = self.ends.map_or_else(|| NEVER.to_owned(), shown);
            return Err(format!("oidc: token is expired (Token Expiry: {ends})"));
        }
        if since + limits::OPENID_CLOCK_LEEWAY < Duration::from_secs(self.begins) {
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
    /// Reads claims. Returns `None` if they are not a JSON object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().map(Self)
    }

    /// Returns whether the token names this issuer.
    pub fn is_of(&self, issuer: &str) -> bool {
        let stated = self.text("iss").unwrap_or("");
        stated == issuer || (stated, issuer) == GOOGLE
    }

    /// Checks that the subject, if the token has one, is a string.
    ///
    /// # Errors
    /// The message of the refusal.
    pub fn check_subject(&self) -> Result<(), String> {
        let found = match self.0.get("sub") {
            None | Some(Value::Null | Value::String(_)) => return Ok(()),
            Some(Value::Bool(_)) => "bool",
            Some(Value::Number(_)) => "number",
            Some(Value::Array(_)) => "array",
            Some(Value::Object(_)) => "object",
        };
        let why = format!("json: cannot unmarshal {found} into Go struct field idToken.sub of type string");
        Err(format!("oidc: failed to unmarshal claims: {why}"))
    }

    /// Checks that the token is for one of these audiences.
    ///
    /// # Errors
    /// The message of the refusal.
    pub fn check_audience(&self, wanted: &[String]) -> Result<(), String> {
        let audiences: Vec<&str> = match self.0.get("aud") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if audiences.iter().any(|audience| wanted.iter().any(|wanted| wanted == audience)) {
            return Ok(());
        }
        let quoted = |texts: &[&str]| texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ");
        let found = quoted(&audiences);
        Err(match wanted {
            [one] => format!("oidc: expected audience {} got [{found}]", quote(one)),
            several => {
                let mut several: Vec<&str> = several.iter().map(String::as_str).collect();
                several.sort_unstable();
                format!("oidc: expected audience in [{}] got [{found}]", quoted(&several))
            }
        })
    }

    /// Returns the time in which the token is valid.
    pub fn validity(&self) -> Validity {
        let seconds = |claim: &str| self.0.get(claim).and_then(Value::as_f64).map(|seconds| seconds as u64);
        Validity { begins: seconds("nbf").unwrap_or(0), ends: seconds("exp") }
    }

    /// Returns the user, in the steps of Kubernetes: name, groups, UID, extra values, required claims, rules.
    ///
    /// # Errors
    /// The message of the refusal: a claim is missing or wrong, or a rule does not hold.
    pub fn user(&self, settings: &IssuerSettings) -> Result<User, String> {
        let (tree, of_oidc) = (self.tree(), |why: String| format!("oidc: {why}"));
        let groups = self.all_groups(settings.groups.as_ref(), &tree);
        let user = User {
            name: self.name(&settings.username, &tree).map_err(of_oidc)?.into(),
            groups: groups.map_err(of_oidc)?.into_iter().map(Into::into).collect(),
            uid: self.uid(settings.uid.as_ref(), &tree).map_err(of_oidc)?.into(),
            extra: self.extra(&settings.extra, &tree)?,
        };
        self.check_rules(settings, &tree, &user).map_err(of_oidc)?;
        Ok(user.authenticated())
    }

    fn check_rules(&self, settings: &IssuerSettings, tree: &Tree, user: &User) -> Result<(), String> {
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
        let wrong = |why| format!("error evaluating claim validation expression: {why}");
        check(&settings.claim_rules, tree).map_err(wrong)?;
        if !settings.user_rules.is_empty() {
            let wrong = |why| format!("error evaluating user info validation rule: {why}");
            check(&settings.user_rules, &user_tree(user)).map_err(wrong)?;
        }
        Ok(())
    }

    fn name(&self, mapping: &Mapping, tree: &Tree) -> Result<String, String> {
        let (claim, prefix) = match mapping {
            Mapping::Claim { claim, prefix } => (claim, prefix),
            Mapping::Expression(expression) => {
                let wrong = |why| format!("error evaluating username claim expression: {why}");
                let name = evaluate(expression, tree).map_err(wrong)?;
                let name = name.as_str();
                let name = name.ok_or_else(|| wrong("username claim expression must return a string".to_owned()))?;
                return match name {
                    "" => Err("empty username via CEL expression is not allowed".to_owned()),
                    name => Ok(name.to_owned()),
                };
            }
        };
        let name = self.string(claim).map_err(|why| format!("parse username claims {}: {why}", quote(claim)))?;
        if claim == "email" {
            match self.0.get("email_verified") {
                None | Some(Value::Bool(true)) => {}
                Some(Value::Bool(false)) => return Err("email not verified".into()),
                Some(_) => return Err("parse 'email_verified' claim: it is no boolean".into()),
            }
        }
        Ok(format!("{prefix}{name}"))
    }

    fn all_groups(&self, mapping: Option<&Mapping>, tree: &Tree) -> Result<Vec<String>, String> {
        match mapping {
            None => Ok(Vec::new()),
            Some(Mapping::Claim { claim, prefix }) => {
                let Some(value) = self.0.get(claim) else { return Ok(Vec::new()) };
                let wrong = |why| format!("parse groups claim {}: {why}", quote(claim));
                let groups = self.groups(value).map_err(wrong)?;
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
            Some(Mapping::Expression(expression)) => {
                let groups = evaluate(expression, tree).and_then(|value| strings(&value));
                groups.map_err(|why| format!("error evaluating group claim expression: {why}"))
            }
        }
    }

    fn uid(&self, mapping: Option<&Mapping>, tree: &Tree) -> Result<String, String> {
        match mapping {
            None => Ok(String::new()),
            Some(Mapping::Claim { claim, .. }) => {
                let uid = self.string(claim).map_err(|why| format!("parse uid claim {}: {why}", quote(claim)))?;
                Ok(uid.to_owned())
            }
            Some(Mapping::Expression(expression)) => {
                let wrong = |why| format!("error evaluating uid claim expression: {why}");
                let uid = evaluate(expression, tree).map_err(wrong)?;
                let uid = uid.as_str().map(str::to_owned);
                uid.ok_or_else(|| wrong("uid claim expression must return a string".to_owned()))
            }
        }
    }

    fn extra(&self, mappings: &[(String, Expression)], tree: &Tree) -> Result<Extra, String> {
        let mut extra = Extra::new();
        if let Some(id) = self.text("jti").filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in mappings {
            let values = evaluate(expression, tree)?;
            let values = strings(&values)
                .map_err(|why| format!("oidc: error evaluating extra claim expression: {}: {why}", expression.text))?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }

    /// Returns the claims as expressions see them: all numbers are doubles.
    fn tree(&self) -> Tree {
        members(&self.0)
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
            Value::Null => Ok(Vec::new()),
            Value::String(one) => Ok(vec![one]),
            Value::Array(many) => {
                let texts = many.iter().map(|group| group.as_str().ok_or("a group is no string"));
                texts.collect::<Result<_, _>>().map_err(str::to_owned)
            }
            _ => Err("it is no list of strings".into()),
        }
    }
}

fn members(of: &Map<String, Value>) -> Tree {
    of.iter().map(|(name, value)| (name.as_str(), tree(value))).collect::<flotilla_proto::value::Map>().into()
}

fn tree(value: &Value) -> Tree {
    match value {
        Value::Null => Tree::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => number.as_f64().and_then(Float::new).map_or(Tree::Null, Tree::Float),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(tree).collect::<Vec<_>>().into(),
        Value::Object(of) => members(of),
    }
}

/// Returns the user as rules see it.
fn user_tree(user: &User) -> Tree {
    let list = |texts: &mut dyn Iterator<Item = &str>| texts.map(Tree::from).collect::<Vec<Tree>>();
    let mut shown = flotilla_proto::value::Map::new();
    shown.insert("username", user.name.as_str());
    shown.insert("uid", user.uid.as_str());
    shown.insert("groups", list(&mut user.groups.iter().map(|group| group.as_str())));
    let mut extra = flotilla_proto::value::Map::new();
    for (key, values) in &user.extra {
        extra.insert(key.as_str(), list(&mut values.iter().map(String::as_str)));
    }
    shown.insert("extra", extra);
    shown.into()
}

fn evaluate<'a>(expression: &'a Expression, tree: &'a Tree) -> Result<Cel<'a>, String> {
    let text = &expression.text;
    expression.evaluate(tree).map_err(|error| format!("expression '{text}' resulted in error: {error}"))
}

/// Checks that rules hold.
fn check(rules: &[ValidationRule], tree: &Tree) -> Result<(), String> {
    let values: Vec<Cel<'_>> = rules.iter().map(|rule| evaluate(&rule.expression, tree)).collect::<Result<_, _>>()?;
    for (rule, value) in rules.iter().zip(values) {
        match value.as_bool() {
            Some(true) => {}
            Some(false) => {
                let (text, message) = (&rule.expression.text, &rule.message);
                return Err(format!("validation expression '{text}' failed: {message}"));
            }
            None => return Err("validation expression must return a boolean".to_owned()),
        }
    }
    Ok(())
}

/// Returns the strings of a list, or the single string. Leaves out empty strings. `null` counts as an empty list.
fn strings(value: &Cel<'_>) -> Result<Vec<String>, String> {
    let wrong = || "expression must return a string or a list of strings".to_owned();
    let texts = match value {
        Cel::Null => Vec::new(),
        Cel::String(text) => vec![text.to_string()],
        Cel::List(list) => {
            let items = list.to_vec().map_err(|_| wrong())?;
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };
    Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
}

/// Formats a time in seconds since 1970 as Go does.
fn shown(seconds: u64) -> String {
    let seconds = seconds.min(LAST).cast_signed();
    Timestamp { seconds, nanos: 0 }.to_string().replace('T', " ").replace('Z', " +0000 UTC")
}
