//! Objects of any type, for tests: made from the schema alone, with a chosen share of the fields set.

use crate::conform::conform;
use crate::schema::{AnyKind, Shape, Type};
use crate::value;
use crate::value::{Float, Map, Value};

/// How often a type may contain itself, directly or indirectly, as schemas do.
const RECURSION: usize = 2;

/// A source of pseudorandom numbers that are the same on every run (xorshift64*).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Returns a conformed object in which each numbered field is set in `percent` of cases.
pub(super) fn sample(of: &Type, random: &mut Random, percent: u64) -> Value {
    let mut sampler = Sampler { random, percent, open: Vec::new() };
    let mut value = sampler.structure(of);
    let unknown = conform(of, &mut value).unwrap_or_else(|error| panic!("{}: {error}", of.name));
    assert!(unknown.is_empty(), "{}: {unknown:?}", of.name);
    value
}

struct Sampler<'a> {
    random: &'a mut Random,
    percent: u64,
    /// The names of the enclosing structs.
    open: Vec<String>,
}

impl Sampler<'_> {
    fn structure(&mut self, of: &Type) -> Value {
        let mut map = Map::new();
        self.open.push(of.openapi.to_string());
        for field in of.fields.iter() {
            // `kind` and `apiVersion` travel in the envelope.
            if field.number > 0 && !self.recurses(&field.shape) && self.random.below(100) < self.percent {
                map.insert(&*field.name, self.shape(&field.shape));
            }
        }
        self.open.pop();
        Value::Object(map)
    }

    fn recurses(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Struct(of) => self.open.iter().filter(|open| **open == *of.openapi).count() >= RECURSION,
            Shape::List(list) => self.recurses(&list.item),
            Shape::Map(map) => self.recurses(&map.value),
            _ => false,
        }
    }

    fn shape(&mut self, shape: &Shape) -> Value {
        let random = &mut *self.random;
        match shape {
            Shape::Bool => Value::Bool(true),
            Shape::Int32 => Value::from(random.next() as i32 | 1),
            Shape::Int64 => Value::Int(random.next() as i64 | 1),
            Shape::Uint(_) => Value::Int(1 + random.below(200) as i64),
            Shape::Double => Float::new(0.25 + random.below(1000) as f64).map_or(Value::Null, Value::Float),
            Shape::String { .. } => text(random),
            Shape::Bytes => Value::from(random.pick(&["AA==", "aGVsbG8=", "AAH/"])),
            Shape::Quantity => Value::from(random.pick(&["1", "500m", "2Gi", "1e3", "-3"])),
            Shape::IntOrString if random.below(2) == 0 => Value::from(random.next() as i32 | 1),
            Shape::IntOrString => text(random),
            Shape::Time => Value::from(random.pick(&["2024-02-29T12:34:56Z", "1969-12-31T23:59:59Z"])),
            Shape::MicroTime => {
                Value::from(random.pick(&["2024-02-29T12:34:56.000001Z", "1969-12-31T23:59:59.999999Z"]))
            }
            Shape::Duration => Value::from(random.pick(&["1h0m0s", "1.5s", "-3m0s", "7ns"])),
            Shape::Any(kind) => free_form(*kind, random),
            Shape::Struct(of) => self.structure(of),
            Shape::List(list) => {
                let size = 1 + random.below(2);
                Value::Array((0..size).map(|_| self.shape(&list.item)).collect())
            }
            Shape::Map(map) => {
                // Sometimes a map that is large enough to be kept sorted.
                let scalar = matches!(map.value, Shape::String { .. });
                let size = if scalar && random.below(20) == 0 { 90 } else { 1 + random.below(2) };
                Value::Object(
                    (0..size).map(|_| (format!("k{}", self.random.below(1 << 20)), self.shape(&map.value))).collect(),
                )
            }
        }
    }
}

fn text(random: &mut Random) -> Value {
    Value::from(random.pick(&["a", "some-name", "a text that is longer than what fits inline", "\"é\"\\<漢>\n"]))
}

fn free_form(kind: AnyKind, random: &mut Random) -> Value {
    let schema = || value!({"type": "object", "maximum": 2});
    match (kind, random.below(2)) {
        (AnyKind::RawExtension | AnyKind::FieldsV1, _) => value!({"f:a": {"k:{\"x\":1}": {}}}),
        (AnyKind::Json, 0) => value!([1, {"b": null}, "c"]),
        (AnyKind::Json, _) => value!({"z": true, "a": 1}),
        (AnyKind::SchemaOrBool, 0) => Value::Bool(false),
        (AnyKind::SchemaOrArray, 0) => value!([{"type": "string"}, {"type": "integer"}]),
        (AnyKind::SchemaOrStrings, 0) => value!(["a", "b"]),
        _ => schema(),
    }
}
