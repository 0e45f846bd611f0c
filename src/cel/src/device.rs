//! CEL selectors of devices (dynamic resource allocation): compilation, and the limits on their cost.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::check::Checked;
use crate::cost::{Node, SizeRange, SizeSource, VariableStep};
use crate::environment::{Base, Environment, Provider};
use crate::estimate::estimate;
use crate::eval::Program;
use crate::limits::DEVICE_COST_MAX;
use crate::schema::compiled::{MINOR, STORED_MINOR};
use crate::schema::declared::{Declared, DeclaredKind, Objects};
use crate::types::Type;

const TYPE_NAME: &str = "kubernetes.DRADevice";
const QUANTITY: &str = "kubernetes.Quantity";
/// The largest number of domains of a device, and of names in each.
const NAMES_MAX: i64 = 32;
/// The largest number of characters of the name of a driver, of a domain, of an identifier, of a value.
const DRIVER_MAX: i64 = 63;
const DOMAIN_MAX: i64 = 63;
const IDENTIFIER_MAX: i64 = 32;
const VALUE_MAX: i64 = 64;

/// The reason why a selector is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not compile.
    Invalid(String),
    /// The server cannot plan it.
    Internal(String),
    /// Its estimated cost exceeds the limit.
    CostExceeded,
}

static NEW: LazyLock<Environment> = LazyLock::new(|| environment(MINOR));
static STORED: LazyLock<Environment> = LazyLock::new(|| environment(STORED_MINOR));

/// Compiles a selector and returns its estimated cost. A stored selector may use more functions than a new one.
///
/// # Errors
/// If it does not compile, or its estimated cost exceeds the limit.
pub fn compile(text: &str, is_stored: bool) -> Result<u64, Refused> {
    let environment: &Environment = if is_stored { &STORED } else { &NEW };
    let checked = Checked::of(text, environment);
    let checked = checked.map_err(|issues| Refused::Invalid(format!("compilation failed: {issues}")))?;
    if !matches!(checked.output(), Type::Bool | Type::Any) {
        let found = checked.output().declared_name();
        return Err(Refused::Invalid(format!("must evaluate to bool or the unknown type, not {found}")));
    }
    let program = Program::new(&checked, environment);
    program.map_err(|error| Refused::Internal(format!("program instantiation failed: {error}")))?;
    match estimate(&checked, &Sizes).max {
        cost if cost > DEVICE_COST_MAX => Err(Refused::CostExceeded),
        cost => Ok(cost),
    }
}

fn environment(minor: u16) -> Environment {
    let mut base = Base::clone(&Base::kubernetes(minor));
    base.dialect.bind = true;
    let simple = |of: Type| Arc::new(Declared { of: DeclaredKind::Simple(of), elements_max: 0, bytes_min: 1 });
    let map =
        |of: Arc<Declared>| Arc::new(Declared { of: DeclaredKind::Map(of), elements_max: NAMES_MAX, bytes_min: 2 });
    let fields = BTreeMap::from([
        ("allowMultipleAllocations".into(), simple(Type::Bool)),
        ("attributes".into(), map(map(simple(Type::Any)))),
        ("capacity".into(), map(map(simple(Type::object(QUANTITY))))),
        ("driver".into(), simple(Type::String)),
    ]);
    let device = Arc::new(Declared { of: DeclaredKind::Object(fields), elements_max: 0, bytes_min: 2 });
    let (objects, of) = Objects::named(&device, TYPE_NAME);
    let objects: Arc<dyn Provider> = objects;
    Environment::new(Arc::new(base)).with_provider(objects).with_variable("device", of)
}

/// The sizes of the parts of a device.
#[derive(Debug)]
struct Sizes;

impl SizeSource for Sizes {
    fn size(&self, node: &Node<'_>) -> Option<SizeRange> {
        let (_, steps) = node.path.as_deref()?.split_first()?;
        let most = match steps {
            [] => 0,
            [VariableStep::Name(field), below @ ..] => match (&**field, below) {
                ("driver", []) => DRIVER_MAX,
                ("allowMultipleAllocations", []) => 1,
                ("attributes", below) => of_domains(below, Some(VALUE_MAX))?,
                ("capacity", below) => of_domains(below, None)?,
                _ => return None,
            },
            _ => return None,
        };
        Some(SizeRange::new(0, most.unsigned_abs()))
    }
}

/// Returns the largest size of a part of a map of domains. Returns `None` for values of capacities.
fn of_domains(steps: &[VariableStep], value: Option<i64>) -> Option<i64> {
    match steps {
        [] => Some(NAMES_MAX),
        [VariableStep::Keys] => Some(DOMAIN_MAX),
        [VariableStep::Items | VariableStep::Values] => Some(NAMES_MAX),
        [VariableStep::Items | VariableStep::Values, VariableStep::Keys] => Some(IDENTIFIER_MAX),
        [VariableStep::Items | VariableStep::Values, VariableStep::Items | VariableStep::Values] => {
            Some(value.unwrap_or(0))
        }
        // All attributes have the same largest size.
        [VariableStep::Items | VariableStep::Values, VariableStep::Name(_) | VariableStep::Indices] => value,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_devices_bound_the_cost_of_selectors() {
        let attributes = r#"device.attributes["dra.example.com"]"#;
        let capacity = r#"device.capacity["dra.example.com"]"#;
        for (text, cost) in [
            (r#"device.attributes["a"].b.isGreaterThan(quantity("0"))"#.to_owned(), 6),
            (r#""no-such-domain" in device.attributes"#.to_owned(), 3),
            (r#"device.driver == """#.to_owned(), 2),
            (r#"device.driver == "dra.example.com""#.to_owned(), 4),
            (format!("cel.bind(dra, {attributes}, dra.name)"), 15),
            (format!("{attributes}.name"), 4),
            (format!(r#"{attributes}["name"]"#), 4),
            (format!(r#"{attributes}.name == "fish""#), 5),
            (format!(r#"{attributes}.name.isGreaterThan(semver("0.0.1"))"#), 6),
            (format!(r#"{capacity}.name.isGreaterThan(quantity("1Ki"))"#), 6),
            (format!(r#""name" in {capacity} && {capacity}.name.isGreaterThan(quantity("1Ki"))"#), 10),
            (format!("{attributes}.a && {attributes}.b && {attributes}.c"), 12),
            (r#"device.attributes.exists_one(x, x == "dra.example.com")"#.to_owned(), 164),
            (format!(r#"{attributes}.exists_one(x, x == "services")"#), 133),
            (format!(r#"{attributes}.services.split("example").size() >= 2"#), 19),
            (format!(r#"{attributes}.services.matches("[^a]?sym")"#), 18),
            (r#"device.capacity.exists_one(x, x == "dra.example.com")"#.to_owned(), 164),
            (format!(r#"{capacity}.exists_one(x, x == "memory")"#), 133),
            ("device.allowMultipleAllocations == true".to_owned(), 3),
        ] {
            assert_eq!(compile(&text, true), Ok(cost), "{text}");
        }
    }

    #[test]
    fn selectors_that_do_not_fit_devices_are_refused() {
        let refused = |text: &str| match compile(text, false) {
            Err(Refused::Invalid(why)) => why,
            other => format!("{other:?}"),
        };
        assert_eq!(refused("1"), "must evaluate to bool or the unknown type, not int");
        let found = "map(string, google.protobuf.Any)";
        let expected = format!("must evaluate to bool or the unknown type, not {found}");
        assert_eq!(refused("device.attributes['d']"), expected);
        assert!(
            refused("device.attributes['d'].a.exists(x, x == 1)").contains("expression of type 'any' cannot be range")
        );
        assert!(refused("device.attributes['d'].a.includes('x')").contains("undeclared reference to 'includes'"));
        assert!(refused("device.nothing").contains("undefined field 'nothing'"));
        assert!(refused("?!").contains("Syntax error"));
        let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
        let mut costly = "int('1'.find('[0-9]*')) < 100".to_owned();
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            costly = format!("{list}.all({name}, {costly})");
        }
        assert_eq!(compile(&costly, false), Err(Refused::CostExceeded));
    }
}
