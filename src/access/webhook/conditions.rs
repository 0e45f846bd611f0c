//! The match conditions of a webhook. It is asked only about requests for which all of them are true.

use flotilla_cel::access::{Expression, Refused, Subject};
use flotilla_proto::value::Value;

use crate::field::joined;

/// The conditions, compiled.
#[derive(Debug)]
pub struct Conditions(Vec<Expression>);

/// Compiles a condition.
///
/// # Errors
/// The condition does not compile, or is not of type bool.
pub fn compile(text: &str) -> Result<Expression, String> {
    Expression::compile(text, Subject::Request, true).map_err(|refused| match refused {
        Refused::Invalid(why) | Refused::Internal(why) => why,
        Refused::Type(found) => format!("must evaluate to bool but got {}", found.declared_name()),
    })
}

impl Conditions {
    /// Compiles conditions.
    ///
    /// # Errors
    /// The error of the first condition that does not compile.
    pub fn compile(texts: &[String]) -> Result<Self, String> {
        texts.iter().map(|text| compile(text)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether all conditions are true for a request. One false condition decides, even if others cannot be
    /// evaluated.
    ///
    /// # Errors
    /// Some conditions cannot be evaluated, and all others are true.
    pub fn matches(&self, request: &Value) -> Result<bool, String> {
        let mut errors = Vec::new();
        for condition in &self.0 {
            match condition.evaluate(request) {
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(_) => return Ok(false),
                Err(error) => {
                    let text = &condition.text;
                    errors.push(format!("cel evaluation error: expression '{text}' resulted in error: {error}"));
                }
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(joined(errors)) }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn one_false_condition_outweighs_errors() {
        let request = value!({"user": "ann", "groups": [], "uid": "", "extra": {}});
        let matches = |texts: &[&str]| {
            Conditions::compile(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
                .unwrap()
                .matches(&request)
        };
        let fails = "request.resourceAttributes.verb == 'get'";
        assert_eq!(matches(&["request.user == 'ann'", "request.uid == ''"]), Ok(true));
        assert_eq!(matches(&[fails, "request.user == 'bob'"]), Ok(false));
        let why =
            format!("cel evaluation error: expression '{fails}' resulted in error: no such key: resourceAttributes");
        assert_eq!(matches(&[fails, "true"]), Err(why));
        assert_eq!(compile("request.user").unwrap_err(), "must evaluate to bool but got string");
    }
}
