//! Everything that can be written can be read: unusual JSON trees are written in every way, and read in every
//! representation.
//!
//! A seed determines the trees. By default the test tries a few; `FLOTILLA_ROUND_TRIPS=N` tries that many, and
//! `FLOTILLA_ROUND_TRIP_SEED=N` starts with another seed.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::support::{Answer, Connection, DataDir};
use crate::unreadable::{WIDGETS, define_widgets};

const TRIPS: u64 = 16;
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// `-0.0` is not among these: the reference, too, writes it as `-0`, and reads that as `0`. The last three are too
/// large.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1.5",
    "1E+2",
    "0.1",
    "1e21",
    "1e-7",
    "5e-324",
    "1e-400",
    "1e308",
    "1.7976931348623157e308",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "123456789012345678901234567890",
    "0.00000000000000000000000000001",
    "1e400",
    "-1.8e308",
    "1e99999999999999999999",
];
const STRINGS: &[&str] = &[
    "",
    " ",
    "a",
    "null",
    "~",
    "yes",
    "1e400",
    ".inf",
    ".nan",
    "infe+0",
    "- a",
    "a: b",
    "# c",
    "|",
    "<<",
    "---",
    "...",
    "x\\n",
    "\\n y \\n\\n",
    "a \\n b",
    "\\t",
    "\\u0000",
    "\\u0007\\u001b",
    "\\ud800",
    "\\udc00\\ud800",
    "\\ud83d\\ude00",
    "\\u2028\\u2029",
    "\\u0085\\u00a0\\ufeff",
    "\\ufffe\\uffff",
    "<a>&\\\"b\\\\",
    "2020-01-01",
    "0x1f",
    "0b1",
    "1_000",
    "\u{e9}\u{20ac}\u{1f600}",
    "a string that is folded, since it has blanks and is a good deal longer than eighty characters",
];
const KEYS: &[&str] = &[
    "",
    "a",
    "b",
    "\\u0061",
    "a.b/c",
    "f:x",
    "k:{\\\"a\\\":1}",
    "v:1",
    ".",
    "i:0",
    "~1",
    "<<",
    "yes",
    "1",
    "1e400",
    ".inf",
    "\\u0000",
    "\\ud800",
    "\u{20ac}",
    "name",
    "kind",
    "key with blanks: and colons",
    "0",
    "-",
];

/// Pseudorandom numbers from a seed (xorshift64*, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn string(&mut self) -> String {
        match self.below(20) {
            0 => format!("\"{}\"", "long ".repeat(self.below(2_000))),
            _ => format!("\"{}\"", self.of(STRINGS)),
        }
    }

    fn number(&mut self) -> String {
        // A number that is too large makes the whole tree invalid, so they are rare.
        let number = match self.below(40) {
            0 => self.of(NUMBERS),
            1 => return "9".repeat(self.below(400) + 1),
            _ => self.of(&NUMBERS[..19]),
        };
        number.to_owned()
    }

    fn key(&mut self) -> String {
        match self.below(30) {
            0 => format!("\"{}\"", "k".repeat(self.below(5_000))),
            _ => format!("\"{}\"", self.of(KEYS)),
        }
    }

    /// Generates the JSON of a value.
    fn tree(&mut self, levels: usize) -> String {
        match self.below(if levels == 0 { 6 } else { 12 }) {
            0 | 1 => self.number(),
            2 | 3 => self.string(),
            4 => self.of(&["null", "true", "false", "{}", "[]", "[null]", "[[]]", "{\"a\":null}"]).to_owned(),
            5 => String::from("1"),
            6..=8 => {
                let items: Vec<_> = (0..self.below(4)).map(|_| self.tree(levels - 1)).collect();
                format!("[{}]", items.join(","))
            }
            _ => self.object(levels - 1),
        }
    }

    /// Generates the JSON of an object.
    fn object(&mut self, levels: usize) -> String {
        let members: Vec<_> = (0..self.below(5)).map(|_| format!("{}:{}", self.key(), self.tree(levels))).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Generates the JSON of an object that may reach, or exceed, the greatest depth of a body.
    fn deep(&mut self) -> String {
        match self.below(4) {
            0 => {
                let levels = [60, 125, 254, 500, 505, 508, 509, 510, 511, 512, 520, 2_000][self.below(12)];
                let (open, close) = [("{\"a\":", "}"), ("[", "]"), ("{\"a\":[", "]}")][self.below(3)];
                let levels = levels / open.matches(['{', '[']).count();
                format!("{{\"d\":{}{}{}}}", open.repeat(levels), self.tree(0), close.repeat(levels))
            }
            _ => self.object(4),
        }
    }
}

/// Sends a request, and checks that the answer is no failure of the server.
fn answered(client: &mut Connection, method: &str, path: &str, media: &str, body: &str) -> Answer {
    let answer = client.request(method, path, media, body.as_bytes());
    // The reference refuses this apply with 500, too.
    let is_refused = answer.status == 500 && answer.text().contains("failed to create typed patch object");
    assert!(answer.status < 500 || is_refused, "{method} {path} {body}: {} {}", answer.status, answer.text());
    answer
}

fn is_sound(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

fn read(client: &mut Connection, path: &str, accept: &str) -> Answer {
    let answer = client.call("GET", path, &[("Accept", accept)], b"").unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(answer.status, 200, "{path} as {accept}: {}", answer.text());
    if accept.starts_with("application/json") {
        assert!(is_sound(&answer.body), "{path} as {accept}: {}", answer.text());
    }
    answer
}

fn trimmed(answer: &Answer) -> String {
    answer.text().trim_end().to_owned()
}

fn revision(text: &str) -> &str {
    let rest = text.rsplit_once("\"resourceVersion\":\"").map_or("", |(_, rest)| rest);
    rest.split_once('"').map_or("", |(revision, _)| revision)
}

/// Reads an object in every representation. Returns its JSON.
fn read_back(client: &mut Connection, collection: &str, name: &str, has_messages: bool) -> String {
    let path = format!("{collection}/{name}");
    let text = trimmed(&read(client, &path, "application/json"));
    let listed = read(client, &format!("{collection}?fieldSelector=metadata.name%3D{name}"), "application/json").text();
    let metadata = text.find("\"metadata\":").expect("metadata");
    assert!(listed.contains(&text[metadata..]), "{listed}\nhas not\n{text}");
    for list in [collection.to_owned(), format!("{collection}?limit=3"), format!("{collection}?resourceVersion=0")] {
        for accept in ["application/json", TABLE, METADATA_LIST] {
            read(client, &list, accept);
        }
    }
    read(client, collection, YAML);
    read(client, &format!("{path}?pretty=1"), "application/json");
    read(client, &path, METADATA);
    read(client, &format!("{path}?includeObject=Object"), TABLE);
    let yaml = read(client, &path, YAML).text();
    same_again(client, &path, YAML, &yaml, &text);
    if has_messages {
        read(client, collection, PROTOBUF);
        let answer = read(client, &path, PROTOBUF);
        let put = client.request("PUT", &format!("{path}?dryRun=All"), PROTOBUF, &answer.body);
        assert_eq!((put.status, trimmed(&put)), (200, text.clone()));
    }
    text
}

/// Updates an object with its own content, and checks that nothing changes.
fn same_again(client: &mut Connection, path: &str, media: &str, body: &str, text: &str) {
    let put = answered(client, "PUT", &format!("{path}?dryRun=All"), media, body);
    // The entries of managedFields lie deeper than the fields, and YAML documents may nest less deep.
    if put.status == 400 && ["max depth", "recursion limit"].iter().any(|why| put.text().contains(why)) {
        return;
    }
    assert_eq!(put.status, 200, "{}: {body}", put.text());
    // serde_json cannot parse very deep trees; for these, success is enough.
    let read = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
    let (Some(again), Some(before)) = (read(&put.body), read(text.as_bytes())) else { return };
    // A change raises the generation, and `changed` would report the generation before the change itself.
    let without = |mut object: Value| {
        object["metadata"]["generation"].take();
        object["metadata"]["managedFields"].take();
        object
    };
    let change = changed(&without(before.clone()), &without(again.clone()));
    if let Some(change) = change.or_else(|| changed(&before, &again)) {
        panic!("{change}\n{body}");
    }
}

/// Returns where two values differ, and how. Returns `None` if they are equal.
fn changed(before: &Value, after: &Value) -> Option<String> {
    let inside = |at: &dyn std::fmt::Display, change: Option<String>| change.map(|change| format!(".{at}{change}"));
    match (before, after) {
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
            one.iter().find_map(|(key, value)| inside(key, changed(value, other.get(key).unwrap_or(&Value::Null))))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).enumerate().find_map(|(at, (one, other))| inside(&at, changed(one, other)))
        }
        (one, other) => (one != other).then(|| format!(": {one:.200}\nis now\n{other:.200}")),
    }
}

/// Writes one custom object in every way.
fn write_widget(client: &mut Connection, random: &mut Random, name: &str) {
    let path = format!("{WIDGETS}/{name}");
    let head = |metadata: &str| {
        format!(r#""apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"{metadata}}}"#)
    };
    let notes = format!(r#","annotations":{{"a":{}}}"#, random.string());
    let body = format!("{{{},{}:{},\"spec\":{}}}", head(&notes), random.key(), random.tree(3), random.deep());
    let media = ["application/json", YAML][random.below(2)];
    if answered(client, "POST", WIDGETS, media, &body).status != 201 {
        answered(client, "POST", WIDGETS, "application/json", &format!("{{{}}}", head(&notes)));
    }
    if client.get(&path).status != 200 {
        return;
    }
    let mut text = read_back(client, WIDGETS, name, false);
    for _ in 0..2 {
        let metadata = format!(r#","resourceVersion":"{}""#, revision(&text));
        let body = format!("{{{},\"spec\":{},\"x\":{}}}", head(&metadata), random.deep(), random.tree(3));
        answered(client, "PUT", &path, ["application/json", YAML][random.below(2)], &body);
        read_back(client, WIDGETS, name, false);
        let query = ["", "?fieldValidation=Ignore", "?fieldValidation=Strict"][random.below(3)];
        let patch = format!(r#"{{"spec":{},"y":{}}}"#, random.deep(), random.tree(3));
        answered(client, "PATCH", &format!("{path}{query}"), "application/merge-patch+json", &patch);
        let patch = format!(
            r#"[{{"op":"add","path":"/z","value":{}}},{{"op":"copy","from":"/spec","path":"/z"}},{{"op":"add","path":"/spec","value":{}}}]"#,
            random.tree(3),
            random.deep()
        );
        answered(client, "PATCH", &format!("{path}{query}"), "application/json-patch+json", &patch);
        let body = format!("{{{},\"applied\":{}}}", head(""), random.deep());
        answered(client, "PATCH", &format!("{path}?fieldManager=m&force=true"), "application/apply-patch+yaml", &body);
        text = read_back(client, WIDGETS, name, false);
        let metadata = format!(r#","resourceVersion":"{}""#, revision(&text));
        let status = format!("{{{},\"status\":{}}}", head(&metadata), random.deep());
        answered(client, "PUT", &format!("{path}/status"), "application/json", &status);
        let status = format!(r#"{{"status":{}}}"#, random.deep());
        answered(client, "PATCH", &format!("{path}/status"), "application/merge-patch+json", &status);
        text = read_back(client, WIDGETS, name, false);
    }
}

/// Writes objects of built-in kinds that contain free-form trees.
fn write_built_in(client: &mut Connection, random: &mut Random, name: &str) {
    let data = random.deep();
    let body = format!(r#"{{"metadata":{{"name":"{name}"}},"revision":1,"data":{data}}}"#);
    let media = ["application/json", YAML][random.below(2)];
    if answered(client, "POST", REVISIONS, media, &body).status == 201 {
        read_back(client, REVISIONS, name, true);
        let patch = format!(r#"{{"metadata":{{"annotations":{{"a":{},"b":null}}}}}}"#, random.string());
        let media = ["application/merge-patch+json", "application/strategic-merge-patch+json"][random.below(2)];
        answered(client, "PATCH", &format!("{REVISIONS}/{name}"), media, &patch);
        read_back(client, REVISIONS, name, true);
    }
    let body = format!(
        r#"{{"metadata":{{"name":"{name}","annotations":{{{}:{}}}}},"data":{{"a":{},"b":{}}}}}"#,
        random.key(),
        random.string(),
        random.string(),
        random.tree(1)
    );
    if answered(client, "POST", CONFIG_MAPS, "application/json", &body).status == 201 {
        read_back(client, CONFIG_MAPS, name, true);
    }
    let (default, example) = (random.tree(3), random.deep());
    let depth = random.below(420);
    let schema = format!(
        r#"{{"type":"object","properties":{{"a":{{"x-kubernetes-preserve-unknown-fields":true,"default":{default},"example":{example},"enum":[{default}]}}}},"not":{}{{}}{}}}"#,
        "{\"not\":".repeat(depth),
        "}".repeat(depth)
    );
    let body = format!(
        r#"{{"metadata":{{"name":"{name}.trip.example.com"}},"spec":{{"group":"trip.example.com","scope":"Cluster","names":{{"plural":"{name}","kind":"K{name}"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
    );
    if answered(client, "POST", DEFINITIONS, "application/json", &body).status == 201 {
        let path = format!("{DEFINITIONS}/{name}.trip.example.com");
        for accept in ["application/json", YAML, PROTOBUF, TABLE] {
            read(client, &path, accept);
            read(client, DEFINITIONS, accept);
        }
        answered(client, "DELETE", &path, "", "");
    }
}

#[test]
fn everything_that_is_written_can_be_read() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("FLOTILLA_ROUND_TRIP_SEED").unwrap_or(1);
    let trips = number("FLOTILLA_ROUND_TRIPS").unwrap_or(TRIPS);
    let directory = DataDir::new();
    let mut server = directory.start();
    let mut client = server.connect();
    define_widgets(&mut client);
    for trip in seed..seed + trips {
        let mut random = Random(trip.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let name = format!("trip{trip}");
        let before = client.get(&format!("{WIDGETS}?limit=1")).text();
        eprintln!("trip {trip}");
        write_widget(&mut client, &mut random, &name);
        write_built_in(&mut client, &mut random, &name);
        // Watches also deliver every version.
        let from = before.split_once("\"resourceVersion\":\"").map_or("", |(_, rest)| &rest[..18]);
        let events = client.get(&format!("{WIDGETS}?watch=1&resourceVersion={from}&timeoutSeconds=1")).text();
        for event in events.lines() {
            assert!(is_sound(event.as_bytes()) && !event.starts_with("{\"type\":\"ERROR\""), "{event}");
        }
        if trip % 8 == 0 {
            let stored = read(&mut client, WIDGETS, "application/json").text();
            server.kill();
            server = directory.start();
            client = server.connect();
            let again = read(&mut client, WIDGETS, "application/json").text();
            // The text after the items contains the list's revision.
            let items = |list: &str| {
                let (items, _) = list.split_once("\"items\":")?.1.rsplit_once("],\"kind\":")?;
                Some(items.to_owned())
            };
            assert_eq!(items(&again), items(&stored));
            assert!(items(&again).is_some());
            for collection in [WIDGETS, REVISIONS, CONFIG_MAPS] {
                answered(&mut client, "DELETE", collection, "", "");
            }
        }
    }
    let messages = server.messages();
    assert!(!messages.contains("cannot be read"), "{messages}");
}
