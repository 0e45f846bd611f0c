//! Negotiates the representation of an answer (API concepts, "Alternate representations of resources").

use crate::status::{ApiError, ApiResult};

/// Encodings of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Media {
    /// All encodings, in the order in which the server prefers them.
    pub const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// Returns the media type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|media| media.name() == name)
    }
}

/// The form in which an object is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The object itself.
    Object,
    /// `PartialObjectMetadata`, or its list.
    Metadata {
        /// Version of `meta.k8s.io`.
        version: &'static str,
        /// Whether the client asked for a list.
        list: bool,
    },
    /// `Table`.
    Table {
        /// Version of `meta.k8s.io`.
        version: &'static str,
    },
}

/// A negotiated representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Representation {
    /// Encoding.
    pub media: Media,
    /// Form.
    pub form: Form,
    /// Whether JSON is indented.
    pub pretty: bool,
}

/// The representations that a route offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Objects, in every form.
    Objects,
    /// Objects, in every form but Tables.
    Untabled,
    /// Objects in every form, or a stream of events: for collections.
    Collection,
    /// Bodies with only one form, such as a `Status`.
    Plain,
    /// The same as `Plain`, for answers without a route that states its media types.
    Unrouted,
}

struct Clause<'a> {
    media: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Returns the clauses of an Accept header, best first; clauses of equal quality keep their order.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept
        .split(',')
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or("");
            let mut quality = 1.0;
            let mut parameters = Vec::new();
            for (key, value) in parts.filter_map(|part| part.split_once('=')) {
                let (key, value) = (key.trim(), value.trim());
                if key == "q" {
                    quality = value.parse().unwrap_or(1.0);
                } else {
                    parameters.push((key, value));
                }
            }
            Clause { media, quality, parameters }
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// Chooses a representation, or refuses with 406.
pub fn negotiate(accept: &str, offer: Offer, pretty: bool) -> ApiResult<Representation> {
    choose(accept, offer, pretty, false)
}

/// Does the same as [`negotiate`] for custom resources, whose routes do not state media types. They have no protobuf
/// encoding, except in another form such as a Table.
pub fn negotiate_custom(accept: &str, offer: Offer, pretty: bool) -> ApiResult<Representation> {
    choose(accept, offer, pretty, true)
}

fn choose(accept: &str, offer: Offer, pretty: bool, is_custom: bool) -> ApiResult<Representation> {
    let plain = Representation { media: Media::Json, form: Form::Object, pretty };
    if matches!(accept, "" | "application/json" | "*/*") {
        return Ok(plain);
    }
    if !accept.split(',').any(|clause| {
        let media = clause.split(';').next().unwrap_or("").trim();
        media == "*/*" || Media::named(media).is_some()
    }) {
        return Err(if offer == Offer::Unrouted || is_custom { none_accepted() } else { not_acceptable(offer) });
    }
    for clause in clauses(accept) {
        let media = if clause.media == "*/*" { Some(Media::Json) } else { Media::named(clause.media) };
        let Some(media) = media else { continue };
        let chosen = representation(media, &clause.parameters, offer, pretty);
        let fits = |of: &Representation| !is_custom || of.media != Media::Protobuf || of.form != Form::Object;
        if let Some(chosen) = chosen.filter(fits) {
            return Ok(chosen);
        }
    }
    Err(none_accepted())
}

/// Returns 406 with all media types that the server can send.
fn none_accepted() -> ApiError {
    let names: Vec<&str> = Media::ALL.iter().map(|media| media.name()).collect();
    let message = format!("only the following media types are accepted: {}", names.join(", "));
    ApiError::new(406, "NotAcceptable", message)
}

/// Returns the representation that a clause's parameters ask for. Returns `None` if the route does not offer it.
fn representation(media: Media, parameters: &[(&str, &str)], offer: Offer, pretty: bool) -> Option<Representation> {
    let get = |key: &str| parameters.iter().find(|(k, _)| *k == key).map(|(_, value)| *value);
    let form = match ["as", "g", "v"].map(get) {
        [None, None, None] => Form::Object,
        _ if matches!(offer, Offer::Plain | Offer::Unrouted) => return None,
        [Some(kind), Some("meta.k8s.io"), Some(version)] => {
            let version = ["v1", "v1beta1"].into_iter().find(|known| *known == version)?;
            match kind {
                "Table" if media != Media::Protobuf && offer != Offer::Untabled => Form::Table { version },
                "PartialObjectMetadata" => Form::Metadata { version, list: false },
                "PartialObjectMetadataList" => Form::Metadata { version, list: true },
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Representation { media, form, pretty: pretty || get("pretty") == Some("1") })
}

fn not_acceptable(offer: Offer) -> ApiError {
    let mut names: Vec<&str> = Media::ALL.iter().map(|media| media.name()).collect();
    if offer == Offer::Collection {
        names.extend(["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]);
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", names.join(", "));
    ApiError { details: Some(Box::default()), ..ApiError::new(406, "NotAcceptable", message) }
}

/// Returns whether JSON is indented if the Accept header does not state it. The query decides. Without a value in the
/// query, JSON is indented for browsers, curl and Wget, which people use.
pub fn wants_pretty(query: Option<&str>, user_agent: &str) -> bool {
    match query {
        Some(text) if !text.is_empty() => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        _ => ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| user_agent.starts_with(tool)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(accept: &str) -> Result<(Media, Form), u16> {
        negotiate(accept, Offer::Objects, false).map(|r| (r.media, r.form)).map_err(|e| e.code)
    }

    #[test]
    fn accept_headers_are_negotiated_as_in_the_reference() {
        let table = Form::Table { version: "v1" };
        for (accept, want) in [
            ("", Ok((Media::Json, Form::Object))),
            ("*/*", Ok((Media::Json, Form::Object))),
            ("application/*", Err(406)),
            ("APPLICATION/JSON", Err(406)),
            ("text/html,*/*;q=0.8", Ok((Media::Json, Form::Object))),
            ("application/json;q=0.1,application/yaml;q=0.9", Ok((Media::Yaml, Form::Object))),
            ("application/json;q=0", Ok((Media::Json, Form::Object))),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Ok((Media::Json, table))),
            ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Ok((Media::Json, Form::Object))),
            ("application/json;as=Nothing", Err(406)),
            ("application/json;v=v1", Err(406)),
            ("application/json;g=meta.k8s.io, application/yaml", Ok((Media::Yaml, Form::Object))),
        ] {
            assert_eq!(chosen(accept), want, "{accept}");
        }
    }

    #[test]
    fn custom_resources_have_no_messages_and_no_routes() {
        let chosen = |accept: &str| {
            let chosen = negotiate_custom(accept, Offer::Objects, false);
            chosen.map(|chosen| chosen.media).map_err(|error| error.message)
        };
        let protobuf = "application/vnd.kubernetes.protobuf";
        assert!(chosen(protobuf).unwrap_err().starts_with("only "));
        assert!(chosen("text/plain").unwrap_err().starts_with("only "));
        assert_eq!(chosen(&format!("{protobuf},application/json")), Ok(Media::Json));
        let partial = format!("{protobuf};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        assert_eq!(chosen(&partial), Ok(Media::Protobuf));
    }

    #[test]
    fn a_resource_without_columns_has_every_form_but_tables() {
        let form = |kind: &str| {
            let accept = format!("application/json;as={kind};v=v1;g=meta.k8s.io");
            negotiate(&accept, Offer::Untabled, false).map(|chosen| chosen.form).map_err(|error| error.code)
        };
        assert_eq!(form("Table"), Err(406));
        assert_eq!(form("PartialObjectMetadata"), Ok(Form::Metadata { version: "v1", list: false }));
    }

    #[test]
    fn routes_with_one_form_ignore_accept_clauses_for_others() {
        let as_table = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
        assert!(negotiate(as_table, Offer::Plain, false).is_err());
        let said = |offer| negotiate("text/html", offer, false).unwrap_err().message;
        assert!(said(Offer::Plain).starts_with("406: ") && said(Offer::Unrouted).starts_with("only "));
        let either = format!("{as_table},application/vnd.kubernetes.protobuf");
        assert_eq!(negotiate(&either, Offer::Plain, false).unwrap().media, Media::Protobuf);
    }
}
