//! Parses and evaluates field selectors.

use compact_str::CompactString;
use flotilla_proto::value::Value;

use crate::custom::Custom;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// The comparison of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// A requirement on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The name of the field.
    pub field: CompactString,
    /// The comparison.
    pub operator: FieldOperator,
    /// The value to compare with.
    pub value: CompactString,
}

impl FieldRequirement {
    /// Returns whether only objects with this field as an index term can meet the requirement. Names and empty values
    /// are not terms.
    pub fn demands_term(&self) -> bool {
        self.operator == FieldOperator::Equals && !self.value.is_empty() && !self.field.starts_with("metadata.")
    }

    /// Returns whether a value of the field meets the requirement.
    pub fn matches(&self, value: &str) -> bool {
        (self.value == value) == (self.operator == FieldOperator::Equals)
    }
}

/// Requirements that must all hold. Without any, every object is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldRequirement>);

impl FieldSelector {
    /// Parses the text form.
    ///
    /// # Errors
    /// 400 if it is malformed.
    pub fn parse(text: &str) -> ApiResult<Self> {
        let mut requirements = Vec::new();
        let mut terms = terms(text);
        terms.sort_unstable();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, operator, value)) = split(term) else {
                let message = format!("invalid selector: '{text}'; can't understand '{term}'");
                return Err(ApiError::bad_request(message));
            };
            let value =
                unescape(value).map_err(|why| ApiError::bad_request(format!("invalid field selector: {why}")))?;
            requirements.push(FieldRequirement { field: field.into(), operator, value });
        }
        Ok(Self(requirements))
    }

    /// Removes the requirements without field and value. In lists of the reference they demand nothing, even with `!=`.
    pub fn remove_blank(&mut self) {
        self.0.retain(|requirement| !requirement.field.is_empty() || !requirement.value.is_empty());
    }

    /// Checks that the kind can be selected by all of the fields.
    ///
    /// # Errors
    /// 400 for the first field by which it cannot be selected.
    pub fn check(&self, served: &Served) -> ApiResult<()> {
        let (strategy, namespaced) = (served.strategy, served.resource.namespaced);
        for FieldRequirement { field, .. } in &self.0 {
            if served.custom.as_ref().is_some_and(|custom| custom.selectors().any(|name| name == *field)) {
                continue;
            }
            let named = match strategy.selectors {
                [] => {
                    strategy.selectable.iter().any(|(name, _)| name == field)
                        || strategy.aliases.iter().any(|(name, _)| name == field)
                }
                selectors => selectors.iter().any(|(name, _)| name == field),
            };
            // Kinds with fields of their own accept the namespace only if they are namespaced.
            let namespace = field == "metadata.namespace"
                && (namespaced || (strategy.selectable.is_empty() && served.custom.is_none()));
            if !named && !namespace && field != "metadata.name" {
                return Err(ApiError::bad_request(strategy.unknown_field(&served.resource.version, field)));
            }
        }
        Ok(())
    }

    /// Removes and returns the requirements that objects must meet in the version of the request: those on fields of a
    /// custom resource that a webhook converts.
    pub fn take_converted(&mut self, served: &Served) -> Self {
        let custom = served.custom.as_ref().filter(|custom| custom.converted_by_webhook().is_some());
        let Some(custom) = custom else { return Self::default() };
        let is_converted = |requirement: &FieldRequirement| custom.selectors().any(|name| name == *requirement.field);
        let (converted, stored) = std::mem::take(&mut self.0).into_iter().partition(is_converted);
        self.0 = stored;
        Self(converted)
    }

    /// Returns whether a custom resource, in the version of the request, meets all requirements.
    pub fn selects(&self, custom: &Custom, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.matches(&custom.selected_field(object, &requirement.field)))
    }

    /// Replaces the field names of a version by those of the stored version.
    pub fn rename(&mut self, selectors: &[(&str, &str)]) {
        for requirement in &mut self.0 {
            if let Some((_, stored)) = selectors.iter().find(|(name, _)| *name == requirement.field) {
                requirement.field = (*stored).into();
            }
        }
    }
}

/// Splits the text at commas that are not escaped.
fn terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let at = term.find(['=', '!']).filter(|&at| term[at..].starts_with('=') || term[at..].starts_with("!="));
    let at = at.or_else(|| term.find("!=")).or_else(|| term.find('='))?;
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, FieldOperator::NotEquals, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, FieldOperator::Equals, value))
}

/// Resolves the escapes `\\`, `\,` and `\=`.
fn unescape(value: &str) -> Result<CompactString, String> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(value.into());
    }
    let mut out = CompactString::default();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(other) => return Err(format!("invalid escape sequence: \\{other}")),
                None => return Err("invalid escape sequence: \\".into()),
            },
            ',' | '=' => return Err(format!("unescaped character in value: {}", c as u32)),
            c => out.push(c),
        }
    }
    Ok(out)
}
