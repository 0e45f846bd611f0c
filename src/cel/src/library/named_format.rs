//! `format`: named formats of text.

use flotilla_golang::url::Url;
use flotilla_proto::names::{self, Messages};

use super::form;
use super::table::{overload, strings, unfit};
use crate::cost::{self, CallEstimate, Cost, CostRange, Nodes, REGEX, TEXT, scaled, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

macro_rules! constants {
    ($($name:literal),* $(,)?) => {
        &[
            Function {
                name: "validate",
                overloads: &[overload(
                    "format-validate",
                    "kubernetes.NamedFormat.(string): optional(list(string))",
                    VALIDATED,
                    validate,
                )],
            },
            Function {
                name: "format.named",
                overloads: &[overload(
                    "format-named",
                    "(string): optional(kubernetes.NamedFormat)",
                    cost::NOMINAL,
                    named,
                )],
            },
            $(Function {
                name: concat!("format.", $name),
                overloads: &[overload(
                    concat!("format.", $name),
                    "(): kubernetes.NamedFormat",
                    cost::DEFAULT,
                    |_| by_name($name),
                )],
            },)*
        ]
    };
}

/// Kubernetes calls it `kubernetes.format`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.format",
    since: Since::Minor(31),
    functions: constants![
        "dns1123Label",
        "dns1123Subdomain",
        "dns1035Label",
        "qualifiedName",
        "dns1123LabelPrefix",
        "dns1123SubdomainPrefix",
        "dns1035LabelPrefix",
        "labelValue",
        "uri",
        "uuid",
        "byte",
        "date",
        "datetime",
    ],
};

/// The longest pattern of a form, in characters.
const PATTERN_MAX: f64 = 128.0;

const VALIDATED: Cost = Cost { estimate, actual, by_name: true };

fn estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.arguments.first()?);
    Some(CallEstimate::of(CostRange::scaled(size.scaled(TEXT), PATTERN_MAX * REGEX)))
}

fn actual(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    match arguments {
        [form, text] => {
            let pattern = form.as_opaque::<FormatValue>().map_or(0, |form| form.0.pattern);
            scaled(size_of(text).saturating_add(1), TEXT).saturating_mul(scaled(pattern, REGEX))
        }
        _ => 1,
    }
}

/// A form of text.
struct NamedForm {
    /// Its name in expressions.
    name: &'static str,
    /// The text of the value in errors.
    shown: &'static str,
    /// Returns the faults of a text. Empty if the text is valid.
    faults: fn(&str) -> Messages,
    /// The length of its pattern in characters, as costs count it.
    pattern: u64,
}

static FORMS: [NamedForm; 13] = [
    NamedForm { name: "dns1123Label", shown: "DNS1123Label", faults: names::dns1123_label, pattern: 30 },
    NamedForm { name: "dns1123Subdomain", shown: "DNS1123Subdomain", faults: names::dns1123_subdomain, pattern: 60 },
    NamedForm { name: "dns1035Label", shown: "DNS1035Label", faults: names::dns1035_label, pattern: 30 },
    NamedForm { name: "qualifiedName", shown: "QualifiedName", faults: names::qualified_name, pattern: 60 },
    NamedForm {
        name: "dns1123LabelPrefix",
        shown: "DNS1123LabelPrefix",
        faults: |text| names::dns1123_label(&names::without_trailing_dash(text)),
        pattern: 30,
    },
    NamedForm {
        name: "dns1123SubdomainPrefix",
        shown: "DNS1123SubdomainPrefix",
        faults: |text| names::dns1123_subdomain(&names::without_trailing_dash(text)),
        pattern: 60,
    },
    NamedForm {
        name: "dns1035LabelPrefix",
        shown: "DNS1035LabelPrefix",
        faults: |text| names::dns1035_label(&names::without_trailing_dash(text)),
        pattern: 30,
    },
    NamedForm { name: "labelValue", shown: "LabelValue", faults: names::label_value, pattern: 40 },
    NamedForm {
        name: "uri",
        shown: "URI",
        faults: |text| Url::parse_request(text).err().map(|error| error.to_string().into()).into_iter().collect(),
        pattern: 1103,
    },
    NamedForm {
        name: "uuid",
        shown: "uuid",
        faults: |text| complaint(form::is_uuid(text), "does not match the UUID format"),
        pattern: 70,
    },
    NamedForm {
        name: "byte",
        shown: "byte",
        faults: |text| complaint(form::is_base64(text), "invalid base64"),
        pattern: 84,
    },
    NamedForm {
        name: "date",
        shown: "date",
        faults: |text| complaint(form::is_date(text), "invalid date"),
        pattern: 71,
    },
    NamedForm {
        name: "datetime",
        shown: "datetime",
        faults: |text| complaint(form::is_date_time(text), "invalid datetime"),
        pattern: 71,
    },
];

fn complaint(holds: bool, why: &'static str) -> Messages {
    if holds { Messages::new() } else { vec![why.into()] }
}

/// A form as a value.
struct FormatValue(&'static NamedForm);

impl std::fmt::Debug for FormatValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FormatValue").field(&self.0.name).finish()
    }
}

impl Opaque for FormatValue {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.NamedFormat")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        (other as &dyn std::any::Any).downcast_ref::<Self>().map(|other| self.0.name == other.0.name)
    }

    fn text(&self) -> String {
        self.0.shown.to_owned()
    }
}

fn find(name: &str) -> Option<Value<'static>> {
    FORMS.iter().find(|form| form.name == name).map(|form| Value::opaque(FormatValue(form)))
}

fn by_name<'a>(name: &str) -> Outcome<Value<'a>> {
    find(name).ok_or_else(Error::no_such_overload)
}

fn named<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(name)] => Ok(find(name).map_or_else(Value::none, Value::some)),
        _ => unfit(),
    }
}

fn validate<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [form, Value::String(text)] = arguments else { return unfit() };
    let form = form.as_opaque::<FormatValue>().ok_or_else(Error::no_such_overload)?;
    let faults = (form.0.faults)(text);
    Ok(if faults.is_empty() { Value::none() } else { Value::some(strings(faults)) })
}
