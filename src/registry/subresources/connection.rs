//! Builds the options of connections as API objects for admission: `PodExecOptions` and the like.

use flotilla_proto::schema::Shape;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::Target;
use crate::request::query::{Query, parse_int};

/// Returns the options of a connection, from the query and the path behind the subresource. Returns `None` for a
/// request that the reference treats as a read rather than a connection.
pub fn options(target: Target<'_>, query: &Query<'_>, rest: Option<&str>) -> Option<Value> {
    let part = target.served.part(target.subresource)?;
    let kind = part.kind();
    let mut options = value!({"kind": (&*kind.name), "apiVersion": (kind.api_version())});
    for field in kind.of.fields.iter().filter(|field| !matches!(&*field.name, "kind" | "apiVersion")) {
        let name = &*field.name;
        let stated = match (&field.shape, name) {
            (Shape::String { .. }, "path") if rest.is_some() => rest.map(|rest| format!("/{rest}").into()),
            (Shape::Bool, _) => query.flag(name).filter(|on| *on).map(Value::from),
            (Shape::Int32 | Shape::Int64, _) => query.get(name).and_then(|text| parse_int(text).ok()).map(Value::from),
            (Shape::List(list), _) => {
                let texts = query.all(name).map(|text| match list.item {
                    Shape::Int32 | Shape::Int64 => parse_int(text).map_or(Value::Null, Value::from),
                    _ => Value::from(text),
                });
                Some(texts.collect::<Vec<_>>()).filter(|list| !list.is_empty()).map(Value::from)
            }
            _ => query.get(name).filter(|text| !text.is_empty()).map(Value::from),
        };
        if let Some(stated) = stated {
            options.set_at(&[name], stated);
        }
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::Resources;

    #[test]
    fn options_as_objects() {
        let pods = Resources::builtin().find("", "v1", "pods").unwrap();
        let target = |subresource| Target::object(&pods, "n", "p").with_subresource(subresource);
        let query = Query::parse("command=sh&command=-c&stdin=true&tty=0&container=c");
        let expected = value!({
            "kind": "PodExecOptions", "apiVersion": "v1", "stdin": true, "container": "c", "command": ["sh", "-c"]
        });
        assert_eq!(options(target("exec"), &query, None), Some(expected));
        let proxied = options(target("proxy"), &Query::default(), Some("a/b")).unwrap();
        assert_eq!(proxied, value!({"kind": "PodProxyOptions", "apiVersion": "v1", "path": "/a/b"}));
        assert_eq!(options(target("log"), &Query::default(), None), None);
    }
}
