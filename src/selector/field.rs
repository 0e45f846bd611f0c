//! Field selectors in their text form.

use compact_str::CompactString;

use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// How a requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// One requirement on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field's name.
    pub field: CompactString,
    /// The comparison.
    pub operator: FieldOperator,
    /// What it compares with.
    pub value: CompactString,
}

impl FieldRequirement {
    /// Whether it is met only by objects that have it as a term: names are none, and what is empty is told of none.
    pub fn demands_term(&self) -> bool {
        self.operator == FieldOperator::Equals && !self.value.is_empty() && !self.field.starts_with("metadata.")
    }

    /// Whether a value of the field meets it.
    pub fn matches(&self, value: &str) -> bool {
        (self.value == value) == (self.operator == FieldOperator::Equals)
    }
}

/// Requirements that must all hold; none of them selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldRequirement>);

impl FieldSelector {
    /// Parses the text form; 400 when it does not parse.
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

    /// Refuses fields that the kind does not select by.
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
            // Kinds that state their own fields name the namespace only where they have one.
            let namespace = field == "metadata.namespace"
                && (namespaced || (strategy.selectable.is_empty() && served.custom.is_none()));
            if !named && !namespace && field != "metadata.name" {
                return Err(ApiError::bad_request(strategy.unknown_field(field)));
            }
        }
        Ok(())
    }

    /// Calls fields as the stored version does.
    pub fn rename(&mut self, selectors: &[(&str, &str)]) {
        for requirement in &mut self.0 {
            if let Some((_, stored)) = selectors.iter().find(|(name, _)| *name == requirement.field) {
                requirement.field = (*stored).into();
            }
        }
    }
}

/// Splits at commas that are not escaped.
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

/// Resolves `\\`, `\,` and `\=`.
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
