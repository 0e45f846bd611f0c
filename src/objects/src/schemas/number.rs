//! Checks numbers: ranges, bounds and multiples.
//!
//! Integers are compared with bounds as integers. If the bound does not fit the type, both are compared as floats.

use flotilla_proto::structural::{Structural, ValueType};
use flotilla_proto::value::Value;

use super::check::{CheckOutcome, Walk};
use crate::field::{ErrorKind, FieldError, float, shown};

/// The greatest whole number up to which a float holds every whole number (2^53 - 1).
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// The least float above all integers of 64 bits (2^63).
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

/// Returns whether a float is a whole number, apart from rounding errors.
pub fn is_whole(number: f64) -> bool {
    if !number.is_finite() || number.abs() > WHOLE_MAX {
        return false;
    }
    let below = number.trunc();
    number == below || below > 0.0 && (number - below) / (number + below) < 1e-9
}

/// A bound, with the words for it in messages.
struct Bound<'a> {
    name: &'a str,
    limit: f64,
    /// Whether a number keeps the bound. For integers, the bound is truncated to an integer.
    keeps: fn(&Number, &Number) -> bool,
    words: &'a str,
}

/// A number for comparison. Both sides of a comparison have the same variant.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Walk<'_> {
    /// Checks range, multiples and bounds.
    pub(super) fn number(&self, schema: &Structural, format: &str, value: &Value, out: &mut CheckOutcome) {
        let of = schema.of.filter(|of| !schema.int_or_string && matches!(of, ValueType::Integer | ValueType::Number));
        // Reports a number that is out of range. Returns whether it is out of range.
        let range = |name: &str, in_range: bool, out: &mut CheckOutcome| {
            let of = of.map_or("", ValueType::name);
            let form =
                || if format.is_empty() { "(default format)".to_owned() } else { format!("with format {format}") };
            let why = || self.remark(format!("{name} value must be of type {of} {} in {}", form(), self.path));
            if !in_range {
                self.tell(out, why);
            }
            !in_range
        };
        let fits = match value {
            Value::Int(number) => of != Some(ValueType::Integer) || format != "int32" || i32::try_from(*number).is_ok(),
            Value::Float(number) => float_fits(of, format, number.get()),
            _ => true,
        };
        range("Checked", fits, out);
        let rules = schema.rules();
        if let Some(factor) = rules.multiple_of() {
            let is_outside = range("MultipleOf", float_fits(of, format, factor), out);
            self.multiple(number_of(value, is_outside), factor, out);
        }
        let minimum = rules.minimum().map(|limit| match rules.exclusive_minimum() {
            false => Bound { name: "Minimum boundary", limit, keeps: at_least, words: "greater than or equal to" },
            true => Bound { name: "Minimum boundary", limit, keeps: |a, b| !at_least(b, a), words: "greater than" },
        });
        let maximum = rules.maximum().map(|limit| match rules.exclusive_maximum() {
            false => {
                Bound { name: "Maximum boundary", limit, keeps: |a, b| at_least(b, a), words: "less than or equal to" }
            }
            true => Bound { name: "Maximum boundary", limit, keeps: |a, b| !at_least(a, b), words: "less than" },
        });
        for bound in minimum.into_iter().chain(maximum) {
            let is_outside = range(bound.name, float_fits(of, format, bound.limit), out);
            let number = number_of(value, is_outside);
            let limit = number.like(bound.limit);
            if !(bound.keeps)(&number, &limit) {
                let what = || format!("should be {} {}", bound.words, limit.shown());
                self.tell(out, || self.error(ErrorKind::Invalid, number.shown(), &what()));
            }
        }
        out.matches += 1;
    }

    fn multiple(&self, number: Number, factor: f64, out: &mut CheckOutcome) {
        let factor = number.like(factor);
        let (positive, holds) = match (number, factor) {
            (Number::Int(number), Number::Int(factor)) => (factor > 0, factor > 0 && number % factor == 0),
            (number, factor) => {
                let (number, factor) = (number.float(), factor.float());
                let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
                (factor > 0.0, is_whole(times))
            }
        };
        if !positive {
            let (path, shown) = (&self.path, factor.shown());
            let detail = || format!("factor MultipleOf declared for {path} must be positive: {shown}");
            self.tell(out, || FieldError { detail: detail(), ..self.error(ErrorKind::Invalid, shown.clone(), "") });
        } else if !holds {
            let what = || format!("should be a multiple of {}", factor.shown());
            self.tell(out, || self.error(ErrorKind::Invalid, number.shown(), &what()));
        }
    }
}

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "Go converts likewise")]
    fn float(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Converts a bound to the type of the number. A bound beyond all integers becomes the least integer, as on the
    /// processor of the reference.
    #[expect(clippy::cast_possible_truncation, reason = "bounds of integers are truncated")]
    fn like(self, bound: f64) -> Self {
        match self {
            Self::Int(_) if !(-INT64_END..INT64_END).contains(&bound) => Self::Int(i64::MIN),
            Self::Int(_) => Self::Int(bound as i64),
            Self::Float(_) => Self::Float(bound),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Int(number) => shown(&Value::Int(number)),
            Self::Float(number) => float(number),
        }
    }
}

fn number_of(value: &Value, as_float: bool) -> Number {
    let number = match value {
        Value::Int(number) => Number::Int(*number),
        Value::Float(number) => Number::Float(number.get()),
        _ => Number::Int(0),
    };
    if as_float { Number::Float(number.float()) } else { number }
}

fn at_least(a: &Number, b: &Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a >= b,
        (a, b) => a.float() >= b.float(),
    }
}

/// Returns whether a float is within the range of a type and format.
#[expect(clippy::cast_possible_truncation, reason = "the comparison detects any loss")]
fn float_fits(of: Option<ValueType>, format: &str, number: f64) -> bool {
    match (of, format) {
        (Some(ValueType::Integer), "int32") => number.fract() == 0.0 && f64::from(number as i32) == number,
        (Some(ValueType::Integer), _) => number.fract() == 0.0 && (-INT64_END..INT64_END).contains(&number),
        (_, "float") => (number as f32).is_finite(),
        _ => true,
    }
}
