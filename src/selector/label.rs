//! Parses and evaluates label selectors.

use compact_str::CompactString;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::rules::names;
use crate::status::{ApiError, ApiResult};

/// The comparison of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The label is one of the values.
    In,
    /// The label is absent, or is none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is a larger integer.
    GreaterThan,
    /// The label is a smaller integer.
    LessThan,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key of the label.
    pub key: CompactString,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with, sorted.
    pub values: Vec<CompactString>,
}

/// Requirements that must all hold. Without any, every object is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<Requirement>);

impl LabelSelector {
    /// Parses the text form.
    ///
    /// # Errors
    /// 400 if it is malformed, in the reference's words.
    pub fn parse(text: &str) -> ApiResult<Self> {
        let mut parser = SelectorParser { tokens: tokens(text), at: 0 };
        parser.selector().map(Self).map_err(ApiError::bad_request)
    }

    /// Reads a `LabelSelector` of an object. An absent one has no requirements. No value meets an expression with an
    /// unknown operator.
    pub fn of(selector: &Value) -> Self {
        let exact = selector
            .map_at(&["matchLabels"])
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, value)| Requirement::new(key, Operator::In, value.as_str().into_iter()));
        let expressions = selector.list_at(&["matchExpressions"]).iter().map(|expression| {
            let values = expression.list_at(&["values"]).iter().filter_map(Value::as_str);
            let key = expression.str_at(&["key"]);
            match expression.str_at(&["operator"]) {
                "In" => Requirement::new(key, Operator::In, values),
                "NotIn" => Requirement::new(key, Operator::NotIn, values),
                "Exists" => Requirement::new(key, Operator::Exists, values),
                "DoesNotExist" => Requirement::new(key, Operator::DoesNotExist, values),
                _ => Requirement::new(key, Operator::In, std::iter::empty()),
            }
        });
        Self(exact.chain(expressions).collect())
    }

    /// Returns whether there are no requirements. Every object is then selected.
    pub const fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the labels of an object meet every requirement.
    pub fn matches_labels(&self, labels: Option<&Map>) -> bool {
        self.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
    }

    /// Returns whether labels meet every requirement. `label` looks up the value of a key.
    pub fn matches<'t>(&self, label: impl Fn(&str) -> Option<&'t str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }
}

impl Requirement {
    fn new<'a>(key: &str, operator: Operator, values: impl Iterator<Item = &'a str>) -> Self {
        let mut values: Vec<CompactString> = values.map(CompactString::from).collect();
        values.sort_unstable();
        Self { key: key.into(), operator, values }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        match self.operator {
            Operator::In => value.is_some_and(|value| self.has(value)),
            Operator::NotIn => value.is_none_or(|value| !self.has(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let pair = value.and_then(number).zip(self.values.first().and_then(|v| number(v)));
                pair.is_some_and(
                    |(have, want)| if self.operator == Operator::GreaterThan { have > want } else { have < want },
                )
            }
        }
    }

    /// Returns whether a value is one of the requirement's values.
    fn has(&self, value: &str) -> bool {
        self.values.binary_search_by(|own| own.as_str().cmp(value)).is_ok()
    }

    fn validate(&self) -> Result<(), String> {
        let mut errors = Errors::default();
        names::check(&Path::root("<nil>"), &self.key, names::qualified_name, &mut errors);
        let values = Path::root("values");
        if matches!(self.operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in self.values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.invalid_str(&values.index(index), value, why);
                }
            }
        }
        for (index, value) in self.values.iter().enumerate() {
            names::check(&values.index(index).key(&self.key), value, names::label_value, &mut errors);
        }
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        match &texts[..] {
            [] => Ok(()),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelToken<'a> {
    Word(&'a str),
    Mark(&'static str),
    End,
}

impl LabelToken<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Mark(mark) => mark,
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<LabelToken<'_>> {
    const MARKS: [&str; 10] = ["==", "!=", "!", "=", "(", ")", ",", ">", "<", ""];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while !rest.is_empty() {
        let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark)).unwrap_or("");
        if mark.is_empty() {
            let special = |c: char| c.is_ascii_whitespace() || "=!(),><".contains(c);
            let end = rest.find(special).unwrap_or(rest.len());
            tokens.push(LabelToken::Word(&rest[..end]));
            rest = &rest[end..];
        } else {
            tokens.push(LabelToken::Mark(mark));
            rest = &rest[mark.len()..];
        }
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens
}

struct SelectorParser<'a> {
    tokens: Vec<LabelToken<'a>>,
    at: usize,
}

impl<'a> SelectorParser<'a> {
    fn peek(&self) -> LabelToken<'a> {
        self.tokens.get(self.at).cloned().unwrap_or(LabelToken::End)
    }

    fn next(&mut self) -> LabelToken<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                LabelToken::Word(_) | LabelToken::Mark("!") => {
                    let requirement =
                        self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                    requirements.push(requirement);
                    match self.next() {
                        LabelToken::End => return Ok(requirements),
                        LabelToken::Mark(",") => {
                            let after = self.peek();
                            if !matches!(after, LabelToken::Word(_) | LabelToken::Mark("!")) {
                                return Err(format!("found '{}', expected: identifier after ','", after.text()));
                            }
                        }
                        other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
                    }
                }
                LabelToken::End => return Ok(requirements),
                other => {
                    return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == LabelToken::Mark("!");
        if negated {
            self.at += 1;
        }
        let LabelToken::Word(key) = self.peek() else {
            return Err(format!("found '{}', expected: identifier", self.peek().text()));
        };
        self.at += 1;
        let mut requirement = Requirement { key: key.into(), operator: Operator::Exists, values: Vec::new() };
        if negated {
            requirement.operator = Operator::DoesNotExist;
        }
        let key_error = requirement.validate();
        if negated || matches!(self.peek(), LabelToken::End | LabelToken::Mark(",")) {
            key_error?;
            return Ok(requirement);
        }
        key_error?;
        requirement.operator = match self.next() {
            LabelToken::Word("in") | LabelToken::Mark("=" | "==") => Operator::In,
            LabelToken::Word("notin") | LabelToken::Mark("!=") => Operator::NotIn,
            LabelToken::Mark(">") => Operator::GreaterThan,
            LabelToken::Mark("<") => Operator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        };
        let listed = matches!(self.tokens[self.at - 1], LabelToken::Word(_));
        requirement.values = if listed { self.values()? } else { vec![self.exact_value()?] };
        requirement.validate()?;
        Ok(requirement)
    }

    /// Parses a single value. A missing one is empty.
    fn exact_value(&mut self) -> Result<CompactString, String> {
        match self.peek() {
            LabelToken::End | LabelToken::Mark(",") => Ok(CompactString::default()),
            LabelToken::Word(word) => {
                self.at += 1;
                Ok(word.into())
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// Parses values in parentheses. Returns them sorted and without repetition.
    fn values(&mut self) -> Result<Vec<CompactString>, String> {
        match self.next() {
            LabelToken::Mark("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        let mut expect_value = true;
        loop {
            match self.next() {
                LabelToken::Word(word) if expect_value => {
                    values.push(CompactString::from(word));
                    expect_value = false;
                }
                LabelToken::Mark(",") => {
                    if expect_value {
                        values.push(CompactString::default());
                    }
                    expect_value = true;
                }
                LabelToken::Mark(")") => {
                    if expect_value {
                        values.push(CompactString::default());
                    }
                    values.sort_unstable();
                    values.dedup();
                    return Ok(values);
                }
                other if expect_value => {
                    return Err(format!("found '{}', expected: ',', ')' or identifier", other.text()));
                }
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;
    use crate::rules::labels;

    #[test]
    fn compiled_selectors_match_as_uncompiled_ones() {
        let label_sets = [value!({}), value!({"a": "1"}), value!({"a": "", "b": "2"}), value!({"a": "2", "c": "1"})];
        let expression = |operator: &str, values: Value| value!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        let selectors = [
            value!({}),
            value!({"matchLabels": {"a": "1"}}),
            value!({"matchLabels": {"a": "2", "c": "1"}}),
            expression("In", value!(["2", "1"])),
            expression("In", value!([])),
            expression("NotIn", value!(["", "1"])),
            expression("Exists", value!([])),
            expression("DoesNotExist", value!([])),
            expression("Unknown", value!(["1"])),
        ];
        for selector in &selectors {
            let compiled = LabelSelector::of(selector);
            assert_eq!(compiled.is_everything(), labels::selects_everything(selector), "{selector:?}");
            for own in label_sets.iter().map(Value::as_object) {
                let expected = labels::selector_matches(selector, own);
                assert_eq!(compiled.matches_labels(own), expected, "{selector:?} {own:?}");
            }
        }
    }
}
