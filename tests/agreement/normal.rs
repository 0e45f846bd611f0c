//! Replaces values that differ from run to run by placeholders. Equal values have equal placeholders: `<uid:1>` is the
//! same uid everywhere.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::json::Json;
use super::protobuf::{self, Field};

macro_rules! pattern {
    ($name:ident, $text:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern"));
    };
}

pattern!(TIME, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$");
pattern!(TIME_WITHIN, r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z");
pattern!(UID, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
pattern!(DIGITS, r"\d+");
pattern!(TOKEN_VOLUME, r"\bkube-api-access-([bcdfghjklmnpqrstvwxz2456789]{5})\b");
// The difference between two internal structs of the server, which some messages contain.
pattern!(DIFFERENCE, r"(?s)(updates may not change fields other than [^\n]*|may not be changed)\n(?:@@|[ \x{a0}]).*");
pattern!(HASH, r"\bhash=[0-9A-F]{128}\b");
pattern!(TOO_OLD, r"(too old resource version: )\d+ \(\d+\)");
pattern!(VERSION_TOLD, r"(Too large resource version: |current: |too old resource version: )\d+");
pattern!(VERSION_IN_YAML, r#"(?m)^( *(?:- )?resourceVersion: )"?\d{2,}"?$"#);
pattern!(VERSION_IN_JSON, r#"("?resourceVersion\\*": ?\\*")\d{2,}(\\*")"#);
pattern!(VERSION_IN_RECORD, r"(in record \(|ResourceVersion in the precondition \()\d{2,}(\))");
pattern!(GIT_VERSION, r"^(v1\.36)\.\d+(\+[\w.-]+)?$");
pattern!(AGE, r"^(\d+[ydhms])+$");
pattern!(AGE_WITHIN, r"\((\d+[ydhms])+ ago\)");

/// The values that have a placeholder, in the order in which they first occurred.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    met: Vec<String>,
}

/// The placeholders of one run of a scenario.
pub struct Normal {
    namespace: String,
    names: HashMap<&'static str, Names>,
}

impl Normal {
    pub fn new(namespace: &str) -> Normal {
        Normal { namespace: namespace.to_owned(), names: HashMap::new() }
    }

    fn alias(&mut self, kind: &'static str, value: &str) -> String {
        let names = self.names.entry(kind).or_default();
        let next = names.met.len() + 1;
        let number = *names.numbers.entry(value.to_owned()).or_insert_with(|| {
            names.met.push(value.to_owned());
            next
        });
        format!("<{kind}:{number}>")
    }

    /// Returns a text with placeholders.
    pub fn text(&mut self, text: &str) -> String {
        let text = text.replace(&self.namespace, "$NS");
        let text = UID.replace_all(&text, |found: &Captures<'_>| self.alias("uid", &found[0]));
        let text = TIME_WITHIN.replace_all(&text, "<time>");
        let text = versions_before_others(&text);
        let suffix = |found: &Captures<'_>| format!("kube-api-access-{}", self.alias("suffix", &found[1]));
        let text = TOKEN_VOLUME.replace_all(&text, suffix);
        let text = DIFFERENCE.replace_all(&text, "$1 <diff>");
        let text = HASH.replace_all(&text, "hash=<hash>");
        let text = TOO_OLD.replace_all(&text, "${1}<rv> (<rv>)");
        let text = VERSION_TOLD.replace_all(&text, "${1}<rv>");
        let text = VERSION_IN_YAML.replace_all(&text, "${1}<rv>");
        let text = VERSION_IN_JSON.replace_all(&text, "${1}<rv>${2}");
        VERSION_IN_RECORD.replace_all(&text, "${1}<rv>${2}").into_owned()
    }

    /// Returns the value of a header with placeholders.
    pub fn header(&mut self, name: &str, value: &str) -> String {
        if name.eq_ignore_ascii_case("etag") { "<etag>".into() } else { self.text(value) }
    }

    /// Returns a value with placeholders. `key` is the member with the value, and `parent` the map with that member.
    pub fn value(&mut self, key: &str, value: Json, parent: Option<&Json>) -> Json {
        match value {
            Json::Map(members) => {
                let whole = Json::Map(members);
                let mut out = Vec::new();
                for (key, value) in whole.as_map().unwrap_or_default() {
                    let is_volatile = key.contains(&self.namespace) || UID.is_match(key);
                    let name = if is_volatile { self.text(key) } else { key.clone() };
                    let value = self.value(key, value.clone(), Some(&whole));
                    Json::put(&mut out, name, value);
                }
                Json::Map(out)
            }
            Json::List(items) => {
                let items = if key == "managedFields" { entries(items) } else { items };
                Json::List(items.into_iter().map(|item| self.value(key, item, parent)).collect())
            }
            Json::Text(text) => Json::Text(self.member(key, text, parent)),
            Json::Int(_) if matches!(key, "nodePort" | "healthCheckNodePort") => Json::text("<port>"),
            other => other,
        }
    }

    fn member(&mut self, key: &str, text: String, parent: Option<&Json>) -> String {
        match key {
            // Each server states its own patch version and build.
            "gitVersion" => return GIT_VERSION.replace(&text, "$1").into_owned(),
            "uid" if text.is_empty() => return text,
            "uid" => return self.alias("uid", &text),
            "resourceVersion" if matches!(&*text, "" | "0") => return text,
            "resourceVersion" => return "<rv>".into(),
            "continue" if text.is_empty() => return text,
            "continue" => return "<continue>".into(),
            _ if TIME.is_match(&text) => return if text.contains('.') { "<microtime>" } else { "<time>" }.into(),
            "clusterIP" | "clusterIPs" if !matches!(&*text, "None" | "") => return "<ip>".into(),
            "token" if text.matches('.').count() == 2 => return "<jwt>".into(),
            "name" => {
                let prefix = parent.and_then(|parent| parent.get("generateName")).and_then(Json::as_str);
                if prefix.is_some_and(|prefix| !prefix.is_empty() && text.starts_with(prefix)) {
                    return self.alias("generated", &text);
                }
            }
            _ => {}
        }
        let mut text = if key == "cells" { aged(&text) } else { text };
        for (index, name) in self.names.get("generated").iter().flat_map(|names| &names.met).enumerate() {
            text = text.replace(name, &format!("<generated:{}>", index + 1));
        }
        self.text(&text)
    }

    /// Returns the fields of a protobuf message as pairs of number and value, without those that are empty or zero.
    pub fn fields(&mut self, raw: &[u8]) -> Option<Json> {
        let mut out = Vec::new();
        for (field, values) in protobuf::message(raw)? {
            for value in values {
                let shown = match value {
                    Field::Number(number) => Json::Int(number as i128),
                    Field::Bytes(bytes) => self.field(field, bytes),
                };
                if shown.is_something() {
                    out.push(Json::List(vec![Json::Int(field as i128), shown]));
                }
            }
        }
        Some(Json::List(out))
    }

    fn field(&mut self, number: u128, bytes: &[u8]) -> Json {
        if bytes.iter().all(|byte| (32..127).contains(byte)) {
            let is_version = matches!(number, 2 | 6) && bytes.iter().all(u8::is_ascii_digit) && !bytes.is_empty();
            let text = escaped(bytes);
            return if is_version { Json::text("<rv>") } else { self.value("", Json::Text(text), None) };
        }
        let is_message = protobuf::message(bytes).is_some_and(|message| !message.contains_key(&0));
        let Some(message) = is_message.then(|| self.fields(bytes)).flatten() else {
            return Json::Text(self.text(&escaped(bytes)));
        };
        if let [Json::List(pair)] = message.as_list().unwrap_or_default()
            && let [Json::Int(1), Json::Int(seconds)] = **pair
            && (1_500_000_001..3_000_000_000).contains(&seconds)
        {
            return Json::text("<time>");
        }
        message
    }

    /// Returns a body in the form in which it is compared.
    pub fn body(&mut self, raw: &[u8], content_type: &str, as_text: bool) -> Json {
        if as_text {
            return Json::Text(self.text(&escaped(raw)));
        }
        let is_json = matches!(raw.first(), Some(b'{' | b'['));
        if content_type.contains("protobuf") && !is_json {
            return self.value("", protobuf::summary(raw), None);
        }
        if content_type.contains("json") || is_json {
            let lines = raw.iter().filter(|byte| **byte == b'\n').count();
            let documents: Option<Vec<Json>> = if lines > 1 && !raw.starts_with(b"{\n") {
                let lines = raw.split(|byte| matches!(byte, b'\n' | b'\r'));
                lines.filter(|line| !line.trim_ascii().is_empty()).map(Json::parse).collect()
            } else {
                Json::parse(raw).map(|document| vec![document])
            };
            if let Some(documents) = documents {
                let mut out: Vec<Json> = documents.into_iter().map(|each| self.value("", each, None)).collect();
                return if out.len() == 1 { out.remove(0) } else { Json::List(out) };
            }
        }
        match std::str::from_utf8(raw) {
            Ok(text) => Json::Text(self.text(text)),
            Err(_) => Json::text(protobuf::unknown(raw)),
        }
    }
}

/// Replaces revisions before ` (` or `, current: `.
fn versions_before_others(text: &str) -> String {
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for digits in DIGITS.find_iter(text) {
        let (before, after) = (&text[..digits.start()], &text[digits.end()..]);
        let is_apart = !before.ends_with(|each: char| each.is_alphanumeric() || matches!(each, '_' | '.'));
        let is_followed = after.starts_with(" (") || after.starts_with(", current: ");
        if is_apart && is_followed && (5..=20).contains(&digits.as_str().chars().count()) {
            out.push_str(&text[copied..digits.start()]);
            out.push_str("<rv>");
            copied = digits.end();
        }
    }
    out.push_str(&text[copied..]);
    out
}

fn aged(text: &str) -> String {
    if AGE.is_match(text) { "<age>".into() } else { AGE_WITHIN.replace_all(text, "(<age> ago)").into_owned() }
}

/// Sorts entries of `managedFields` without their times, which depend on whether the clock advanced between two writes.
/// Adds a mark if the entries were not in the order that includes their times.
fn entries(mut entries: Vec<Json>) -> Vec<Json> {
    if !entries.iter().all(|entry| matches!(entry, Json::Map(_))) {
        return entries;
    }
    let key = |entry: &Json, names: &[&str]| -> Vec<String> {
        let text = |name: &&str| entry.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        names.iter().map(text).collect()
    };
    let is_ordered =
        entries.is_sorted_by_key(|entry| key(entry, &["operation", "time", "manager", "apiVersion", "subresource"]));
    entries.sort_by_key(|entry| key(entry, &["operation", "manager", "apiVersion", "subresource"]));
    if !is_ordered {
        entries.push(Json::text("<out of order>"));
    }
    entries
}

/// Decodes bytes as UTF-8, and escapes invalid ones.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}
