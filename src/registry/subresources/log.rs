//! `log`: what a container wrote.

use flotilla_proto::time::Timestamp;

use super::exec::{container, host};
use super::remote;
use super::{Connect, Connected, Pending};
use crate::field::{Errors, Path};
use crate::gateway::query::Query;
use crate::outbound::dial;
use crate::registry::stored_value;
use crate::status::{ApiError, ApiResult};

/// Switches that are passed on to the kubelet.
const FLAGS: [&str; 4] = ["follow", "insecureSkipTLSVerifyBackend", "previous", "timestamps"];
/// Numbers that are passed on, and whether they may be zero.
const NUMBERS: [(&str, bool); 3] = [("tailLines", true), ("limitBytes", false), ("sinceSeconds", false)];

/// GET of a pod's `log`. Pods without a node have written nothing.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, query, .. } = request;
        check(query, target.name)?;
        let pod = stored_value(&*registry.get(target.served, target.namespace, target.name, None).await?)?;
        let container = container(&pod, query.text("container"))?;
        if host(&pod).is_empty() {
            return Ok(Connected::Nothing);
        }
        let kubelet = remote::kubelet(registry, host(&pod), &target.served.resource.name)?;
        match dial(&kubelet.host, kubelet.port, false).await {
            Ok(_) => Err(remote::not_spoken("logs")),
            Err(why) => {
                let (host, port) = (&kubelet.host, kubelet.port);
                let path = format!("containerLogs/{}/{}/{container}", target.namespace, target.name);
                let parameters = parameters(query);
                Err(ApiError::unknown(format!("Get \"https://{host}:{port}/{path}{parameters}\": {why}")))
            }
        }
    })
}

/// Checks the options (PodLogOptions).
fn check(query: &Query<'_>, name: &str) -> ApiResult<()> {
    let mut errors = Errors::default();
    for (parameter, zero) in NUMBERS {
        let Some(number) = query.int(parameter)? else { continue };
        let path = Path::root(parameter);
        if zero && number < 0 {
            errors.invalid(&path, &number.into(), "must be greater than or equal to 0");
        } else if !zero && number < 1 {
            errors.invalid(&path, &number.into(), "must be greater than 0");
        }
    }
    if let Some(since) = query.get("sinceTime") {
        Timestamp::parse(since).map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    if query.get("sinceTime").is_some() && query.get("sinceSeconds").is_some() {
        errors.forbidden(&Path::root("[]"), "at most one of `sinceTime` or `sinceSeconds` may be specified");
    }
    if query.get("stream").is_some_and(|stream| stream != "All") {
        errors.forbidden(&Path::root("stream"), "may not be specified");
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("", "PodLogOptions", name, &errors.0)) }
}

/// The options as the kubelet takes them.
fn parameters(query: &Query<'_>) -> String {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for flag in FLAGS {
        if query.flag(flag).unwrap_or(false) && flag != "insecureSkipTLSVerifyBackend" {
            all.push((flag, "true"));
        }
    }
    for name in ["limitBytes", "sinceSeconds", "sinceTime", "tailLines"] {
        all.extend(query.get(name).map(|value| (name, value)));
    }
    all.sort_unstable();
    let escape =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let pairs: Vec<String> = all.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(query: &str) -> String {
        check(&Query::parse(query), "p").unwrap_err().message
    }

    #[test]
    fn options() {
        assert!(check(&Query::parse("tailLines=0&limitBytes=1&follow=true"), "p").is_ok());
        assert_eq!(
            refusal("tailLines=-1"),
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"
        );
        let why = r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#;
        assert_eq!(refusal("sinceTime=x"), why);
        assert_eq!(refusal("tailLines=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        assert_eq!(
            refusal("sinceSeconds=5&sinceTime=2024-01-01T00:00:00Z"),
            "PodLogOptions \"p\" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        );
        assert_eq!(
            parameters(&Query::parse("timestamps=1&follow=true&tailLines=3")),
            "?follow=true&tailLines=3&timestamps=true"
        );
        assert_eq!(parameters(&Query::parse("")), "");
    }
}
