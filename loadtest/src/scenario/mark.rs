//! Marks in the harness's objects, by which watches and reads are checked.

use std::borrow::Cow;

use serde::Deserialize;

use crate::numbers::fingerprint;

/// The annotation that contains the mark.
pub const ANNOTATION: &str = "loadtest/mark";

/// A mark: the number of the object's change, when that change was due, and a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The number of the change. It rises by one with each change of the object.
    pub sequence: u32,
    /// When the change was due, in microseconds of Unix time.
    pub due_micros: u64,
    /// A hash of the two numbers, the object's namespace and name, and its payload.
    pub sum: u64,
}

impl Mark {
    /// Makes the mark of an object's change.
    pub fn new(sequence: u32, due_micros: u64, namespace: &str, name: &str, payload: &str) -> Self {
        let (numbers, due) = (sequence.to_le_bytes(), due_micros.to_le_bytes());
        let sum = fingerprint(&[&numbers, &due, namespace.as_bytes(), name.as_bytes(), payload.as_bytes()]);
        Self { sequence, due_micros, sum }
    }

    /// Returns the annotation's text.
    pub fn text(&self) -> String {
        format!("{}.{}.{:x}", self.sequence, self.due_micros, self.sum)
    }

    /// Parses the annotation's text.
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

/// The part of an object that is checked. Other fields are skipped.
#[derive(Debug, Default, Deserialize)]
pub struct Object<'a> {
    /// The metadata.
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

/// The part of the metadata that is checked.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    /// The name.
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    /// The namespace. Empty for an object without one.
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    /// The revision, as text.
    #[serde(borrow, default)]
    pub resource_version: Cow<'a, str>,
    /// The token of a list's next page.
    #[serde(borrow, default, rename = "continue")]
    pub next: Cow<'a, str>,
    /// The annotations.
    #[serde(borrow, default)]
    pub annotations: Annotations<'a>,
}

/// The annotations that are checked.
#[derive(Debug, Default, Deserialize)]
pub struct Annotations<'a> {
    /// The mark.
    #[serde(borrow, default, rename = "loadtest/mark")]
    pub mark: Option<Cow<'a, str>>,
    /// Present on the bookmark that ends the initial events of a watch (KEP-3157).
    #[serde(borrow, default, rename = "k8s.io/initial-events-end")]
    pub initial_events_end: Option<Cow<'a, str>>,
}

/// The entries of a ConfigMap that are checked.
#[derive(Debug, Default, Deserialize)]
pub struct Data<'a> {
    /// The text that gives the object its size.
    #[serde(borrow, default)]
    pub payload: Option<Cow<'a, str>>,
}

/// An event of a watch.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    /// The type, for instance `ADDED`.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The object of the event.
    #[serde(borrow)]
    pub object: Object<'a>,
}

/// A description of the fault of an object.
pub type Fault = String;

impl Object<'_> {
    /// Returns the object's key: a hash of its namespace and name.
    pub fn key(&self) -> u64 {
        fingerprint(&[self.metadata.namespace.as_bytes(), self.metadata.name.as_bytes()])
    }

    /// Returns the object's revision.
    pub fn revision(&self) -> Result<u64, Fault> {
        let text = &self.metadata.resource_version;
        text.parse().map_err(|_| format!("{} has resourceVersion {text:?}", self.metadata.name))
    }

    /// Returns the object's mark, if it has one.
    ///
    /// # Errors
    /// Fails if the mark is malformed, or does not match the object.
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

/// Returns the revision and the continue token in a part of a list. `None` if the part does not contain the metadata.
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
    fn marks_match_their_objects() {
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
