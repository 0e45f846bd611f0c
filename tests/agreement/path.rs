//! Paths into documents: `a.b[0].c`, `a[key.with/dots]`, `items[metadata.name=x]`.

use super::json::Json;

/// Stands for an absent value in comparisons.
pub const ABSENT: &str = "<absent>";

/// Splits a path into steps. Steps in brackets keep their brackets.
fn steps(path: &str) -> Vec<&str> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[')
            && let Some(end) = inner.find(']').filter(|end| *end > 0)
        {
            steps.push(&rest[..end + 2]);
            rest = &rest[end + 2..];
            continue;
        }
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        if end > 0 {
            steps.push(&rest[..end]);
        }
        rest = &rest[end..];
        rest = rest.strip_prefix(['.', ']']).unwrap_or(rest);
    }
    steps
}

/// Returns the value at a path. Returns `None` if a step leads nowhere. If no element fulfils a condition, the path
/// continues in an empty map.
pub fn dig<'a>(document: &'a Json, path: &str) -> Option<&'a Json> {
    static NOTHING: Json = Json::Map(Vec::new());
    let mut at = document;
    for step in steps(path) {
        let Some(inner) = step.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) else {
            at = at.get(step)?;
            continue;
        };
        at = match at {
            Json::Map(_) => at.get(inner)?,
            Json::List(items) => match inner.split_once('=') {
                Some((path, wanted)) => {
                    let wanted = wanted.split('=').next().unwrap_or(wanted);
                    let has = |item: &&Json| dig(item, path).and_then(Json::as_str).unwrap_or(ABSENT) == wanted;
                    items.iter().find(has).unwrap_or(&NOTHING)
                }
                None => {
                    let index: i64 = inner.parse().ok()?;
                    let index = if index < 0 { index + items.len() as i64 } else { index };
                    items.get(usize::try_from(index).ok()?)?
                }
            },
            _ => return None,
        };
    }
    Some(at)
}

/// Returns the list at a path, in which each step is a name.
pub fn list_mut<'a>(document: &'a mut Json, path: &str) -> Option<&'a mut Vec<Json>> {
    let mut at = document;
    for step in steps(path) {
        let inner = step.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        at = match (at, inner) {
            (Json::List(items), Some(index)) => items.get_mut(index.parse::<usize>().ok()?)?,
            (Json::Map(members), name) => {
                let name = name.unwrap_or(step);
                members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)?
            }
            _ => return None,
        };
    }
    if let Json::List(items) = at { Some(items) } else { None }
}

/// Removes the values at a path of names, in which `*` is any key or element.
pub fn remove(document: Json, path: &str) -> Json {
    drop_at(document, &path.split('.').collect::<Vec<_>>())
}

fn drop_at(document: Json, path: &[&str]) -> Json {
    let Some((first, rest)) = path.split_first() else { return document };
    match document {
        Json::List(items) => {
            let within = if *first == "*" { rest } else { path };
            Json::List(items.into_iter().map(|item| drop_at(item, within)).collect())
        }
        Json::Map(members) if rest.is_empty() => {
            Json::Map(members.into_iter().filter(|(key, _)| key != first && *first != "*").collect())
        }
        Json::Map(members) => {
            let within = |(key, value)| {
                let value = if key == *first || *first == "*" { drop_at(value, rest) } else { value };
                (key, value)
            };
            Json::Map(members.into_iter().map(within).collect())
        }
        other => other,
    }
}
