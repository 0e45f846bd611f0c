//! Compares two answers.

use super::json::Json;

/// The largest number of characters of a value that a difference shows.
const SHOWN_MAX: usize = 300;
/// The largest number of characters of a `description` that must be equal. A longer one is an explanation.
const NAME_MAX: usize = 30;

/// An answer: the compared parts of its status, headers and body.
#[derive(Debug)]
pub struct Seen {
    pub step: usize,
    pub request: String,
    pub status: i64,
    pub headers: Json,
    pub body: Json,
}

impl Seen {
    /// Reads an answer of a recording. Returns `None` if the document has another form.
    pub fn recorded(document: &Json) -> Option<Seen> {
        let int =
            |key| if let Some(Json::Int(number)) = document.get(key) { i64::try_from(*number).ok() } else { None };
        Some(Seen {
            step: usize::try_from(int("step")?).ok()?,
            request: document.get("request")?.as_str()?.to_owned(),
            status: int("status")?,
            headers: document.get("headers")?.clone(),
            body: document.get("body")?.clone(),
        })
    }

    /// Removes the explanations of an OpenAPI document, because each server has its own.
    pub fn without_prose(self) -> Seen {
        Seen { headers: undescribed(self.headers), body: undescribed(self.body), ..self }
    }

    /// Returns the differences from the recorded answer.
    pub fn differences(&self, recorded: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        if self.status != recorded.status {
            found.push(format!(".status: {}, want {}", self.status, recorded.status));
        }
        compare(&recorded.headers, &self.headers, ".headers", &mut found);
        compare(&recorded.body, &self.body, ".body", &mut found);
        found
    }
}

fn compare(want: &Json, got: &Json, path: &str, found: &mut Vec<String>) {
    match (want, got) {
        (Json::Map(wanted), Json::Map(members)) => {
            for (key, value) in wanted {
                match got.get(key) {
                    Some(present) => compare(value, present, &format!("{path}.{key}"), found),
                    None => found.push(format!("{path}.{key}: missing, want {}", shown(value))),
                }
            }
            for (key, value) in members.iter().filter(|(key, _)| want.get(key).is_none()) {
                found.push(format!("{path}.{key}: unexpected {}", shown(value)));
            }
        }
        (Json::List(wanted), Json::List(items)) => {
            if wanted.len() != items.len() {
                found.push(format!("{path}: {} elements, want {}", items.len(), wanted.len()));
            }
            for (index, (want, got)) in wanted.iter().zip(items).enumerate() {
                compare(want, got, &format!("{path}[{index}]"), found);
            }
        }
        _ if want == got || is_explanation(want, got, path) => {}
        _ => found.push(format!("{path}: {}, want {}", shown(got), shown(want))),
    }
}

/// Returns whether `want` is an explanation, and `got` is a text that is not empty. Each server explains in its own
/// words, so such texts agree.
fn is_explanation(want: &Json, got: &Json, path: &str) -> bool {
    let (Json::Text(want), Json::Text(got)) = (want, got) else { return false };
    let is_long = || want.chars().count() > NAME_MAX;
    path.ends_with("description") && !got.is_empty() && (path.contains("columnDefinitions[") || is_long())
}

fn undescribed(value: Json) -> Json {
    match value {
        Json::Map(members) => {
            let kept = members.into_iter().filter(|(key, value)| key != "description" || value.as_str().is_none());
            Json::Map(kept.map(|(key, value)| (key, undescribed(value))).collect())
        }
        Json::List(items) => Json::List(items.into_iter().map(undescribed).collect()),
        other => other,
    }
}

fn shown(value: &Json) -> String {
    let text = value.dump();
    if text.len() < SHOWN_MAX { text } else { format!("{}...", &text[..SHOWN_MAX - 3]) }
}
