//! Converts flags of kube-apiserver to the options of this server.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use flotilla_golang::strconv;

use super::parse::{Misuse, ParsedFlags};
use super::table::{Flag, FlagEffect};
use super::{gates, value};
use crate::admission::{Presence, chain};
use crate::enablement::Enablement;

/// The default directory of certificates that kube-apiserver creates.
const CERT_DIR: &str = "/var/run/kubernetes";
/// The default range of addresses for Services.
const SERVICE_RANGE: &str = "10.0.0.0/24";
/// Name of the data directory inside the directory of certificates.
const DATA_DIR: &str = "flotilla";

/// The command line of the server to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Translation {
    /// The flags of `flotilla serve` that have the effect of the given ones.
    pub arguments: Vec<String>,
    /// The first lines of the log.
    pub log_lines: Vec<String>,
}

/// Translates a command line.
///
/// # Errors
/// If a flag would be dangerous to ignore, or kube-apiserver refuses it as well.
pub fn translate(given: &ParsedFlags) -> Result<Translation, Misuse> {
    let mut wrong = Vec::new();
    let mut to = Translation::default();
    for (flag, values) in given.flags() {
        judge(flag, values, &mut to, &mut wrong);
    }
    match gates::check(given.all("feature-gates")) {
        Ok(others) if others.is_empty() => {}
        Ok(others) => to.log_lines.push(format!("--feature-gates={}: features are as by default", others.join(","))),
        Err(why) => wrong.push(why),
    }
    apis(given, &mut to, &mut wrong);
    modes(given, &mut to, &mut wrong);
    plugins_of(given, &mut to, &mut wrong);
    listening(given, &mut to, &mut wrong);
    same(given, &mut to);
    if !wrong.is_empty() {
        let all = wrong.join(", ");
        return Err(Misuse(if wrong.len() == 1 { all } else { format!("[{all}]") }));
    }
    places(given, &mut to);
    logging(given, &mut to);
    if given.all("embedded-controllers").is_empty() {
        to.set("embedded-controllers", "false");
    }
    Ok(to)
}

impl Translation {
    fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.arguments.push(format!("--{name}={value}"));
    }
}

/// Decides about a flag without effect here: logs it, or refuses it.
fn judge(flag: &Flag, values: &[String], to: &mut Translation, wrong: &mut Vec<String>) {
    let asks = values.iter().any(|value| !value.is_empty() && value != flag.default);
    match flag.effect {
        FlagEffect::Logged(why) if asks => to.log_lines.push(format!("--{}={}: {why}", flag.name, values.join(","))),
        FlagEffect::Refused(why) if asks => wrong.push(format!("--{} cannot be used: {why}", flag.name)),
        _ => {}
    }
}

/// Translates the flags about served APIs and privileged pods.
fn apis(given: &ParsedFlags, to: &mut Translation, wrong: &mut Vec<String>) {
    match given.all("runtime-config").join(",").parse::<Enablement>() {
        Ok(enablement) => {
            for key in enablement.absent() {
                let why =
                    "this server does not have it; Kubernetes 1.36 serves it only with a feature gate, or not at all";
                to.log_lines.push(format!("--runtime-config={key}: {why}"));
            }
            let fair = given.one("enable-priority-and-fairness") != Some("false");
            if let Some(key) = enablement.takes_priorities().filter(|_| fair) {
                let with = "conflicts with --enable-priority-and-fairness=true";
                wrong.push(format!("--runtime-config={key}=false {with}"));
            }
            to.set("runtime-config", enablement);
        }
        Err(why) => wrong.push(why.to_string()),
    }
    to.set("allow-privileged", given.is("allow-privileged"));
}

/// The flags that must not be given beside `--authorization-config`.
const BY_FLAGS: [&str; 5] = [
    "authorization-mode",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
];

/// Translates the authorization modes.
fn modes(given: &ParsedFlags, to: &mut Translation, wrong: &mut Vec<String>) {
    let modes = given.all("authorization-mode");
    let is_stated = |flag: &str| given.one(flag).is_some_and(|file| !file.is_empty());
    if is_stated("authorization-config") {
        if BY_FLAGS.iter().any(|flag| !given.all(flag).is_empty()) {
            let with = "--authorization-mode or --authorization-webhook-* flags are defined";
            wrong.push(format!("--authorization-config can not be specified when {with}"));
        }
        return;
    }
    let (webhook, policies) = (is_stated("authorization-webhook-config-file"), is_stated("authorization-policy-file"));
    for mode in modes {
        match mode.as_str() {
            "Webhook" if !webhook => {
                wrong.push("authorization-mode Webhook's authorization config file not passed".to_owned());
            }
            "ABAC" if !policies => {
                wrong.push("authorization-mode ABAC's authorization policy file not passed".to_owned())
            }
            "ABAC" | "AlwaysAllow" | "AlwaysDeny" | "Node" | "RBAC" | "Webhook" => {}
            _ => wrong.push(format!("authorization-mode {} is not a valid mode", strconv::quote(mode))),
        }
    }
    if policies && !modes.iter().any(|mode| mode == "ABAC") {
        wrong.push("cannot specify --authorization-policy-file without mode ABAC".to_owned());
    }
    if webhook && !modes.iter().any(|mode| mode == "Webhook") {
        wrong.push("cannot specify --authorization-webhook-config-file without mode Webhook".to_owned());
    }
    if modes.iter().collect::<BTreeSet<_>>().len() < modes.len() {
        wrong.push(format!("authorization-mode [{}] has mode specified more than once", quoted(modes)));
    }
    let all = String::from("AlwaysAllow");
    let modes = if modes.is_empty() { std::slice::from_ref(&all) } else { modes };
    to.set("authorization-mode", modes.join(","));
    let anonymous = given.one("anonymous-auth") != Some("false");
    if anonymous && modes.contains(&all) {
        to.log_lines.push(
            "everybody may do everything (--authorization-mode=AlwaysAllow): requests without credentials are refused"
                .to_owned(),
        );
    }
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| strconv::quote(text)).collect::<Vec<_>>().join(" ")
}

/// Translates the flags about admission plugins.
fn plugins_of(given: &ParsedFlags, to: &mut Translation, wrong: &mut Vec<String>) {
    let (on, off) = (given.all("enable-admission-plugins"), given.all("disable-admission-plugins"));
    for (flag, names) in [("enable-admission-plugins", on), ("disable-admission-plugins", off)] {
        for name in names.iter().filter(|name| chain::find(name).is_none()) {
            wrong.push(format!("{flag} plugin {} is unknown", strconv::quote(name)));
        }
    }
    let both: Vec<String> = on.iter().filter(|name| off.contains(name)).cloned().collect();
    if !both.is_empty() {
        let both = quoted(&both);
        wrong.push(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
    }
    for name in off {
        if chain::find(name) == Some(Presence::Always) {
            to.log_lines.push(format!("--disable-admission-plugins={name}: the plugin cannot be disabled"));
        }
    }
    for (flag, names) in [("enable-admission-plugins", on), ("disable-admission-plugins", off)] {
        if !names.is_empty() {
            to.set(flag, names.join(","));
        }
    }
}

/// Translates the flags about listening.
fn listening(given: &ParsedFlags, to: &mut Translation, wrong: &mut Vec<String>) {
    let address = given.one("bind-address").and_then(|address| address.parse().ok());
    let address: IpAddr = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let port = given.one("secure-port").map_or(Ok(6443), |port| port.parse::<u16>().map_err(|_| port));
    match port {
        Ok(port) if port > 0 => to.set("listen", std::net::SocketAddr::new(address, port)),
        _ => {
            let port = given.one("secure-port").unwrap_or_default();
            wrong.push(format!(
                "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
            ));
        }
    }
    if given.all("service-cluster-ip-range").is_empty() {
        to.log_lines.push(format!("no --service-cluster-ip-range is given: Services get addresses of {SERVICE_RANGE}"));
        to.set("service-cluster-ip-range", SERVICE_RANGE);
    }
}

/// Flags whose options here have the same name and take the same values.
const SAME: [&str; 97] = [
    "admission-control-config-file",
    "advertise-address",
    "audit-log-batch-buffer-size",
    "audit-log-batch-max-size",
    "audit-log-batch-max-wait",
    "audit-log-batch-throttle-burst",
    "audit-log-batch-throttle-enable",
    "audit-log-batch-throttle-qps",
    "audit-log-compress",
    "audit-log-format",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "audit-log-mode",
    "audit-log-path",
    "audit-log-truncate-enabled",
    "audit-log-truncate-max-batch-size",
    "audit-log-truncate-max-event-size",
    "audit-log-version",
    "audit-policy-file",
    "audit-webhook-batch-buffer-size",
    "audit-webhook-batch-max-size",
    "audit-webhook-batch-max-wait",
    "audit-webhook-batch-throttle-burst",
    "audit-webhook-batch-throttle-enable",
    "audit-webhook-batch-throttle-qps",
    "audit-webhook-config-file",
    "audit-webhook-initial-backoff",
    "audit-webhook-mode",
    "audit-webhook-truncate-enabled",
    "audit-webhook-truncate-max-batch-size",
    "audit-webhook-truncate-max-event-size",
    "audit-webhook-version",
    "anonymous-auth",
    "authentication-config",
    "authentication-token-webhook-cache-ttl",
    "authentication-token-webhook-config-file",
    "authentication-token-webhook-version",
    "authorization-config",
    "authorization-policy-file",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "client-ca-file",
    "config",
    "data-dir",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "disable-http2-serving",
    "egress-selector-config-file",
    "embedded-controllers",
    "enable-aggregator-routing",
    "enable-bootstrap-token-auth",
    "enable-priority-and-fairness",
    "encryption-provider-config",
    "end-with-parent",
    "endpoint-reconciler-type",
    "goaway-chance",
    "groups",
    "history-bytes",
    "history-seconds",
    "initial-cluster",
    "initial-cluster-size",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "min-request-timeout",
    "name",
    "oidc-ca-file",
    "oidc-client-id",
    "oidc-groups-claim",
    "oidc-groups-prefix",
    "oidc-issuer-url",
    "oidc-username-claim",
    "oidc-username-prefix",
    "peer-advertise",
    "peer-listen",
    "pki-dir",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "requestheader-client-ca-file",
    "service-account-extend-token-expiration",
    "service-account-jwks-uri",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "service-node-port-range",
    "shards",
    "shutdown-grace-seconds",
    "tls-cert-file",
    "tls-min-version",
    "tls-private-key-file",
    "token-auth-file",
    "unsafe-no-fsync",
    "workers",
];

/// Flags of this kind that may be repeated.
const SAME_LISTS: [&str; 17] = [
    "api-audiences",
    "cors-allowed-origins",
    "kubelet-preferred-address-types",
    "oidc-required-claim",
    "oidc-signing-algs",
    "requestheader-allowed-names",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "service-account-issuer",
    "service-account-key-file",
    "strict-transport-security-directives",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-san",
    "tls-sni-cert-key",
];

/// Flags with a time, and the options here, which take seconds.
const TIMES: [(&str, &str); 4] = [
    ("event-ttl", "event-ttl-seconds"),
    ("request-timeout", "request-timeout-seconds"),
    ("service-account-max-token-expiration", "service-account-max-token-expiration-seconds"),
    ("shutdown-delay-duration", "shutdown-delay-seconds"),
];

fn same(given: &ParsedFlags, to: &mut Translation) {
    for name in SAME {
        if let Some(value) = given.one(name) {
            to.set(name, value);
        }
    }
    for name in SAME_LISTS {
        for value in given.all(name) {
            to.set(name, value);
        }
    }
    if let Some(version) = given.one("version").filter(|version| version.starts_with('v')) {
        to.set("reported-version", version);
    }
    if let Some(host) = given.one("external-hostname") {
        to.set("tls-san", host);
    }
    for (name, own) in TIMES {
        if let Some(time) = given.one(name).and_then(|text| value::span(text).ok()) {
            to.set(own, time.max(0).cast_unsigned().div_ceil(1_000_000_000));
        }
    }
}

/// Translates the flags about the directories of certificates and data.
fn places(given: &ParsedFlags, to: &mut Translation) {
    let cert_dir = given.one("cert-dir").map(PathBuf::from);
    let serving = given.one("tls-cert-file").map(PathBuf::from);
    if serving.is_none() {
        let dir = cert_dir.clone().unwrap_or_else(|| CERT_DIR.into());
        to.set("cert-dir", dir.display());
    }
    if given.one("data-dir").is_some() || std::env::var_os("FLOTILLA_DATA_DIR").is_some() {
        return;
    }
    let beside = cert_dir.or_else(|| serving?.parent().filter(|dir| can_be_written(dir)).map(Path::to_owned));
    match beside {
        Some(dir) => {
            let dir = dir.join(DATA_DIR);
            to.log_lines.push(format!("no --data-dir is given: data is stored in {}", dir.display()));
            to.set("data-dir", dir.display());
        }
        None => to
            .log_lines
            .push(format!("no --data-dir is given: data is stored in {}", crate::config::default_data_dir().display())),
    }
}

/// Returns whether files can be created in a directory.
fn can_be_written(dir: &Path) -> bool {
    use rustix::fs::{Access, access};
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Translates the flags about the log's level and format.
fn logging(given: &ParsedFlags, to: &mut Translation) {
    if let Some(form) = given.one("logging-format") {
        to.set("log-format", form);
    }
    let quiet = "actix_server=warn,openraft=error,h2=info,hyper=info,rustls=info";
    let level = given.one("v").and_then(|level| level.parse::<i64>().ok());
    match (given.one("log-level"), level) {
        (Some(filter), _) => to.set("log-level", filter),
        (None, Some(4 | 5)) => to.set("log-level", format!("debug,{quiet}")),
        (None, Some(6..)) => to.set("log-level", format!("debug,flotilla=trace,{quiet}")),
        _ => {}
    }
}
