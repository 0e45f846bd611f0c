//! The events of a request.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderValue, USER_AGENT};
use bytes::{Bytes, BytesMut};
use flotilla_objects::api_version;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, duration, json, protobuf, yaml};

use super::Audit;
use super::destination::Later;
use super::form::EventDraft;
use super::level::Level;
use super::policy::AuditDecision;
use super::requested::{ObjectRef, Requested};
use super::stage::Stage;
use crate::access::User;
use crate::limits;
use crate::request::record::Record;
use crate::wall_clock;

/// The known parts of an answer.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// The status code; 0 while there is no answer.
    pub(super) code: u16,
    /// The `Status` that was answered. `None` if the answer is of another kind.
    pub(super) status: Option<Value>,
    /// The object that was answered, as JSON. `None` if it is not recorded.
    pub(super) object: Option<Bytes>,
}

/// The objects that the path of a request names. Parts that the path does not name are empty.
#[derive(Debug)]
pub(super) struct NamedObjects {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl NamedObjects {
    fn of(object: ObjectRef<'_>) -> Self {
        Self {
            group: object.group.to_owned(),
            version: object.version.to_owned(),
            resource: object.resource.to_owned(),
            subresource: object.subresource.to_owned(),
            namespace: object.namespace.to_owned(),
            name: object.name.to_owned(),
        }
    }
}

/// The durations of the parts of a request.
#[derive(Debug, Default)]
pub struct Took {
    /// Time to authenticate the user.
    pub authentication: Duration,
    /// Time to authorize the request.
    pub authorization: Duration,
    /// Time for which the request waited for a seat.
    pub seat: Duration,
}

/// A request whose events are recorded.
#[derive(Debug)]
pub struct Audited {
    audit: Arc<Audit>,
    pub(super) decision: AuditDecision,
    pub(super) id: String,
    pub(super) received: Timestamp,
    began: Instant,
    /// The durations of the parts of the request.
    pub took: Took,
    pub(super) uri: String,
    pub(super) verb: String,
    pub(super) user: Option<Arc<User>>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) agent: String,
    /// The objects that the path names. `None` if the path names no resource.
    pub(super) object: Option<NamedObjects>,
    /// Whether the request is long-running.
    lasts: bool,
    /// Whether another server answers.
    pub is_remote: bool,
    /// Whether the server failed to answer.
    pub is_broken: bool,
    has_ended: bool,
    pub(super) answered: Answered,
    /// The answer so far while it is sent part by part, its media type, and whether it is compressed. `None` if it is
    /// not recorded.
    passing: Option<(BytesMut, String, bool)>,
    /// The events that must be sent or lost before the client gets more of its answer.
    later: Vec<Later>,
    /// The findings of the handler of the request.
    pub record: Record,
    /// Annotations: keys and values.
    pub annotations: Vec<(String, String)>,
}

impl Audited {
    /// Begins to record a request that arrived at `began`. `user` is `None` if authentication failed; `authentication`
    /// is the time that it took. Returns `None` if the policy does not record the request.
    pub fn begin(
        audit: &Arc<Audit>,
        request: &HttpRequest,
        (id, uri): (&HeaderValue, &str),
        (user, began, authentication): (Option<&Arc<User>>, Instant, Duration),
        (requested, lasts): (&Requested<'_>, bool),
    ) -> Option<Box<Self>> {
        let decision = audit.policy.decide(user.map(|user| &**user), requested);
        audit.counts.level(decision.level);
        if decision.level == Level::None {
            return None;
        }
        let agent =
            request.headers().get(USER_AGENT).map_or("".into(), |agent| String::from_utf8_lossy(agent.as_bytes()));
        let agent = match agent.len() > limits::AUDIT_USER_AGENT_BYTES {
            true => format!("{}...TRUNCATED", &agent[..agent.floor_char_boundary(limits::AUDIT_USER_AGENT_BYTES)]),
            false => agent.into_owned(),
        };
        Some(Box::new(Self {
            audit: Arc::clone(audit),
            decision,
            id: String::from_utf8_lossy(id.as_bytes()).into_owned(),
            received: wall_clock::timestamp(),
            began,
            took: Took { authentication, ..Took::default() },
            uri: uri.to_owned(),
            verb: requested.verb.to_owned(),
            user: user.cloned(),
            addresses: addresses(request.headers(), request.peer_addr().map(|peer| peer.ip().to_canonical())),
            agent,
            object: requested.object.map(NamedObjects::of),
            lasts: lasts || user.is_none(),
            is_remote: false,
            is_broken: false,
            has_ended: false,
            answered: Answered::default(),
            passing: None,
            later: Vec::new(),
            record: Record {
                wants_object: decision.level >= Level::Request,
                without_managed_fields: decision.without_managed_fields,
                ..Record::default()
            },
            annotations: Vec::new(),
        }))
    }

    /// Records that the request was received. Returns false if the request must be refused because this event is lost.
    /// A request whose authentication failed has no such event.
    #[must_use]
    pub fn received(&mut self) -> bool {
        self.user.is_none() || self.emit(Stage::RequestReceived)
    }

    /// Notes the head of the answer, and the body unless it is sent part by part.
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
        self.emit(Stage::ResponseStarted);
    }

    /// Notes a part of an answer that is sent part by part.
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
        let is_shown = match &self.object {
            Some(_) => !self.is_remote,
            None => code >= 400 || self.uri.starts_with("/api"),
        };
        // In the reference, auditing does not see the body of a 406.
        is_object
            && is_shown
            && code != 406
            && (self.decision.level == Level::RequestResponse && !self.lasts || self.may_be_status(code))
    }

    fn may_be_status(&self, code: u16) -> bool {
        code >= 400
            || self.verb == "delete"
            || (self.verb == "create" && self.object.as_ref().is_some_and(|object| !object.subresource.is_empty()))
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
        let keeps = self.decision.level == Level::RequestResponse;
        let may_be_status = self.may_be_status(self.answered.code);
        let trimmed = body.trim_ascii();
        let is_plain = media.starts_with("application/json") && !trimmed.contains(&b'\n');
        if keeps && is_plain && !may_be_status && !self.decision.without_managed_fields {
            self.answered.object = Some(Bytes::copy_from_slice(trimmed));
            return;
        }
        let Some(mut value) = read(body, media) else { return };
        if may_be_status && value.str_at(&["kind"]) == "Status" {
            self.answered.status = Some(value.clone());
        }
        if keeps {
            if self.decision.without_managed_fields {
                drop_managed_fields(&mut value);
            }
            self.answered.object = Some(json::to_vec(&value).into());
        }
    }

    /// Records the end of the request, once.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
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
            self.tell_times();
            self.emit(Stage::ResponseComplete);
        }
    }

    /// Adds annotations with the times of a slow request that is not a watch.
    fn tell_times(&mut self) {
        let total = self.began.elapsed();
        if total <= limits::AUDIT_SLOW_REQUEST || self.verb == "watch" {
            return;
        }
        let parts = [
            ("total", total),
            ("authentication", self.took.authentication),
            ("authorization", self.took.authorization),
            ("apf-queue-wait", self.took.seat),
        ];
        for (part, took) in parts.into_iter().filter(|(_, took)| !took.is_zero()) {
            let text = duration::format(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
            self.annotations.push((format!("apiserver.latency.k8s.io/{part}"), text));
        }
    }

    fn emit(&mut self, stage: Stage) -> bool {
        if self.decision.omitted.has(stage) {
            return true;
        }
        self.audit.counts.event();
        let at = if stage == Stage::RequestReceived { self.received } else { wall_clock::timestamp() };
        let taken = self.audit.take(&EventDraft::new(self, stage, at));
        self.later.extend(taken.later);
        !taken.is_refused
    }

    /// Returns whether the client gets the end of its answer only when the events are sent or lost.
    pub fn is_awaited(&self) -> bool {
        self.audit.is_awaited()
    }

    /// Waits until the events for which the client waits are sent or lost. Returns whether the request may go on.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while let Some(later) = self.later.last_mut() {
            let is_accepted = ready!(later.poll(cx));
            self.later.pop();
            if !is_accepted {
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    }
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
    let (group, version) = api_version::split(version);
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
