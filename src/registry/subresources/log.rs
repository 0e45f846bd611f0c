//! `log`: passes on the output of a container.

use flotilla_proto::time::Timestamp;

use super::exec::{container, host};
use super::remote;
use super::{Connect, Connected, Pending};
use crate::field::{Errors, Path};
use crate::outbound::Trust;
use crate::prometheus::families;
use crate::request::query::Query;
use crate::status::{ApiError, ApiResult};
use crate::streams::{Destination, ForwardMode};
use crate::tables::stored_value;

/// Switches that are passed to the kubelet.
const FLAGS: [&str; 3] = ["follow", "previous", "timestamps"];
/// Numbers that are passed to the kubelet, and whether they may be zero.
const NUMBERS: [(&str, bool); 3] = [("tailLines", true), ("limitBytes", false), ("sinceSeconds", false)];

/// Serves GET of a pod's `log`. Returns nothing for a pod that has no node, since it has written nothing.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, query, .. } = request;
        let is_untrusted = query.flag("insecureSkipTLSVerifyBackend").unwrap_or(false);
        let usage = if is_untrusted { "skip_tls_allowed" } else { "enforce_tls" };
        registry.tables.metrics.meter().counter(families::LOGS, &[("usage", usage)]).increment(1);
        check(query, target.name)?;
        let pod = stored_value(&*registry.tables.get(target.served, target.namespace, target.name, None).await?)?;
        let container = container(&pod, query.text("container"))?;
        if host(&pod).is_empty() {
            return Ok(Connected::Nothing);
        }
        let kubelet = remote::kubelet(registry, host(&pod), &target.served.resource.name)?;
        let path =
            remote::kubelet_path(&["containerLogs", target.namespace, target.name, &container], parameters(query)?);
        let mut peer = kubelet.peer(&registry.kubelets, false);
        if is_untrusted && let Some(secure) = &mut peer.secure {
            secure.trust = Trust::Anybody;
        }
        let follow = query.flag("follow").unwrap_or(false);
        Ok(Connected::To(Box::new(Destination {
            peer,
            path,
            manner: ForwardMode::Log { pod: target.name.into(), follow },
        })))
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
    // The feature PodLogsQuerySplitStreams is off in 1.36: no value is allowed.
    if query.get("stream").is_some() {
        errors.forbidden(&Path::root("stream"), "may not be specified");
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("", "PodLogOptions", name, &errors.0)) }
}

/// Returns the options in the form that the kubelet takes.
fn parameters(query: &Query<'_>) -> ApiResult<Vec<(&'static str, String)>> {
    let mut all: Vec<(&str, String)> = Vec::new();
    all.extend(FLAGS.iter().filter(|flag| query.flag(flag).unwrap_or(false)).map(|flag| (*flag, "true".into())));
    for (name, _) in NUMBERS {
        all.extend(query.int(name)?.map(|number| (name, number.to_string())));
    }
    all.extend(query.get("sinceTime").map(|time| ("sinceTime", time.to_owned())));
    Ok(all)
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
        let why = "PodLogOptions \"p\" is invalid: stream: Forbidden: may not be specified";
        assert_eq!(["stream=All", "stream="].map(refusal), [why, why]);
        let passed = parameters(&Query::parse("timestamps=1&follow=true&tailLines=%2B3")).unwrap();
        assert_eq!(remote::kubelet_path(&["a"], passed), "/a?follow=true&tailLines=3&timestamps=true");
    }
}
