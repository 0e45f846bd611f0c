//! The id of a request in every answer and log: header `Audit-Id`.

use std::cell::RefCell;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The header.
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Number of ids that are drawn at a time, so that they share an allocation.
const DRAWN: usize = 64;

thread_local! {
    /// Drawn ids that no request uses yet.
    static NAMES: RefCell<Bytes> = const { RefCell::new(Bytes::new()) };
}

/// Returns the id of a request: any text that its client states, else a drawn one.
pub(super) fn id(headers: &HeaderMap) -> HeaderValue {
    let stated = headers.get(AUDIT_ID).filter(|stated| !stated.is_empty());
    let mut id = stated.map_or_else(draw, HeaderValue::clone);
    // HTTP/2 keeps headers in a table because they may be sent again. This one is never sent again, and would only
    // displace others.
    id.set_sensitive(true);
    id
}

fn draw() -> HeaderValue {
    let name = NAMES.with_borrow_mut(|names| {
        if names.is_empty() {
            let mut drawn = vec![0; DRAWN * Hyphenated::LENGTH];
            for name in drawn.chunks_exact_mut(Hyphenated::LENGTH) {
                Uuid::new_v4().hyphenated().encode_lower(name);
            }
            *names = drawn.into();
        }
        names.split_to(Hyphenated::LENGTH)
    });
    HeaderValue::from_maybe_shared(name).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn drawn_ids_are_distinct_uuids() {
        let names: Vec<HeaderValue> = (0..3 * DRAWN).map(|_| id(&HeaderMap::new())).collect();
        let distinct: HashSet<Uuid> = names.iter().map(|name| name.to_str().unwrap().parse().unwrap()).collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn a_client_chooses_the_id_unless_it_sends_an_empty_one() {
        let of = |values: &[&'static str]| {
            let headers = values.iter().map(|value| (AUDIT_ID, HeaderValue::from_static(value)));
            id(&HeaderMap::from_iter(headers))
        };
        assert_eq!(of(&["abc", "def"]), "abc");
        assert_eq!(of(&["", "def"]).len(), Hyphenated::LENGTH);
    }
}
