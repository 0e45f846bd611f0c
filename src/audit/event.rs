//! The events of a request, and their JSON.

use std::net::IpAddr;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderValue, USER_AGENT};
use bytes::{Bytes, BytesMut};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, json, protobuf, yaml};

use super::Audit;
use super::policy::{Asked, Level, Stage, Verdict};
use crate::access::User;
use crate::config::AuditFormat;
use crate::limits;
use crate::request::record::Record;
use crate::wall_clock;

/// The longest recorded `User-Agent`, in bytes.
const USER_AGENT_BYTES: usize = 1_024;

/// What is known of an answer.
#[derive(Debug, Default)]
struct Answered {
    /// The status code; 0 while there is no answer.
    code: u16,
    /// The `Status` that was answered. `None` for answers of other kinds.
    status: Option<Value>,
    /// The object that was answered, as JSON.
    object: Option<Bytes>,
}

/// A request whose events are recorded.
#[derive(Debug)]
pub struct Audited {
    audit: Arc<Audit>,
    verdict: Verdict,
    id: String,
    received: Timestamp,
    uri: String,
    verb: String,
    user: Option<Arc<User>>,
    addresses: Vec<IpAddr>,
    agent: String,
    /// Resource, namespace, name, UID, group, version, resource version and subresource; `None` for other paths.
    of: Option<[String; 8]>,
    /// Whether the request is long-running.
    lasts: bool,
    /// Whether another server answers.
    pub is_remote: bool,
    /// Whether the server failed to answer.
    pub is_broken: bool,
    has_started: bool,
    answered: Answered,
    /// The answer so far, while it is sent part by part; `None` if it is not recorded.
    passing: Option<(BytesMut, String, bool)>,
    /// What the handling of the request has found.
    pub record: Record,
    /// Annotations: keys and values.
    pub annotations: Vec<(String, String)>,
}

impl Audited {
    /// Begins to record a request, if the policy says so. `user` is `None` if nobody knows who asks.
    pub fn begin(
        audit: &Arc<Audit>,
        request: &HttpRequest,
        (id, uri): (&HeaderValue, &str),
        user: Option<&Arc<User>>,
        (asked, lasts): (&Asked<'_>, bool),
    ) -> Option<Box<Self>> {
        let verdict = audit.policy.decide(user.map(|user| &**user), asked);
        audit.counts.level(verdict.level);
        if verdict.level == Level::None {
            return None;
        }
        let agent =
            request.headers().get(USER_AGENT).map_or("".into(), |agent| String::from_utf8_lossy(agent.as_bytes()));
        let agent = match agent.len() > USER_AGENT_BYTES {
            true => format!("{}...TRUNCATED", &agent[..agent.floor_char_boundary(USER_AGENT_BYTES)]),
            false => agent.into_owned(),
        };
        let of = asked.of.map(|of| {
            [of.resource, of.namespace, of.name, "", of.group, of.version, "", of.subresource].map(str::to_owned)
        });
        Some(Box::new(Self {
            audit: Arc::clone(audit),
            verdict,
            id: String::from_utf8_lossy(id.as_bytes()).into_owned(),
            received: wall_clock::timestamp(),
            uri: uri.to_owned(),
            verb: asked.verb.to_owned(),
            user: user.cloned(),
            addresses: addresses(request.headers(), request.peer_addr().map(|peer| peer.ip().to_canonical())),
            agent,
            of,
            lasts: lasts || user.is_none(),
            is_remote: false,
            is_broken: false,
            has_started: false,
            answered: Answered::default(),
            passing: None,
            record: Record {
                wants_object: verdict.level >= Level::Request,
                without_managed_fields: verdict.without_managed_fields,
                ..Record::default()
            },
            annotations: Vec::new(),
        }))
    }

    /// Records that the request was received. Returns false if it must be refused, since that cannot be recorded.
    /// Requests of unknown users have no such event.
    #[must_use]
    pub fn received(&self) -> bool {
        self.user.is_none() || self.emit(Stage::RequestReceived)
    }

    /// Learns the head of the answer, and its body if that is whole.
    pub fn answers(&mut self, code: u16, (media, is_compressed): (&str, bool), body: Option<&[u8]>) {
        self.answered.code = code;
        if self.shows(code, media) {
            match body {
                Some(body) => self.take_answer(body, media, is_compressed),
                None if !self.lasts => self.passing = Some((BytesMut::new(), media.to_owned(), is_compressed)),
                None => {}
            }
        }
        if self.lasts {
            self.start();
        }
    }

    fn start(&mut self) {
        self.has_started = true;
        self.emit(Stage::ResponseStarted);
    }

    /// Learns a part of an answer that is sent part by part.
    pub fn passes(&mut self, bytes: &[u8]) {
        if let Some((all, ..)) = &mut self.passing {
            if all.len() + bytes.len() > limits::AUDITED_ANSWER_BYTES {
                self.passing = None;
            } else {
                all.extend_from_slice(bytes);
            }
        }
    }

    /// Returns whether the body of an answer matters to the event: it is the object, or may be a `Status`.
    fn shows(&self, code: u16, media: &str) -> bool {
        let is_object = media.starts_with("application/json")
            || media.starts_with("application/yaml")
            || media.starts_with("application/vnd.kubernetes.protobuf");
        let is_shown = match &self.of {
            Some(_) => !self.is_remote,
            None => self.uri.starts_with("/api"),
        };
        is_object
            && is_shown
            && (self.verdict.level == Level::RequestResponse && !self.lasts || self.may_be_status(code))
    }

    fn may_be_status(&self, code: u16) -> bool {
        code >= 400
            || self.verb == "delete"
            || (self.verb == "create" && self.of.as_ref().is_some_and(|of| !of[7].is_empty()))
    }

    fn take_answer(&mut self, body: &[u8], media: &str, is_compressed: bool) {
        let inflated;
        let body = match is_compressed {
            true => match inflate(body) {
                Some(bytes) => {
                    inflated = bytes;
                    &inflated[..]
                }
                None => return,
            },
            false => body,
        };
        let keeps = self.verdict.level == Level::RequestResponse;
        let may_be_status = self.may_be_status(self.answered.code);
        let trimmed = body.trim_ascii();
        let is_plain = media.starts_with("application/json") && !trimmed.contains(&b'\n');
        if keeps && is_plain && !may_be_status && !self.verdict.without_managed_fields {
            self.answered.object = Some(Bytes::copy_from_slice(trimmed));
            return;
        }
        let Some(mut value) = read(body, media) else { return };
        if may_be_status && value.str_at(&["kind"]) == "Status" {
            self.answered.status = Some(value.clone());
        }
        if keeps {
            if self.verdict.without_managed_fields {
                drop_managed_fields(&mut value);
            }
            self.answered.object = Some(json::to_vec(&value).into());
        }
    }

    /// Records the end of the request.
    pub fn end(&mut self) {
        if let Some((bytes, media, is_compressed)) = self.passing.take() {
            self.take_answer(&bytes, &media, is_compressed);
        }
        if self.is_broken {
            let status = flotilla_proto::value!({
                "status": "Failure", "message": "APIServer panic'd", "reason": "InternalError"
            });
            self.answered = Answered { code: 500, status: Some(status), object: None };
            self.emit(Stage::Panic);
            return;
        }
        if self.answered.code == 0 {
            let status = flotilla_proto::value!({"status": "Success", "message": "Connection closed early"});
            self.answered = Answered { code: 200, status: Some(status), object: None };
            if self.lasts {
                self.start();
            }
        }
        if self.user.is_some() {
            self.emit(Stage::ResponseComplete);
        }
    }

    fn emit(&self, stage: Stage) -> bool {
        if self.verdict.omitted.has(stage) {
            return true;
        }
        self.audit.counts.event();
        let at = if stage == Stage::RequestReceived { self.received } else { wall_clock::timestamp() };
        let mut line = Vec::with_capacity(1_024);
        match self.audit.format {
            AuditFormat::Json => self.write(stage, at, &mut line),
            AuditFormat::Legacy => self.write_legacy(stage, &mut line),
        }
        line.push(b'\n');
        self.audit.take(line)
    }

    fn write(&self, stage: Stage, at: Timestamp, out: &mut Vec<u8>) {
        let mut out = Members { out, is_first: true };
        out.text("kind", "Event");
        out.text("apiVersion", "audit.k8s.io/v1");
        out.text("level", self.verdict.level.name());
        out.text("auditID", &self.id);
        out.text("stage", stage.name());
        out.text("requestURI", &self.uri);
        out.text("verb", &self.verb);
        out.raw("user", |out| write_user(self.user.as_deref(), out));
        if let Some((user, constraint)) = &self.record.impersonated {
            out.raw("impersonatedUser", |out| write_user(Some(user), out));
            if !constraint.is_empty() {
                out.raw("authenticationMetadata", |out| {
                    let mut members = Members { out, is_first: true };
                    members.text("impersonationConstraint", constraint);
                    members.close();
                });
            }
        }
        if !self.addresses.is_empty() {
            out.raw("sourceIPs", |out| write_list(self.addresses.iter().map(ToString::to_string), out));
        }
        out.some("userAgent", &self.agent);
        out.raw_if(self.of.is_some(), "objectRef", |out| self.write_of(out));
        out.raw_if(self.answered.code != 0, "responseStatus", |out| self.write_status(out));
        let shown = |object: &Option<Bytes>| object.clone().filter(|_| stage != Stage::RequestReceived);
        for (name, object) in [("requestObject", &self.record.object), ("responseObject", &self.answered.object)] {
            if let Some(object) = shown(object) {
                out.raw(name, |out| out.extend_from_slice(&object));
            }
        }
        out.text("requestReceivedTimestamp", &self.received.micro());
        out.text("stageTimestamp", &at.micro());
        self.write_annotations(stage, &mut out);
        out.close();
    }

    fn write_of(&self, out: &mut Vec<u8>) {
        const NAMES: [&str; 8] =
            ["resource", "namespace", "name", "uid", "apiGroup", "apiVersion", "resourceVersion", "subresource"];
        let Some(of) = &self.of else { return };
        let [namespace, name, uid, version] = &self.record.stated;
        let stated = ["", namespace, name, uid, "", "", version, ""];
        let mut members = Members { out, is_first: true };
        for ((name, own), stated) in NAMES.into_iter().zip(of).zip(stated) {
            members.some(name, if own.is_empty() { stated } else { own });
        }
        members.close();
    }

    fn write_status(&self, out: &mut Vec<u8>) {
        let mut members = Members { out, is_first: true };
        members.raw("metadata", |out| out.extend_from_slice(b"{}"));
        if let Some(status) = &self.answered.status {
            for name in ["status", "message", "reason"] {
                members.some(name, status.str_at(&[name]));
            }
            if let Some(details) = status.get("details") {
                members.raw("details", |out| json::write(details, out));
            }
        }
        members.raw("code", |out| out.extend_from_slice(self.answered.code.to_string().as_bytes()));
        members.close();
    }

    fn write_annotations(&self, stage: Stage, out: &mut Members<'_>) {
        let mut all: Vec<(&str, &str)> = Vec::new();
        let decision = self.record.decision.as_ref().filter(|_| stage != Stage::RequestReceived);
        if let Some((allowed, reason)) = decision {
            all.push(("authorization.k8s.io/decision", if *allowed { "allow" } else { "forbid" }));
            all.push(("authorization.k8s.io/reason", reason));
        }
        for (key, value) in &self.annotations {
            // The first value stays, as in the reference.
            if !all.iter().any(|(own, _)| own == key) {
                all.push((key, value));
            }
        }
        if all.is_empty() {
            return;
        }
        all.sort_unstable();
        out.raw("annotations", |out| {
            let mut members = Members { out, is_first: true };
            all.iter().for_each(|(key, value)| members.text(key, value));
            members.close();
        });
    }

    fn write_legacy(&self, stage: Stage, out: &mut Vec<u8>) {
        use crate::field::quote;
        let groups = |user: &User| user.groups.iter().map(|group| quote(group)).collect::<Vec<_>>().join(",");
        let of_user = |user: Option<&User>, none: [&str; 2]| match user {
            Some(user) if user.groups.is_empty() => (user.name.to_string(), none[1].to_owned()),
            Some(user) => (user.name.to_string(), groups(user)),
            None => (none[0].to_owned(), none[1].to_owned()),
        };
        let (user, of_groups) = of_user(self.user.as_deref(), ["<none>", "<none>"]);
        let impersonated = self.record.impersonated.as_ref().map(|(user, _)| &**user);
        let (other, others) = of_user(impersonated, ["<self>", "<lookup>"]);
        let ip = self.addresses.first().map_or_else(|| "<unknown>".to_owned(), ToString::to_string);
        let namespace = self.of.as_ref().map_or("", |of| &of[1]);
        let namespace = if namespace.is_empty() { "<none>" } else { namespace };
        let code = if self.answered.code == 0 { "<deferred>".to_owned() } else { self.answered.code.to_string() };
        let line = format!(
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} \
             uri={} response=\"{code}\"",
            self.received.micro(),
            quote(&self.id),
            quote(stage.name()),
            quote(&ip),
            quote(&self.verb),
            quote(&user),
            quote(&of_groups),
            quote(&other),
            quote(&others),
            quote(&self.agent),
            quote(namespace),
            quote(&self.uri),
        );
        out.extend_from_slice(line.as_bytes());
    }
}

/// Writes the members of a JSON object.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl Members<'_> {
    fn raw(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(if std::mem::replace(&mut self.is_first, false) { b'{' } else { b',' });
        json::write_str(name, self.out);
        self.out.push(b':');
        write(self.out);
    }

    fn raw_if(&mut self, is_there: bool, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if is_there {
            self.raw(name, write);
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        self.raw(name, |out| json::write_str(text, out));
    }

    /// Writes a text, unless it is empty.
    fn some(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.text(name, text);
        }
    }

    fn close(self) {
        if self.is_first {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }
}

fn write_list(texts: impl Iterator<Item = impl AsRef<str>>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::write_str(text.as_ref(), out);
    }
    out.push(b']');
}

fn write_user(user: Option<&User>, out: &mut Vec<u8>) {
    let mut members = Members { out, is_first: true };
    if let Some(user) = user {
        members.some("username", &user.name);
        members.some("uid", &user.uid);
        members.raw_if(!user.groups.is_empty(), "groups", |out| write_list(user.groups.iter(), out));
        members.raw_if(!user.extra.is_empty(), "extra", |out| {
            let mut members = Members { out, is_first: true };
            for (key, values) in &user.extra {
                members.raw(key, |out| write_list(values.iter(), out));
            }
            members.close();
        });
    }
    members.close();
}

/// Returns the addresses of a client: those that proxies state, and that of the connection.
fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<IpAddr> {
    let stated = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut all: Vec<IpAddr> = stated("x-forwarded-for").split(',').filter_map(|one| one.trim().parse().ok()).collect();
    if let Ok(real) = stated("x-real-ip").trim().parse()
        && !all.contains(&real)
    {
        all.push(real);
    }
    if let Some(peer) = peer
        && all.last() != Some(&peer)
    {
        all.push(peer);
    }
    all
}

fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let mut out = Vec::new();
    let most = limits::AUDITED_ANSWER_BYTES as u64;
    flate2::read::GzDecoder::new(bytes).take(most).read_to_end(&mut out).ok()?;
    ((out.len() as u64) < most).then_some(out)
}

/// Reads an object in any of the encodings of answers.
fn read(body: &[u8], media: &str) -> Option<Value> {
    if media.starts_with("application/yaml") {
        return yaml::parse(body).ok().map(|parsed| parsed.value);
    }
    if media.starts_with("application/json") {
        return json::parse(body).ok();
    }
    let envelope = protobuf::open(body).ok()?;
    let version = &*envelope.api_version;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let group = if &*envelope.kind == "Status" { "" } else { group };
    let kind = catalogue::kind(group, version, &envelope.kind)?;
    protobuf::decode_object(&kind.of, &envelope).ok()
}

fn drop_managed_fields(value: &mut Value) {
    value.remove_at(&["metadata", "managedFields"]);
    for list in ["items", "rows"] {
        for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let item = if list == "rows" { item.get_mut("object") } else { Some(item) };
            item.map(|item| item.remove_at(&["metadata", "managedFields"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderName;

    use super::*;

    #[test]
    fn proxies_state_addresses() {
        let mut headers = HeaderMap::new();
        let mut set = |name: &'static str, value| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        };
        set("x-forwarded-for", "1.2.3.4, nonsense, 5.6.7.8");
        set("x-real-ip", "5.6.7.8");
        let peer = Some("127.0.0.1".parse().unwrap());
        let shown: Vec<String> = addresses(&headers, peer).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1.2.3.4", "5.6.7.8", "127.0.0.1"]);
        assert_eq!(addresses(&HeaderMap::new(), None), [] as [IpAddr; 0]);
    }
}
