//! The forms of an event: JSON (`Event` of `audit.k8s.io/v1`), and a line of text.

use std::cell::OnceCell;

use bytes::Bytes;
use flotilla_proto::json;
use flotilla_proto::time::Timestamp;

use super::Audited;
use super::level::Level;
use super::stage::Stage;
use crate::access::User;
use crate::field::quote;

/// The beginning of an event that is not in a list.
const HEAD: &[u8] = br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1""#;

/// An event that is about to be recorded, in the form that each destination wants.
#[derive(Debug)]
pub struct EventDraft<'e> {
    of: &'e Audited,
    stage: Stage,
    at: Timestamp,
    whole: OnceCell<Bytes>,
}

impl<'e> EventDraft<'e> {
    /// Makes an event of a request.
    pub const fn new(of: &'e Audited, stage: Stage, at: Timestamp) -> Self {
        Self { of, stage, at, whole: OnceCell::new() }
    }

    /// Returns the event as a line of JSON.
    pub fn json(&self) -> Bytes {
        self.whole.get_or_init(|| self.line(false)).clone()
    }

    /// Returns the event without the objects of request and answer. Returns `None` if its level has no objects.
    pub fn truncated(&self) -> Option<Bytes> {
        (self.of.decision.level >= Level::Request).then(|| self.line(true))
    }

    /// Returns the event as a line of text: the format `legacy`.
    pub fn legacy(&self) -> Bytes {
        legacy(self.of, self.stage).into()
    }

    fn line(&self, is_truncated: bool) -> Bytes {
        let mut line = Vec::with_capacity(1_024);
        self.write(&mut line, is_truncated);
        line.push(b'\n');
        line.into()
    }

    fn write(&self, out: &mut Vec<u8>, is_truncated: bool) {
        let Self { of: event, stage, at, .. } = self;
        out.extend_from_slice(HEAD);
        let mut out = MemberWriter { out, is_first: false };
        out.text("level", event.decision.level.name());
        out.text("auditID", &event.id);
        out.text("stage", stage.name());
        out.text("requestURI", &event.uri);
        out.text("verb", &event.verb);
        out.raw("user", |out| write_user(event.user.as_deref(), out));
        if let Some((user, constraint)) = &event.record.impersonated {
            out.raw("impersonatedUser", |out| write_user(Some(user), out));
            if !constraint.is_empty() {
                out.raw("authenticationMetadata", |out| {
                    let mut members = MemberWriter { out, is_first: true };
                    members.text("impersonationConstraint", constraint);
                    members.close();
                });
            }
        }
        if !event.addresses.is_empty() {
            out.raw("sourceIPs", |out| write_list(event.addresses.iter().map(ToString::to_string), out));
        }
        out.some("userAgent", &event.agent);
        out.raw_if(event.object.is_some(), "objectRef", |out| write_reference(event, out));
        out.raw_if(event.answered.code != 0, "responseStatus", |out| write_status(event, out));
        let shown = *stage != Stage::RequestReceived && !is_truncated;
        for (name, object) in [("requestObject", &event.record.object), ("responseObject", &event.answered.object)] {
            if let Some(object) = object.as_ref().filter(|_| shown) {
                out.raw(name, |out| out.extend_from_slice(object));
            }
        }
        out.text("requestReceivedTimestamp", &event.received.micro());
        out.text("stageTimestamp", &at.micro());
        write_annotations(event, *stage, is_truncated, &mut out);
        out.close();
    }
}

/// Returns the list of events (`EventList`), given the line of each. As in the reference, events in a list do not state
/// their kind.
pub fn list(lines: &[Bytes]) -> Bytes {
    let mut out = Vec::with_capacity(96 + lines.iter().map(Bytes::len).sum::<usize>());
    out.extend_from_slice(br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#);
    for (at, line) in lines.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
        out.extend_from_slice(line.get(HEAD.len() + 1..).unwrap_or_default().trim_ascii_end());
    }
    out.extend_from_slice(b"]}\n");
    out.into()
}

/// Writes the reference to the objects that the path names. Parts that the path lacks come from the object that was
/// sent or answered.
fn write_reference(event: &Audited, out: &mut Vec<u8>) {
    let Some(object) = &event.object else { return };
    let stated = &event.record.stated;
    let mut members = MemberWriter { out, is_first: true };
    members.some("resource", &object.resource);
    members.some("namespace", either(&object.namespace, &stated.namespace));
    members.some("name", either(&object.name, &stated.name));
    members.some("uid", &stated.uid);
    members.some("apiGroup", &object.group);
    members.some("apiVersion", &object.version);
    members.some("resourceVersion", &stated.resource_version);
    members.some("subresource", &object.subresource);
    members.close();
}

/// Returns the first text that is not empty.
fn either<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

fn write_status(event: &Audited, out: &mut Vec<u8>) {
    let mut members = MemberWriter { out, is_first: true };
    members.raw("metadata", |out| out.extend_from_slice(b"{}"));
    if let Some(status) = &event.answered.status {
        for name in ["status", "message", "reason"] {
            members.some(name, status.str_at(&[name]));
        }
        if let Some(details) = status.get("details") {
            members.raw("details", |out| json::write(details, out));
        }
    }
    members.raw("code", |out| out.extend_from_slice(event.answered.code.to_string().as_bytes()));
    members.close();
}

fn write_annotations(event: &Audited, stage: Stage, is_truncated: bool, out: &mut MemberWriter<'_>) {
    let mut all: Vec<(&str, &str)> = Vec::new();
    let decision = event.record.decision.as_ref().filter(|_| stage != Stage::RequestReceived);
    if let Some((allowed, reason)) = decision {
        all.push(("authorization.k8s.io/decision", if *allowed { "allow" } else { "forbid" }));
        all.push(("authorization.k8s.io/reason", reason));
    }
    for (key, value) in &event.annotations {
        // The first value stays, as in the reference.
        if !all.iter().any(|(own, _)| own == key) {
            all.push((key, value));
        }
    }
    if stage == Stage::ResponseComplete && event.record.is_deprecated {
        all.push(("k8s.io/deprecated", "true"));
        all.extend(event.record.removed_release.as_deref().map(|release| ("k8s.io/removed-release", release)));
    }
    if is_truncated {
        all.push(("audit.k8s.io/truncated", "true"));
    }
    if all.is_empty() {
        return;
    }
    all.sort_unstable();
    out.raw("annotations", |out| {
        let mut members = MemberWriter { out, is_first: true };
        all.iter().for_each(|(key, value)| members.text(key, value));
        members.close();
    });
}

fn legacy(event: &Audited, stage: Stage) -> String {
    let groups = |user: &User| user.groups.iter().map(|group| quote(group)).collect::<Vec<_>>().join(",");
    let of_user = |user: Option<&User>, none: [&str; 2]| match user {
        Some(user) if user.groups.is_empty() => (user.name.to_string(), none[1].to_owned()),
        Some(user) => (user.name.to_string(), groups(user)),
        None => (none[0].to_owned(), none[1].to_owned()),
    };
    let (user, of_groups) = of_user(event.user.as_deref(), ["<none>", "<none>"]);
    let impersonated = event.record.impersonated.as_ref().map(|(user, _)| &**user);
    let (other, others) = of_user(impersonated, ["<self>", "<lookup>"]);
    let ip = event.addresses.first().map_or_else(|| "<unknown>".to_owned(), ToString::to_string);
    let namespace = event.object.as_ref().map_or("", |object| &object.namespace);
    let namespace = if namespace.is_empty() { "<none>" } else { namespace };
    let code = if event.answered.code == 0 { "<deferred>".to_owned() } else { event.answered.code.to_string() };
    format!(
        "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} \
         uri={} response=\"{code}\"\n",
        event.received.micro(),
        quote(&event.id),
        quote(stage.name()),
        quote(&ip),
        quote(&event.verb),
        quote(&user),
        quote(&of_groups),
        quote(&other),
        quote(&others),
        quote(&event.agent),
        quote(namespace),
        quote(&event.uri),
    )
}

/// Writes the members of a JSON object.
struct MemberWriter<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl MemberWriter<'_> {
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
    let mut members = MemberWriter { out, is_first: true };
    if let Some(user) = user {
        members.some("username", &user.name);
        members.some("uid", &user.uid);
        members.raw_if(!user.groups.is_empty(), "groups", |out| write_list(user.groups.iter(), out));
        members.raw_if(!user.extra.is_empty(), "extra", |out| {
            let mut members = MemberWriter { out, is_first: true };
            for (key, values) in &user.extra {
                members.raw(key, |out| write_list(values.iter(), out));
            }
            members.close();
        });
    }
    members.close();
}
