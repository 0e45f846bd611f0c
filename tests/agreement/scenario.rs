//! Runs one scenario: sends the request of each step, and returns the compared parts of its answer.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};

use super::client::{Answer, Request, Servers, latin};
use super::compare::Seen;
use super::json::{self, Json};
use super::normal::Normal;
use super::path;

/// Headers that are always compared.
const HEADERS: [&str; 8] =
    ["Content-Type", "Warning", "Retry-After", "Allow", "Location", "Vary", "Cache-Control", "WWW-Authenticate"];
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause before each request that is sent while a watch is open.
const MEANWHILE: Duration = Duration::from_millis(250);
/// How many times the default ServiceAccount of a new namespace is requested at most, before the scenario begins.
const NAMESPACE_TRIES: usize = 60;
/// How many times the ConfigMap with the root certificate is requested at most, and the pause between two requests.
const ROOT_CA_TRIES: usize = 1_500;
const ROOT_CA_PAUSE: Duration = Duration::from_millis(20);
const CLEANUP_TRIES: usize = 5;
/// Characters that are not escaped in paths.
const PATH_SAFE: &str = "/?&=%:,;@!$'()*+~.-_[]";

/// The values of `${name}`, and the placeholders of a run.
struct Run<'a> {
    servers: &'a Servers,
    values: HashMap<String, String>,
    normal: Normal,
    /// Paths that are removed from every answer before the comparison.
    ignored: &'a Json,
    /// By how much all waits of the scenario are multiplied.
    slowness: u32,
}

/// Runs all steps of a scenario. Multiplies its pauses, and the times for which watches last, by `slowness`.
pub fn run(servers: &Servers, scenario: &Json, namespace: &str, slowness: u32) -> Vec<Seen> {
    let has_namespace = scenario.get("namespace").is_none_or(Json::is_something);
    if has_namespace {
        begin(servers, namespace);
    }
    let mut run = Run {
        servers,
        values: HashMap::from([("NS".to_owned(), namespace.to_owned())]),
        normal: Normal::new(namespace),
        ignored: scenario.get("ignore").unwrap_or(&Json::Null),
        slowness,
    };
    let mut seen = Vec::new();
    for (number, step) in scenario.get("steps").and_then(Json::as_list).unwrap_or_default().iter().enumerate() {
        match run.step(number, step) {
            Ok(answer) => seen.extend(answer),
            Err(error) => seen.push(Seen {
                step: number,
                request: step.dump().chars().take(80).collect(),
                status: -1,
                headers: Json::Map(Vec::new()),
                body: Json::Text(error),
            }),
        }
    }
    if has_namespace {
        servers.simple("DELETE", &format!("/api/v1/namespaces/{namespace}"), None);
    }
    for path in scenario.get("cleanup").and_then(Json::as_list).unwrap_or_default() {
        let path = path.as_str().map(|path| run.expand_text(path)).and_then(Result::ok).unwrap_or_default();
        for _ in 0..CLEANUP_TRIES {
            if servers.simple("DELETE", &path, None).status < 405 {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
    seen
}

/// Creates a namespace, and its default ServiceAccount if no controller does. Waits for the ConfigMap that a controller
/// creates in each namespace: Kubernetes had it before the first step of each scenario.
fn begin(servers: &Servers, namespace: &str) {
    servers.simple("POST", "/api/v1/namespaces", Some(&format!("{{\"metadata\": {{\"name\": \"{namespace}\"}}}}")));
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    for _ in 0..NAMESPACE_TRIES {
        if servers.simple("GET", &format!("{accounts}/default"), None).status == 200 {
            break;
        }
        servers.simple("POST", &accounts, Some("{\"metadata\": {\"name\": \"default\"}}"));
    }
    let root_ca = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
    for _ in 0..ROOT_CA_TRIES {
        if servers.simple("GET", &root_ca, None).status == 200 {
            break;
        }
        std::thread::sleep(ROOT_CA_PAUSE);
    }
}

impl Run<'_> {
    /// Runs a step. Returns `None` if the step has no request.
    ///
    /// # Errors
    /// States the fault of the step.
    fn step(&mut self, number: usize, step: &Json) -> Result<Option<Seen>, String> {
        let members = step.as_map().ok_or("a step is a map")?;
        let mut requests = members.iter().filter(|(key, _)| key.contains(" /") || key == "SLEEP");
        let request = requests.next();
        if requests.next().is_some() {
            return Err("a step has one request".into());
        }
        if request.is_some_and(|(key, _)| key == "SLEEP") || step.get("sleep").is_some() {
            let seconds = step.get("sleep").and_then(Json::as_float).unwrap_or(1.0);
            std::thread::sleep(Duration::from_secs_f64(seconds) * self.slowness);
            return Ok(None);
        }
        let (key, options) = request.ok_or("a step has a request")?;
        let line = self.expand_text(key)?;
        let (method, path) = line.split_once(' ').ok_or("a method and a path")?;
        let path = quoted(path);
        let answer = self.send(method, &path, options)?;
        self.save(&answer, options);
        let body = self.body(&answer, options)?;
        let request = format!("{method} {}", self.normal.text(&path));
        let shown = HEADERS.into_iter().chain(texts(options.get("see")));
        let mut headers = Vec::new();
        for name in shown {
            if let Some(value) = answer.header(name) {
                Json::put(&mut headers, name.to_owned(), Json::Text(self.normal.header(name, value)));
            }
        }
        Ok(Some(Seen { step: number, request, status: answer.status, headers: Json::Map(headers), body }))
    }

    fn send(&self, method: &str, path: &str, options: &Json) -> Result<Answer, String> {
        let mut headers = vec![
            ("Accept".to_owned(), Json::text("application/json")),
            ("User-Agent".into(), Json::text("parity/1.0")),
        ];
        let body = match options.get("body").unwrap_or(&Json::Null) {
            Json::Null => None,
            body => {
                headers.push(("Content-Type".into(), Json::text(content_type(method))));
                Some(self.encode(body, options)?)
            }
        };
        if let Some(given) = options.get("headers") {
            for (name, value) in self.expand(given)?.as_map().ok_or("headers are a map")? {
                Json::put(&mut headers, name.clone(), value.clone());
            }
        }
        let headers: Vec<_> =
            headers.into_iter().filter_map(|(name, value)| Some((name, header_value(&value)?))).collect();
        let is_anonymous = options.get("anonymous").is_some_and(Json::is_something);
        let body = body.as_deref();
        if method == "WATCH" {
            let (begun, begins) = channel();
            let meanwhile = match options.get("meanwhile") {
                Some(requests) => Some(self.meanwhile(self.expand(requests)?, begins)),
                None => None,
            };
            let (path, begun) = (self.prolonged(path), Some(begun));
            let seconds = options.get("seconds").and_then(Json::as_float).unwrap_or(2.0);
            let stream = Some(Duration::from_secs_f64(seconds) * self.slowness);
            let request =
                Request { method: "GET", path: &path, headers: &headers, body: None, is_anonymous, stream, begun };
            let answer = self.servers.call(&request);
            // Lets the other requests begin if no answer came.
            drop(request);
            if let Some(meanwhile) = meanwhile {
                meanwhile.join().map_err(|_| "the requests during a watch cannot be sent")?;
            }
            return Ok(answer);
        }
        let request = Request { method, path, headers: &headers, body, is_anonymous, stream: None, begun: None };
        let tries = options.get("until_tries").and_then(Json::as_float).unwrap_or(1.0) as usize;
        let mut answer = Answer::default();
        for _ in 0..tries {
            answer = self.servers.call(&request);
            if self.is_awaited(&answer, options)? {
                break;
            }
            std::thread::sleep(PAUSE * self.slowness);
        }
        Ok(answer)
    }

    /// Returns whether this is the answer that the step waits for. A step without a condition waits for any answer.
    fn is_awaited(&self, answer: &Answer, options: &Json) -> Result<bool, String> {
        if let Some(at) = options.get("until_path").and_then(Json::as_str) {
            let at = self.expand_text(at)?;
            let document = Json::parse(&answer.body);
            return Ok(document.is_some_and(|document| path::dig(&document, &at).is_some_and(Json::is_something)));
        }
        Ok(options.get("until").is_none_or(|status| *status == Json::Int(answer.status.into())))
    }

    /// Encodes a body: a text as it is, any other value as JSON.
    fn encode(&self, body: &Json, options: &Json) -> Result<Vec<u8>, String> {
        let mut text = match self.expand(body)? {
            Json::Text(text) => text,
            other => other.dump(),
        };
        for (name, repeated) in options.get("repeat").and_then(Json::as_map).unwrap_or_default() {
            let [Json::Text(part), Json::Int(times)] = repeated.as_list().unwrap_or_default() else {
                return Err("repeat has a text and a number".into());
            };
            text = text.replace(&format!("<<{name}>>"), &part.repeat(usize::try_from(*times).unwrap_or(0)));
        }
        if options.get("base64").is_some_and(Json::is_something) {
            return STANDARD.decode(&text).map_err(|error| error.to_string());
        }
        Ok(latin(&text))
    }

    /// Returns the path of a watch whose server ends it later, as all waits are multiplied.
    fn prolonged(&self, path: &str) -> String {
        static END: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"timeoutSeconds=(\d{1,4})\b").expect("a pattern"));
        let longer = |found: &Captures<'_>| {
            let seconds = found[1].parse().map_or(0, |seconds: u32| seconds * self.slowness);
            format!("timeoutSeconds={seconds}")
        };
        END.replace_all(path, longer).into_owned()
    }

    /// Starts a thread that sends requests, one after the other, once a watch is open: as soon as `begins` says so, or
    /// has no sender any more.
    fn meanwhile(&self, requests: Json, begins: Receiver<()>) -> JoinHandle<()> {
        let servers = self.servers.clone();
        std::thread::spawn(move || {
            let _ = begins.recv();
            for request in requests.as_list().unwrap_or_default() {
                std::thread::sleep(MEANWHILE);
                let Some([(line, options)]) = request.as_map() else { return };
                let Some((method, path)) = line.split_once(' ') else { return };
                let headers = [("Content-Type", content_type(method)), ("User-Agent", "parity/1.0")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()));
                let body = options.get("body").filter(|body| !matches!(body, Json::Null)).map(Json::dump);
                let body = body.as_deref().map(str::as_bytes);
                let (is_anonymous, stream, begun) = (false, None, None);
                servers.call(&Request { method, path, headers: &headers, body, is_anonymous, stream, begun });
            }
        })
    }

    /// Saves values of an answer for later steps.
    fn save(&mut self, answer: &Answer, options: &Json) {
        for (name, place) in options.get("save").and_then(Json::as_map).unwrap_or_default() {
            let place = place.as_str().unwrap_or_default();
            let value = match place.strip_prefix('@') {
                Some(header) => answer.header(header).map(str::to_owned),
                None => {
                    let document = Json::parse(&answer.body);
                    document.and_then(|document| Some(path::dig(&document, place)?.clone())).map(|it| printed(&it))
                }
            };
            self.values.insert(name.clone(), value.unwrap_or_else(|| "MISSING".into()));
        }
    }

    /// Returns the compared parts of a body.
    fn body(&mut self, answer: &Answer, options: &Json) -> Result<Json, String> {
        let is_set = |name| options.get(name).is_some_and(Json::is_something);
        let message = answer.body.strip_prefix(b"k8s\0").filter(|_| is_set("fields"));
        let mut body = match message {
            Some(message) => self.normal.fields(message).ok_or("not a message")?,
            None => {
                let content_type = answer.header("content-type").unwrap_or_default();
                self.normal.body(&answer.body, content_type, is_set("raw"))
            }
        };
        // Keeps the first events of a stream, because later ones depend on time.
        if let (Some(Json::Int(first)), Json::List(events)) = (options.get("first"), &mut body) {
            events.truncate(usize::try_from(*first).unwrap_or(0));
            if *first == 1 {
                body = events.pop().ok_or("no event")?;
            }
        }
        for dropped in texts(options.get("ignore")).chain(texts(Some(self.ignored))) {
            body = path::remove(body, dropped);
        }
        if is_set("only") {
            let at = |place: &str| path::dig(&body, place).cloned().unwrap_or_else(|| Json::text(path::ABSENT));
            body = Json::Map(texts(options.get("only")).map(|place| (place.to_owned(), at(place))).collect());
        }
        Ok(sorted(body, options))
    }

    /// Replaces `$NS` and `${name}` in a value.
    fn expand(&self, value: &Json) -> Result<Json, String> {
        Ok(match value {
            Json::Text(text) => Json::Text(self.expand_text(text)?),
            Json::List(items) => Json::List(items.iter().map(|item| self.expand(item)).collect::<Result<_, _>>()?),
            Json::Map(members) => {
                let mut out = Vec::new();
                for (key, value) in members {
                    Json::put(&mut out, self.expand_text(key)?, self.expand(value)?);
                }
                Json::Map(out)
            }
            other => other.clone(),
        })
    }

    fn expand_text(&self, text: &str) -> Result<String, String> {
        static NAMED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$\{(\w+)\}|\$NS").expect("a pattern"));
        let mut unknown = None;
        let expanded = NAMED.replace_all(text, |found: &Captures<'_>| {
            let name = found.get(1).map_or("NS", |name| name.as_str());
            self.values.get(name).cloned().unwrap_or_else(|| {
                unknown = Some(name.to_owned());
                String::new()
            })
        });
        match unknown {
            Some(name) => Err(format!("no value is saved as {name}")),
            None => Ok(expanded.into_owned()),
        }
    }
}

/// Sorts lists whose order is not specified, both in answers and in recordings.
pub fn sorted(mut body: Json, options: &Json) -> Json {
    for place in texts(options.get("sort")) {
        if let Some(items) = path::list_mut(&mut body, place) {
            items.sort_by_cached_key(canonical);
        }
    }
    body
}

/// Returns a text that is the same for equal values.
fn canonical(value: &Json) -> String {
    match value {
        Json::Map(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Json::List(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.dump(),
    }
}

fn texts(list: Option<&Json>) -> impl Iterator<Item = &str> {
    list.and_then(Json::as_list).unwrap_or_default().iter().filter_map(Json::as_str)
}

fn content_type(method: &str) -> &'static str {
    if method == "PATCH" { "application/merge-patch+json" } else { "application/json" }
}

/// Returns the value of a header. Returns `None` for null, by which a scenario removes a default header.
fn header_value(value: &Json) -> Option<String> {
    (!matches!(value, Json::Null)).then(|| printed(value))
}

/// Returns a value as part of a text.
fn printed(value: &Json) -> String {
    match value {
        Json::Null => "None".into(),
        Json::Bool(value) => if *value { "True" } else { "False" }.into(),
        Json::Float(number) => json::float(*number),
        Json::Text(text) => text.clone(),
        other => other.dump(),
    }
}

fn quoted(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || PATH_SAFE.as_bytes().contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
