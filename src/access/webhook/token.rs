//! A webhook that finds the users of tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::WebhookError;
use super::asked_once::AskedOnce;
use crate::access::user::{Extra, User};
use crate::config::Config;
use crate::limits;
use crate::outbound::Outbound;
use crate::prometheus::{Meter, Raised, families};
use crate::webhooks::answers::{self, Answers, QuestionDigest};
use crate::webhooks::{Backend, Persistence, typed};

/// The API group of the reviews.
const GROUP: &str = "authentication.k8s.io";

/// The decision of the webhook about a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenAnswer {
    /// The token belongs to this user, and is issued for these of the requested audiences.
    Valid(Arc<User>, Vec<String>),
    /// The token is not valid; the webhook may say why.
    Invalid(Option<String>),
    /// The webhook could not be asked, or its answer cannot be read.
    Failed(String),
}

/// A webhook that finds the users of tokens, with its recent answers. Clones share them.
#[derive(Debug, Clone)]
pub struct TokenWebhook(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Backend,
    outbound: Outbound,
    meter: Arc<Meter>,
    /// Group and version of the reviews.
    api_version: String,
    /// The audiences of tokens for which the webhook states none.
    audiences: Vec<String>,
    /// The time for which an answer is kept.
    ttl: Duration,
    answers: Answers<TokenAnswer>,
    asked: AskedOnce<TokenAnswer>,
}

impl TokenWebhook {
    /// Reads the kubeconfig that the configuration names. `None` if it names none.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, or the version of the reviews is unknown.
    pub fn of(config: &Config, outbound: &Outbound, meter: &Arc<Meter>) -> Result<Option<Self>, WebhookError> {
        let Some(kubeconfig) = &config.authentication_token_webhook_config_file else { return Ok(None) };
        let version = &*config.authentication_token_webhook_version;
        if !matches!(version, "v1" | "v1beta1") {
            return Err(WebhookError::TokenVersion(version.to_owned()));
        }
        Ok(Some(Self(Arc::new(Inner {
            backend: Backend::read(kubeconfig)?,
            outbound: outbound.clone(),
            meter: Arc::clone(meter),
            api_version: format!("{GROUP}/{version}"),
            audiences: config.audiences().to_vec(),
            ttl: config.authentication_token_webhook_cache_ttl.0,
            answers: Answers::new(limits::TOKEN_ANSWERS),
            asked: AskedOnce::new(limits::TOKENS_ASKED_AT_ONCE),
        }))))
    }

    /// Returns the kept answer about a token and these audiences. `None` if the webhook must be asked.
    pub fn known(&self, token: &[u8], audiences: &[String]) -> Option<TokenAnswer> {
        let known = self.0.answers.get(&key(token, audiences), Instant::now())?;
        self.0.count(families::TOKEN_CACHE_REQUESTS, "hit");
        Some(known)
    }

    /// Asks the webhook about a token. Concurrent callers with the same token and audiences share one call.
    pub async fn ask(&self, token: &[u8], audiences: &[String]) -> TokenAnswer {
        let Ok(text) = std::str::from_utf8(token) else { return TokenAnswer::Invalid(None) };
        self.0.count(families::TOKEN_CACHE_REQUESTS, "miss");
        let key = key(token, audiences);
        let question = value!({
            "kind": "TokenReview", "apiVersion": (self.0.api_version.as_str()), "metadata": {},
            "spec": {"token": text, "audiences": (texts(audiences))}, "status": {"user": {}}
        });
        let (inner, audiences) = (Arc::clone(&self.0), audiences.to_vec());
        let _blocked = Raised::new(self.0.meter.gauge(families::TOKEN_FETCHES_ACTIVE, &[("status", "blocked")]));
        let answer = self.0.asked.answer(key, async move { inner.fetch(key, question, &audiences).await }).await;
        answer.unwrap_or_else(|| TokenAnswer::Failed("too many reviews of tokens are in progress".to_owned()))
    }
}

impl Inner {
    fn count(&self, family: &'static str, status: &'static str) {
        self.meter.counter(family, &[("status", status)]).increment(1);
    }

    /// Asks the webhook, and keeps its answer.
    async fn fetch(&self, key: QuestionDigest, question: Value, wanted: &[String]) -> TokenAnswer {
        let active = Raised::new(self.meter.gauge(families::TOKEN_FETCHES_ACTIVE, &[("status", "in_flight")]));
        let (ends, bytes_max) = (Some(Instant::now() + limits::REVIEW_TIMEOUT), limits::REVIEW_ANSWER_BYTES);
        let how =
            Persistence { timeout: limits::REVIEW_TIMEOUT, bytes_max, first_wait: limits::REVIEW_RETRY_PAUSE, ends };
        let answered = self.backend.ask_persistently(&self.outbound, &question, how, |_, _| ()).await;
        drop(active);
        let read = answered.map_err(|failed| failed.message).and_then(|answer| read(&answer, wanted, &self.audiences));
        self.count(families::TOKEN_FETCHES, if read.is_ok() { "ok" } else { "error" });
        match read {
            Ok((answer, bytes)) => {
                let ttl = match &answer {
                    TokenAnswer::Valid(..) => self.ttl.max(limits::TOKEN_ANSWER_LIFETIME_MIN),
                    // As in the reference, an error that the webhook states is not kept.
                    TokenAnswer::Invalid(Some(_)) | TokenAnswer::Failed(_) => Duration::ZERO,
                    TokenAnswer::Invalid(None) => self.ttl,
                };
                if bytes <= limits::REVIEW_KEPT_BYTES {
                    self.answers.keep(key, answer.clone(), Instant::now(), ttl);
                }
                answer
            }
            Err(why) => {
                tracing::error!(why, "the webhook for tokens could not be asked");
                TokenAnswer::Failed(why)
            }
        }
    }
}

fn key(token: &[u8], audiences: &[String]) -> QuestionDigest {
    let mut question = format!("{}:", token.len()).into_bytes(); // lengths keep the parts apart
    question.extend_from_slice(token);
    for audience in audiences {
        question.extend_from_slice(format!("{}:{audience}", audience.len()).as_bytes());
    }
    answers::key(&question)
}

fn texts(texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| text.as_str().into()).collect()
}

const fn text(path: &'static [&'static str], of: &'static str, called: &'static str) -> typed::TypedMember {
    typed::TypedMember { path, of, called, takes: |value| value.as_str().is_some() }
}

const fn list(path: &'static [&'static str], of: &'static str) -> typed::TypedMember {
    typed::TypedMember { path, of, called: "[]string", takes: |value| value.as_array().is_some() }
}

/// The members of an answer that matter, with their types.
const MEMBERS: [typed::TypedMember; 10] = [
    typed::TypedMember {
        path: &["status", "authenticated"],
        of: "TokenReviewStatus",
        called: "bool",
        takes: |value| value.as_bool().is_some(),
    },
    text(&["status", "error"], "TokenReviewStatus", "string"),
    list(&["status", "audiences"], "TokenReviewStatus"),
    text(&["status", "audiences", "[]"], "TokenReviewStatus", "string"),
    text(&["status", "user", "username"], "UserInfo", "string"),
    text(&["status", "user", "uid"], "UserInfo", "string"),
    list(&["status", "user", "groups"], "UserInfo"),
    text(&["status", "user", "groups", "[]"], "UserInfo", "string"),
    typed::TypedMember {
        path: &["status", "user", "extra"],
        of: "UserInfo",
        called: "map[string]v1.ExtraValue",
        takes: |value| value.as_object().is_some(),
    },
    typed::TypedMember {
        path: &["status", "user", "extra", "{}"],
        of: "UserInfo",
        called: "v1.ExtraValue",
        takes: |value| value.as_array().is_some_and(|all| all.iter().all(|one| one.as_str().is_some())),
    },
];

/// Reads an answer. Also returns how many bytes it takes in memory, approximately. `wanted` are the requested
/// audiences, `own` those of the API.
fn read(answer: &Value, wanted: &[String], own: &[String]) -> Result<(TokenAnswer, usize), String> {
    typed::check(answer, &MEMBERS)?;
    let status = answer.at(&["status"]);
    let strings = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let stated = strings(status.at(&["audiences"]));
    let meant = if stated.is_empty() { own } else { &stated };
    let audiences: Vec<String> = wanted.iter().filter(|wanted| meant.contains(wanted)).cloned().collect();
    if audiences.is_empty() {
        return Ok((TokenAnswer::Invalid(None), 0));
    }
    if status.at(&["authenticated"]).as_bool() != Some(true) {
        let why = Some(status.str_at(&["error"])).filter(|why| !why.is_empty()).map(str::to_owned);
        return Ok((TokenAnswer::Invalid(why), 0));
    }
    let user = status.at(&["user"]);
    let extra = user.map_at(&["extra"]).into_iter().flat_map(Map::iter);
    let extra: Extra = extra.map(|(key, values)| (key.to_owned(), strings(values))).collect();
    let user = User {
        name: user.str_at(&["username"]).into(),
        uid: user.str_at(&["uid"]).into(),
        groups: strings(user.at(&["groups"])).into_iter().map(Into::into).collect(),
        extra,
    };
    let bytes = user.name.len()
        + user.uid.len()
        + user.groups.iter().map(|group| group.len() + 24).sum::<usize>()
        + user
            .extra
            .iter()
            .flat_map(|(key, values)| values.iter().chain([key]))
            .map(|text| text.len() + 24)
            .sum::<usize>();
    Ok((TokenAnswer::Valid(Arc::new(user.authenticated()), audiences), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: Value) -> Result<TokenAnswer, String> {
        let (wanted, own) = (["api".to_owned(), "vault".to_owned()], ["api".to_owned()]);
        read(&value!({"status": status}), &wanted, &own).map(|(answer, _)| answer)
    }

    #[test]
    fn answers_are_read() {
        let user = value!({"username": "ann", "uid": "7", "groups": ["g"], "extra": {"k": ["v", "w"]}});
        let TokenAnswer::Valid(found, audiences) =
            said(value!({"authenticated": true, "user": (user.clone())})).unwrap()
        else {
            panic!("the token is valid");
        };
        assert_eq!((found.name.as_str(), found.uid.as_str(), &*audiences), ("ann", "7", &["api".to_owned()][..]));
        assert_eq!(found.groups, ["g", "system:authenticated"]);
        assert_eq!(found.extra["k"], ["v", "w"]);
        let meant = said(value!({"authenticated": true, "user": (user.clone()), "audiences": ["vault", "x"]}));
        assert!(matches!(meant, Ok(TokenAnswer::Valid(_, audiences)) if audiences == ["vault"]));
        let other = said(value!({"authenticated": true, "user": user, "audiences": ["x"]}));
        assert_eq!(other, Ok(TokenAnswer::Invalid(None)));
        assert_eq!(said(value!({"error": "no"})), Ok(TokenAnswer::Invalid(Some("no".into()))));
        assert_eq!(said(Value::Null), Ok(TokenAnswer::Invalid(None)));
        let why = "json: cannot unmarshal number into Go struct field UserInfo.status.user.username of type string";
        assert_eq!(said(value!({"authenticated": true, "user": {"username": 1}})), Err(why.into()));
    }

    #[test]
    fn tokens_and_audiences_are_kept_apart() {
        let key = |token: &str, audiences: &[&str]| {
            key(token.as_bytes(), &audiences.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        let keys = [
            key("t", &[]),
            key("t", &["a"]),
            key("t", &["a", "b"]),
            key("t", &["a1:b"]),
            key("t1:a", &["b"]),
            key("u", &["a"]),
        ];
        assert!((0..keys.len()).all(|one| (0..one).all(|other| keys[one] != keys[other])));
        assert_eq!(key("t", &["a"]), keys[1]);
    }
}
