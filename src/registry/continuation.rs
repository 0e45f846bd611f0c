//! Continue tokens: the place where the next page of a list begins (API concepts, "Retrieving large results sets in
//! chunks").

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flotilla_cluster::Revision;
use flotilla_proto::{json, value};

use crate::status::{ApiError, ApiResult};

/// The encoding of tokens. They are read as leniently as the reference reads its own.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Version of continue tokens.
const TOKEN_VERSION: &str = "flotilla/v1";

/// The position at which the next page of a list begins. Opaque to clients: base64 of JSON.
///
/// A table of several shards is listed in key order, and therefore every shard continues behind the last key that was
/// sent. This holds for any division into shards. A token thus survives a change of the shard map. `epoch` tells tokens
/// from before and after such a change apart.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) table: String,
    /// Epoch of the shard map when the page was made.
    pub(super) epoch: u64,
    /// The revision of the list. `None` for a list that continues without a consistent view.
    pub(super) revision: Option<Revision>,
    /// The key of the last object that was sent.
    pub(super) after: String,
    /// The number of objects sent so far.
    pub(super) seen: u64,
}

impl Token {
    pub(super) fn read(text: &str) -> ApiResult<Self> {
        let bad =
            |why: String| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let padless = text.trim_end_matches('=');
        let bytes = BASE64.decode(padless).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                _ => padless.len() / 4 * 4,
            };
            bad(format!("illegal base64 data at input byte {at}"))
        })?;
        let parsed = json::parse(&bytes).map_err(|error| bad(error.to_string()))?;
        let version = parsed.str_at(&["v"]);
        if version != TOKEN_VERSION {
            return Err(bad(format!("server does not recognize this encoded version {version}")));
        }
        let after = parsed.str_at(&["k"]).to_owned();
        let revision = parsed.int_at(&["rv"]).and_then(|revision| u64::try_from(revision).ok());
        if after.is_empty() {
            return Err(bad("it names no place to go on".into()));
        }
        Ok(Self {
            table: parsed.str_at(&["t"]).to_owned(),
            revision: revision.map(Revision::new),
            after,
            epoch: parsed.int_at(&["e"]).and_then(|epoch| u64::try_from(epoch).ok()).unwrap_or(0),
            seen: parsed.int_at(&["n"]).and_then(|seen| u64::try_from(seen).ok()).unwrap_or(0),
        })
    }

    pub(super) fn write(&self) -> String {
        let mut token = value!({"v": TOKEN_VERSION, "t": (self.table.as_str()), "k": (self.after.as_str())});
        token.set_at(&["e"], self.epoch as i64);
        token.set_at(&["n"], self.seen as i64);
        if let Some(revision) = self.revision {
            token.set_at(&["rv"], revision.get() as i64);
        }
        BASE64.encode(json::to_vec(&token))
    }

    /// Returns 410 with a token by which the client may continue without a consistent view.
    pub(super) fn expired(&self) -> ApiError {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        let next = Self { revision: None, ..self.clone() }.write();
        ExpiredToken { message, next }.into()
    }
}

struct ExpiredToken {
    message: &'static str,
    next: String,
}

impl From<ExpiredToken> for ApiError {
    fn from(token: ExpiredToken) -> Self {
        ApiError { list_continue: Some(token.next), ..ApiError::expired(token.message) }
    }
}
