//! `url`: URLs.

use flotilla_golang::url::Url;

use super::table::{overload, strings, unfit};
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Kubernetes calls it `kubernetes.urls`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.urls",
    since: Since::Always,
    functions: &[
        Function {
            name: "url",
            overloads: &[overload("string_to_url", "(string): kubernetes.URL", cost::COPIED, url)],
        },
        Function { name: "isURL", overloads: &[overload("is_url_string", "(string): bool", cost::DEFAULT, is_url)] },
        Function {
            name: "getScheme",
            overloads: &[overload("url_get_scheme", "kubernetes.URL.(): string", cost::NOMINAL, scheme)],
        },
        Function {
            name: "getHost",
            overloads: &[overload("url_get_host", "kubernetes.URL.(): string", cost::NOMINAL, host)],
        },
        Function {
            name: "getHostname",
            overloads: &[overload("url_get_hostname", "kubernetes.URL.(): string", cost::NOMINAL, hostname)],
        },
        Function {
            name: "getPort",
            overloads: &[overload("url_get_port", "kubernetes.URL.(): string", cost::NOMINAL, port)],
        },
        Function {
            name: "getEscapedPath",
            overloads: &[overload("url_get_escaped_path", "kubernetes.URL.(): string", cost::NOMINAL, escaped_path)],
        },
        Function {
            name: "getQuery",
            overloads: &[overload(
                "url_get_query",
                "kubernetes.URL.(): map(string, list(string))",
                cost::NOMINAL,
                query,
            )],
        },
    ],
};

/// A URL.
#[derive(Debug)]
struct Address(Url);

impl Opaque for Address {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.URL")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        (other as &dyn std::any::Any).downcast_ref::<Self>().map(|other| self.text() == other.text())
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Parses a URL.
///
/// # Errors
/// If it is neither absolute nor a path.
pub fn parse(text: &str) -> Outcome<Value<'static>> {
    let read = Url::parse_request(text).and_then(|_| Url::parse(text));
    let read = read.map_err(|error| Error::new(format!("URL parse error during conversion from string: {error}")));
    read.map(|url| Value::opaque(Address(url)))
}

fn url<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => parse(text),
        _ => unfit(),
    }
}

fn is_url<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(Url::parse_request(text).is_ok().into()),
        _ => unfit(),
    }
}

fn with<'a>(arguments: &[Value<'a>], part: impl Fn(&Url) -> Value<'a>) -> Outcome<Value<'a>> {
    match arguments {
        [address] => address.as_opaque().map(|Address(url)| part(url)).ok_or_else(Error::no_such_overload),
        _ => unfit(),
    }
}

/// Returns decoded bytes, which may be invalid UTF-8, as a string.
fn text<'a>(bytes: &[u8]) -> Value<'a> {
    Value::string(&*String::from_utf8_lossy(bytes))
}

fn scheme<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |url| Value::string(&*url.scheme))
}

fn host<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |url| text(&url.host))
}

fn hostname<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |url| text(url.hostname()))
}

fn port<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |url| text(url.port()))
}

fn escaped_path<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |url| url.escaped_path().into())
}

fn query<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    with(arguments, |url| {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (key, value) in url.query() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (key, value) = (text(&key), text(&value));
            let place = *places.entry(key.clone()).or_insert_with(|| {
                values.push((key, Vec::new()));
                values.len() - 1
            });
            values[place].1.push(value);
        }
        Value::map(values.into_iter().map(|(key, values)| (key.into(), strings(values))))
    })
}
