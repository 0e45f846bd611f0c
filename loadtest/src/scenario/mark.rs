//! Marks that objects of the harness bear, by which watches and reads are checked.

use std::borrow::Cow;

use serde::Deserialize;

use crate::numbers::fingerprint;

/// The annotation that holds the mark.
pub const ANNOTATION: &str = "loadtest/mark";

/// What an object says about itself: which change of it this is, when that was due, and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The number of the change, one more than that of the change before.
    pub sequence: u32,
    /// When the change was due, in microseconds of Unix time.
    pub due_micros: u64,
    /// A hash of these, of the names and of the payload.
    pub sum: u64,
}

impl Mark {
    /// The mark of a change of an object.
    pub fn new(sequence: u32, due_micros: u64, namespace: &str, name: &str, payload: &str) -> Self {
        let (numbers, due) = (sequence.to_le_bytes(), due_micros.to_le_bytes());
        let sum = fingerprint(&[&numbers, &due, namespace.as_bytes(), name.as_bytes(), payload.as_bytes()]);
        Self { sequence, due_micros, sum }
    }

    /// As the annotation has it.
    pub fn text(&self) -> String {
        format!("{}.{}.{:x}", self.sequence, self.due_micros, self.sum)
    }

    /// Reads the annotation.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (sequence, due, sum) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            sequence: sequence.parse().ok()?,
            due_micros: due.parse().ok()?,
            sum: u64::from_str_radix(sum, 16).ok()?,
        })
    }
}

/// The part of an object that is looked at; what else it has is passed over.
#[derive(Debug, Default, Deserialize)]
pub struct Object<'a> {
    /// Its metadata.
    #[serde(borrow, default)]
    pub metadata: Metadata<'a>,
    /// The data of a ConfigMap.
    #[serde(borrow, default)]
    pub data: Option<Data<'a>>,
    /// The code of a `Status`.
    #[serde(default)]
    pub code: Option<u16>,
    /// The message of a `Status`.
    #[serde(borrow, default)]
    pub message: Option<Cow<'a, str>>,
}

/// Metadata, as far as it is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    /// Name.
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    /// Namespace; empty for objects that have none.
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    /// Revision, as text.
    #[serde(borrow, default)]
    pub resource_version: Cow<'a, str>,
    /// Where the next page of a list begins.
    #[serde(borrow, default, rename = "continue")]
    pub next: Cow<'a, str>,
    /// Annotations.
    #[serde(borrow, default)]
    pub annotations: Annotations<'a>,
}

/// The annotations that are looked at.
#[derive(Debug, Default, Deserialize)]
pub struct Annotations<'a> {
    /// The mark.
    #[serde(borrow, default, rename = "loadtest/mark")]
    pub mark: Option<Cow<'a, str>>,
    /// On the bookmark after what there was when a watch began (KEP-3157).
    #[serde(borrow, default, rename = "k8s.io/initial-events-end")]
    pub initial_events_end: Option<Cow<'a, str>>,
}

/// The entries of a ConfigMap that are looked at.
#[derive(Debug, Default, Deserialize)]
pub struct Data<'a> {
    /// The text that makes it as long as it is.
    #[serde(borrow, default)]
    pub payload: Option<Cow<'a, str>>,
}

/// An event of a watch.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    /// `ADDED` and so on.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// What it is about.
    #[serde(borrow)]
    pub object: Object<'a>,
}

/// What is wrong with an object as such.
pub type Fault = String;

impl Object<'_> {
    /// The object's key: a hash of namespace and name.
    pub fn key(&self) -> u64 {
        fingerprint(&[self.metadata.namespace.as_bytes(), self.metadata.name.as_bytes()])
    }

    /// Its revision.
    pub fn revision(&self) -> Result<u64, Fault> {
        let text = &self.metadata.resource_version;
        text.parse().map_err(|_| format!("{} has resourceVersion {text:?}", self.metadata.name))
    }

    /// Its mark, if it has one; wrong if it does not fit what the object is.
    pub fn mark(&self) -> Result<Option<Mark>, Fault> {
        let Some(text) = &self.metadata.annotations.mark else { return Ok(None) };
        let mark = Mark::read(text).ok_or_else(|| format!("{} has the mark {text:?}", self.metadata.name))?;
        let payload = self.data.as_ref().and_then(|data| data.payload.as_deref()).unwrap_or_default();
        let (namespace, name) = (&self.metadata.namespace, &self.metadata.name);
        if Mark::new(mark.sequence, mark.due_micros, namespace, name, payload) == mark {
            return Ok(Some(mark));
        }
        Err(format!("{namespace}/{name} does not fit its mark {text}"))
    }
}

/// The metadata of a list, out of what it has before or after its items. `None` if it is not there.
pub fn metadata_in(body: &[u8]) -> Option<(u64, String)> {
    const WORD: &[u8] = br#""metadata":"#;
    let at = memchr::memmem::find(body, WORD)? + WORD.len();
    let mut values = serde_json::Deserializer::from_slice(&body[at..]).into_iter::<Metadata<'_>>();
    let metadata = values.next()?.ok()?;
    Some((metadata.resource_version.parse().ok()?, metadata.next.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(mark: &Mark, payload: &str) -> String {
        format!(
            r#"{{"kind":"ConfigMap","metadata":{{"name":"a","namespace":"n","resourceVersion":"7","annotations":{{"x":"y","{ANNOTATION}":"{}"}}}},"data":{{"payload":"{payload}"}}}}"#,
            mark.text()
        )
    }

    #[test]
    fn marks_fit_what_they_are_on() {
        let mark = Mark::new(3, 1_000, "n", "a", "text");
        let whole = text(&mark, "text");
        let object: Object<'_> = serde_json::from_str(&whole).unwrap();
        assert_eq!(object.mark(), Ok(Some(mark)));
        assert_eq!(object.revision(), Ok(7));
        let changed = text(&mark, "test");
        assert!(serde_json::from_str::<Object<'_>>(&changed).unwrap().mark().is_err());
        let other = Mark { sequence: 4, ..mark };
        let changed = text(&other, "text");
        assert!(serde_json::from_str::<Object<'_>>(&changed).unwrap().mark().is_err());
    }

    #[test]
    fn lists_are_known_by_their_first_bytes() {
        let body = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12","continue":"x"},"items":[{"metad"#;
        assert_eq!(metadata_in(body), Some((12, "x".to_owned())));
        assert_eq!(metadata_in(br#"{"kind":"PodList"}"#), None);
    }
}
