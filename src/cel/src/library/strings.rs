//! CEL's extension of strings. Positions count characters.

use super::lists::TRAVERSED;
use super::table::{bounded, overload, strings, unfit};
use super::text_format;
use crate::cost::{self, CallEstimate, Cost, Nodes, SizeRange, TEXT, scaled, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::value::Value;

/// Kubernetes has it as version 2 of the extension.
pub static LIBRARY: Library = Library {
    name: "strings",
    since: Since::Always,
    functions: &[
        Function {
            name: "charAt",
            overloads: &[overload("string_char_at_int", "string.(int): string", cost::DEFAULT, char_at)],
        },
        Function {
            name: "indexOf",
            overloads: &[
                overload("string_index_of_string", "string.(string): int", TRAVERSED, index_of),
                overload("string_index_of_string_int", "string.(string, int): int", TRAVERSED, index_of),
            ],
        },
        Function {
            name: "lastIndexOf",
            overloads: &[
                overload("string_last_index_of_string", "string.(string): int", TRAVERSED, last_index_of),
                overload("string_last_index_of_string_int", "string.(string, int): int", TRAVERSED, last_index_of),
            ],
        },
        Function {
            name: "lowerAscii",
            overloads: &[overload("string_lower_ascii", "string.(): string", cost::COPIED, lower_ascii)],
        },
        Function {
            name: "upperAscii",
            overloads: &[overload("string_upper_ascii", "string.(): string", cost::COPIED, upper_ascii)],
        },
        Function {
            name: "replace",
            overloads: &[
                overload("string_replace_string_string", "string.(string, string): string", REPLACED, replace),
                overload("string_replace_string_string_int", "string.(string, string, int): string", REPLACED, replace),
            ],
        },
        Function {
            name: "split",
            overloads: &[
                overload("string_split_string", "string.(string): list(string)", SPLIT, split),
                overload("string_split_string_int", "string.(string, int): list(string)", SPLIT, split),
            ],
        },
        Function {
            name: "substring",
            overloads: &[
                overload("string_substring_int", "string.(int): string", cost::COPIED, substring),
                overload("string_substring_int_int", "string.(int, int): string", cost::COPIED, substring),
            ],
        },
        Function { name: "trim", overloads: &[overload("string_trim", "string.(): string", cost::COPIED, trim)] },
    ],
};

/// The functions of versions 1 and 2: Kubernetes has both since 1.29, and `join` since it has CEL.
pub static LATER: Library = Library {
    name: "strings",
    since: Since::Minor(29),
    functions: &[
        Function {
            name: "format",
            overloads: &[overload("string_format", "string.(list(dyn)): string", cost::FORMATTED, text_format::format)],
        },
        Function {
            name: "strings.quote",
            overloads: &[overload("strings_quote", "(string): string", cost::QUOTED, quote)],
        },
    ],
};

/// The function of version 0 that Kubernetes had from the start.
pub static JOIN: Library = Library {
    name: "strings",
    since: Since::Always,
    functions: &[Function {
        name: "join",
        overloads: &[
            overload("list_join", "list(string).(): string", JOINED, join),
            overload("list_join_string", "list(string).(string): string", JOINED, join),
        ],
    }],
};

/// One pass to read, and one to write.
const REPLACED: Cost = Cost { estimate: replace_estimate, actual: passes, by_name: true };
const SPLIT: Cost = Cost { estimate: split_estimate, actual: passes, by_name: true };
const JOINED: Cost =
    Cost { estimate: join_estimate, actual: |_, result| scaled(size_of(result), 2.0 * TEXT), by_name: true };

fn passes(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    arguments.first().map_or(1, |text| scaled(size_of(text), 2.0 * TEXT))
}

/// Returns how often a text of length `part` fits into one of length `whole`, rounded up.
fn times(whole: u64, part: u64) -> u64 {
    (whole as f64 / part as f64).ceil() as u64
}

fn replace_estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let (receiver, [old, new, ..]) = (nodes.receiver?, nodes.arguments) else { return None };
    let (size, old, new) = (nodes.size(receiver), nodes.size(old), nodes.size(new));
    let (mut count, mut kept) = (SizeRange::fixed(0), SizeRange::fixed(0));
    // The longest result: the replacement is inserted between all characters, or replaces the shortest possible text.
    if old.min == 0 {
        (count.max, kept.max) = (size.max.saturating_add(1), size.max);
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = times(size.max, old.min);
    }
    if old.max == 0 {
        (count.min, kept.min) = (size.min.saturating_add(1), size.min);
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = times(size.min, old.max);
    }
    Some(CallEstimate::sized(size.scaled(2.0 * TEXT), count.multiply(new).add(kept)))
}

fn split_estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.receiver?);
    let most = match nodes.arguments.get(1).and_then(|node| node.literal) {
        Some(Value::Int(most)) => *most as u64,
        _ => size.max,
    };
    Some(CallEstimate::sized(size.scaled(2.0 * TEXT), SizeRange::new(0, most)))
}

fn join_estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let list = nodes.receiver?;
    let count = nodes.size(list);
    let mut size = list.items().map_or(SizeRange::fixed(0), |item| count.multiply(nodes.size(&item)));
    if let Some(separator) = nodes.arguments.first() {
        let separators = SizeRange::new(count.min.saturating_sub(1), count.max.saturating_sub(1));
        size = size.add(nodes.size(separator).multiply(separators));
    }
    Some(CallEstimate::sized(size.scaled(TEXT), size))
}

fn out_of_range(place: i64) -> Error {
    Error::new(format!("index out of range: {place}"))
}

/// Returns the byte offset of the character at a position; the end of the text for the position after the last one.
fn byte_of(text: &str, place: i64) -> Outcome<usize> {
    let at = usize::try_from(place).map_err(|_| out_of_range(place))?;
    let mut starts = text.char_indices().map(|(start, _)| start).chain([text.len()]);
    starts.nth(at).ok_or_else(|| out_of_range(place))
}

fn char_at<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::String(text), Value::Int(place)] = arguments else { return unfit() };
    let start = byte_of(text, *place)?;
    let found: String = text[start..].chars().take(1).collect();
    Ok(found.into())
}

fn count(text: &str) -> i64 {
    text.chars().count() as i64
}

fn index_of<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (text, part, from) = match arguments {
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        _ => return unfit(),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Ok(start) = byte_of(text, from) else { return Ok(Value::Int(-1)) };
    let found = text[start..].find(&**part).map(|place| from + count(&text[start..start + place]));
    Ok(Value::Int(found.unwrap_or(-1)))
}

fn last_index_of<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (text, part, from) = match arguments {
        [Value::String(text), Value::String(part)] => (text, part, None),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, Some(*from)),
        _ => return unfit(),
    };
    if part.is_empty() {
        return Ok(Value::Int(from.unwrap_or_else(|| count(text))));
    }
    let end = match from {
        Some(from) if from < 0 => return Err(out_of_range(from)),
        Some(from) => match byte_of(text, from) {
            // The match may begin here but not later.
            Ok(start) if start < text.len() => text.len().min(start + part.len()),
            _ => return Ok(Value::Int(-1)),
        },
        None => text.len(),
    };
    let end = (end..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let found = text[..end].rmatch_indices(&**part).map(|(start, _)| count(&text[..start]));
    let mut found = found.filter(|place| from.is_none_or(|from| *place <= from));
    Ok(Value::Int(found.next().unwrap_or(-1)))
}

fn lower_ascii<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(text.to_ascii_lowercase().into()),
        _ => unfit(),
    }
}

fn upper_ascii<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(text.to_ascii_uppercase().into()),
        _ => unfit(),
    }
}

fn replace<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (text, old, new, most) = match arguments {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(most)] => (text, old, new, *most),
        _ => return unfit(),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = text.matches(&**old).take(most).count();
    bounded(found.saturating_mul(new.len()).saturating_add(text.len()))?;
    Ok(text.replacen(&**old, new, most).into())
}

fn split<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (text, separator, most) = match arguments {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(most)] => (text, separator, *most),
        _ => return unfit(),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if separator.is_empty() {
        return Ok(strings(characters(text, most)));
    }
    Ok(strings(text.splitn(most, &**separator)))
}

/// Splits a text into its characters; the last of `most` parts is the whole rest.
fn characters(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next().filter(|_| parts.len() < most) {
        let length = if parts.len() + 1 == most { rest.len() } else { sign.len_utf8() };
        let part;
        (part, rest) = rest.split_at(length);
        parts.push(part);
    }
    parts
}

fn substring<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (text, start, end) = match arguments {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return unfit(),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let from = byte_of(text, start)?;
    let to = end.map_or(Ok(text.len()), |end| byte_of(text, end))?;
    Ok(Value::string(&text[from..to]))
}

fn trim<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::String(text)] => Ok(Value::string(text.trim())),
        _ => unfit(),
    }
}

fn join<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (list, separator) = match arguments {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return unfit(),
    };
    let mut joined = String::new();
    for (place, item) in list.iter().enumerate() {
        if place > 0 {
            joined.push_str(separator);
        }
        match item? {
            Value::String(text) => joined.push_str(&text),
            other => return Err(Error::new(format!("join: invalid input: {}", text_format::shown(&other)))),
        }
        bounded(joined.len())?;
    }
    Ok(joined.into())
}

fn quote<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::String(text)] = arguments else { return unfit() };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for sign in text.chars() {
        let escaped = match sign {
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{b}' => 'v',
            '\\' | '"' => sign,
            plain => {
                quoted.push(plain);
                continue;
            }
        };
        quoted.push('\\');
        quoted.push(escaped);
    }
    quoted.push('"');
    Ok(quoted.into())
}
