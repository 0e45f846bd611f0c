//! Builds the configuration from its layers (defaults, file, environment, flags), and checks options against each
//! other.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile, Provider};
use serde::de::DeserializeOwned;

use super::{
    AuthorizationMode, Config, InitialCluster, InitialClusterError, RequestOptions, is_member_address, is_member_name,
};
use crate::limits::{self, CONFIG_FILE_BYTES};

/// Prefix of the environment variables.
const ENV_PREFIX: &str = "FLOTILLA_";
/// The variable that names the configuration file, without the prefix.
const CONFIG_FILE: &str = "CONFIG";

/// Expands to `$do!(field)` for every part of [`Config`] whose options are a struct of their own.
macro_rules! for_each_part {
    ($do:ident) => {
        $do!(tls);
        $do!(requests);
        $do!(tokens);
        $do!(authorization);
        $do!(openid);
        $do!(front_proxy);
        $do!(admission);
        $do!(audit);
    };
}

/// The reason why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// The file, a variable or a flag has a value of the wrong form, or the file has an unknown key.
    #[error("configuration: {place}: {why}")]
    Value {
        /// The variable, the file, or the option.
        place: String,
        /// The error in it.
        why: String,
    },
    /// The file that an option names is missing, or has the wrong content.
    #[error("configuration: {option}")]
    FlagFile {
        /// The option, as the file names it.
        option: &'static str,
        /// The mistake.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Options that contradict each other.
    #[error("configuration: {option}: {why}")]
    Invalid {
        /// The option, as the file names it.
        option: &'static str,
        /// The mistake.
        why: String,
    },
}

impl ConfigError {
    /// Returns the error about a wrong value. It names the place, so that the user can find it: the variable, the file
    /// or the flag.
    fn value(error: &figment::Error, file: Option<&Path>) -> Self {
        let (key, why) = (error.path.join("."), error.kind.to_string());
        let origin = error.metadata.as_ref().map_or("", |metadata| &metadata.name);
        let place = match file {
            _ if origin.contains("environment") => format!("{ENV_PREFIX}{}", key.to_uppercase().replace('-', "_")),
            Some(file) if key.is_empty() => file.display().to_string(),
            Some(file) if origin.contains(<Toml as Format>::NAME) => format!("{}: {key}", file.display()),
            _ => key,
        };
        Self::Value { place, why }
    }
}

/// Loads the configuration: defaults, then the file, then the environment, then the given flags; later ones win.
///
/// `parsed` is the command line as clap parsed it, with defaults; `matches` says which flags were given.
///
/// # Errors
/// If the file cannot be read, a value has the wrong form, or options contradict each other.
pub fn load(parsed: &Config, matches: &ArgMatches, file: Option<&Path>) -> Result<Config, ConfigError> {
    let wrong = |error: figment::Error| ConfigError::value(&error, file);
    let mut given = Dict::new();
    let mut all = Figment::from(Serialized::defaults(parsed)).extract::<Dict>().map_err(wrong)?;
    let mut apart = BTreeSet::new();
    macro_rules! add {
        ($part:ident) => {
            all.extend(Figment::from(Serialized::defaults(&parsed.$part)).extract::<Dict>().map_err(wrong)?);
            apart.extend(options_like(&parsed.$part));
        };
    }
    for_each_part!(add);
    for id in matches.ids().map(clap::Id::as_str) {
        let option = id.replace('_', "-");
        if matches.value_source(id) == Some(ValueSource::CommandLine)
            && let Some(value) = all.remove(&option)
        {
            given.insert(option.clone(), value);
        }
    }
    let layers = Layers { all, file: file.map(read).transpose()?, given };
    let mut config: Config = layers.of(|option| !apart.contains(option)).extract().map_err(wrong)?;
    macro_rules! read_part {
        ($part:ident) => {
            config.$part = layers.part(file)?;
        };
    }
    for_each_part!(read_part);
    check(&config)?;
    Ok(config)
}

/// The layers of a configuration.
struct Layers {
    /// The defaults of the options for which no flag is given.
    all: Dict,
    /// The text of the file. `None` if no file is given.
    file: Option<String>,
    /// The flags that are given.
    given: Dict,
}

impl Layers {
    /// Returns the options of the part `A`, from all layers.
    fn part<A: clap::Args + DeserializeOwned>(&self, file: Option<&Path>) -> Result<A, ConfigError> {
        let own = options_of::<A>();
        self.of(|option| own.contains(option)).extract().map_err(|error| ConfigError::value(&error, file))
    }

    /// Returns the layers with only the keys for which `takes` returns true. The file may have keys that are no
    /// options: the extraction of the options refuses these.
    fn of(&self, takes: impl Fn(&str) -> bool + Clone) -> Figment {
        let options = options();
        let environment = Env::prefixed(ENV_PREFIX).map(|key| option_of(key.as_str()).into());
        let environment = environment.filter(move |key| options.contains(key.as_str()));
        let mut figment = Figment::from(PartialLayer { of: Serialized::defaults(&self.all), takes: takes.clone() });
        if let Some(text) = &self.file {
            figment = figment.merge(PartialLayer { of: Toml::string(text), takes: takes.clone() });
        }
        let environment = PartialLayer { of: environment, takes: takes.clone() };
        figment.merge(environment).merge(PartialLayer { of: Serialized::defaults(&self.given), takes })
    }
}

/// A layer with some of its options.
struct PartialLayer<P, F> {
    of: P,
    takes: F,
}

impl<P: Provider, F: Fn(&str) -> bool> Provider for PartialLayer<P, F> {
    fn metadata(&self) -> Metadata {
        self.of.metadata()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut data = self.of.data()?;
        data.values_mut().for_each(|options| options.retain(|option, _| (self.takes)(option)));
        Ok(data)
    }
}

/// Returns all options, as flags and files name them.
fn options() -> BTreeSet<String> {
    options_of::<Config>()
}

/// Returns the options of the type of `_part`.
fn options_like<A: clap::Args>(_part: &A) -> BTreeSet<String> {
    options_of::<A>()
}

fn options_of<A: clap::Args>() -> BTreeSet<String> {
    let command = A::augment_args(clap::Command::new(""));
    command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
}

/// Returns the option of a variable, whose name is given without the prefix.
fn option_of(variable: &str) -> String {
    variable.to_lowercase().replace('_', "-")
}

/// Returns the variables that have the prefix but name no option: they are probably mistakes.
pub fn unrecognized_variables(environment: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let options = options();
    let is_meant = |rest: &str| rest == CONFIG_FILE || options.contains(&option_of(rest));
    let of_nothing = |(name, value): &(String, String)| {
        name.strip_prefix(ENV_PREFIX).is_some_and(|rest| !is_meant(rest) && !is_of_service(rest, value))
    };
    environment.filter(of_nothing).map(|(name, _)| name).collect()
}

/// Returns whether Kubernetes sets this variable in containers for a Service whose name begins with `flotilla`, as in
/// `FLOTILLA_SERVICE_HOST`, `FLOTILLA_PORT=tcp://10.96.0.9:6443` and `FLOTILLA_PORT_6443_TCP_ADDR`.
fn is_of_service(rest: &str, value: &str) -> bool {
    let of_port = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    rest.ends_with("SERVICE_HOST")
        || rest.contains("SERVICE_PORT")
        || rest.ends_with("PORT") && value.contains("://")
        || rest.split("PORT_").skip(1).any(of_port)
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::File { path: path.to_owned(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(CONFIG_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > CONFIG_FILE_BYTES {
        return Err(failed(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "the file is too large")));
    }
    Ok(text)
}

fn check(config: &Config) -> Result<(), ConfigError> {
    let refuse = |option, why: &str| Err(ConfigError::Invalid { option, why: why.to_owned() });
    if config.data_dir.as_os_str().is_empty() {
        return refuse("data-dir", "must not be empty");
    }
    if config.advertise_address.is_some_and(|ip| ip.is_unspecified() || ip.is_multicast()) {
        return refuse("advertise-address", "must be an address that others can connect to");
    }
    if config.tls.tls_cert_file.is_some() != config.tls.tls_private_key_file.is_some() {
        return refuse("tls-cert-file", "needs tls-private-key-file, and the other way round");
    }
    if config.tokens.service_account_issuer.is_empty()
        || config.tokens.service_account_issuer.iter().any(String::is_empty)
    {
        return refuse("service-account-issuer", "must name at least one issuer, and none that is empty");
    }
    let asks = config.authorization.authorization_mode.contains(&AuthorizationMode::Webhook);
    if config.authorization.authorization_config.is_none()
        && asks != config.authorization.authorization_webhook_config_file.is_some()
    {
        return refuse("authorization-webhook-config-file", "and --authorization-mode with Webhook need each other");
    }
    let by_policies = config.authorization.authorization_mode.contains(&AuthorizationMode::Abac);
    if config.authorization.authorization_config.is_none()
        && by_policies != config.authorization.authorization_policy_file.is_some()
    {
        return refuse("authorization-policy-file", "and --authorization-mode with ABAC need each other");
    }
    if config.authorization.authorization_config.is_some()
        && (asks || by_policies || config.authorization.authorization_webhook_config_file.is_some())
    {
        return refuse("authorization-config", "excludes authorization-mode and authorization-webhook-config-file");
    }
    if config.history_seconds == 0 {
        return refuse("history-seconds", "must be at least 1");
    }
    if config.history_bytes == 0 {
        return refuse("history-bytes", "must be at least 1");
    }
    if config.groups > 0 && config.shards.largest() == 0 {
        return refuse("groups", "needs shards: without shards, further groups replicate nothing");
    }
    if u16::from(config.groups) > config.shards.iter().map(|(_, shards)| shards).sum() {
        return refuse("groups", "must not exceed the number of shards");
    }
    if config.workers > 1_024 {
        return refuse("workers", "must be at most 1024");
    }
    config.audit.check()?;
    let longest = config.tokens.service_account_max_token_expiration_seconds;
    if longest != 0 && !(3_600..=1 << 32).contains(&longest) {
        return refuse("service-account-max-token-expiration-seconds", "must be between 1 hour and 2^32 seconds");
    }
    check_requests(&config.requests)?;
    check_members(config)
}

/// Checks the options of requests by the rules of kube-apiserver.
fn check_requests(options: &RequestOptions) -> Result<(), ConfigError> {
    let refuse = |option, why: String| Err(ConfigError::Invalid { option, why });
    let longest = limits::WATCH_TIME_MAX.as_secs();
    if !(1..=longest).contains(&options.request_timeout_seconds) {
        return refuse("request-timeout-seconds", format!("must be from 1 to {longest}"));
    }
    if options.min_request_timeout > longest {
        return refuse("min-request-timeout", format!("must be at most {longest}"));
    }
    if !(0.0..=0.02).contains(&options.goaway_chance) {
        return refuse("goaway-chance", "cannot be less than 0 or greater than 0.02".to_owned());
    }
    for pattern in &options.cors_allowed_origins {
        // Otherwise an attacker's host could contain an allowed one (CVE-2022-1996).
        let has_ends = ["^", "//"].iter().any(|text| pattern.contains(text))
            && ["$", ":"].iter().any(|text| pattern.contains(text));
        let wrong = match regex::Regex::new(pattern) {
            _ if pattern.is_empty() => Some("has an empty value".to_owned()),
            Err(error) => Some(format!("has an invalid regular expression: {error}")),
            Ok(_) if !has_ends => Some(format!(
                "has an invalid regular expression: {pattern} does not pin to start/end of host in the origin header"
            )),
            Ok(_) => None,
        };
        if let Some(wrong) = wrong {
            return refuse("cors-allowed-origins", wrong);
        }
    }
    for directive in &options.strict_transport_security_directives {
        let is_age = directive.split_once('=').is_some_and(|(name, age)| name == "max-age" && !age.contains('='));
        if !is_age && !matches!(&**directive, "includeSubDomains" | "preload") {
            let why = format!("{directive:?} is none of max-age=SECONDS, includeSubDomains, preload");
            return refuse("strict-transport-security-directives", why);
        }
    }
    Ok(())
}

fn check_members(config: &Config) -> Result<(), ConfigError> {
    let refuse = |option, why: &str| Err(ConfigError::Invalid { option, why: why.to_owned() });
    if config.pki_dir.as_ref().is_some_and(|dir| dir.as_os_str().is_empty()) {
        return refuse("pki-dir", "must not be empty");
    }
    let name = config.member_name();
    if !is_member_name(&name) {
        return refuse("name", &InitialClusterError::Name(name).to_string());
    }
    match (&config.initial_cluster, config.peer_listen) {
        (None, None) => Ok(()),
        (None, Some(_)) => refuse("peer-listen", "needs initial-cluster: a server that is alone listens for no others"),
        (Some(_), None) => refuse("initial-cluster", "needs peer-listen: the address at which this member listens"),
        (Some(_), Some(listen)) if listen.port() == 0 => {
            refuse("peer-listen", "must have a port: the others know it from initial-cluster")
        }
        (Some(_), Some(listen)) if listen == config.listen => refuse("peer-listen", "is the address of the API"),
        (Some(cluster), Some(_)) if !cluster.may_have(&name) => {
            let given = if config.name.is_some() { "" } else { ", the name of the machine since no name is given," };
            refuse("name", &format!("{name}{given} is not in initial-cluster: {cluster}"))
        }
        (Some(_), Some(_)) => Ok(()),
    }?;
    check_found(config)
}

/// Checks the options that members need if they find each other by a host name. Otherwise members must not have them.
fn check_found(config: &Config) -> Result<(), ConfigError> {
    let refuse = |option, why: &str| Err(ConfigError::Invalid { option, why: why.to_owned() });
    let by_name = matches!(config.initial_cluster, Some(InitialCluster::Dns(_)));
    match config.initial_cluster_size {
        None if by_name => return refuse("initial-cluster-size", "is needed to know when all members are found"),
        Some(_) if !by_name => return refuse("initial-cluster-size", "is for initial-cluster dns=HOST:PORT only"),
        Some(size) if !(1..=limits::INITIAL_MEMBERS).contains(&size) => {
            let why = format!("must be from 1 to {}", limits::INITIAL_MEMBERS);
            return refuse("initial-cluster-size", &why);
        }
        _ => {}
    }
    match &config.peer_advertise {
        None if by_name => refuse("peer-advertise", "is needed: the address at which the others find this member"),
        Some(_) if !by_name => refuse("peer-advertise", "is for initial-cluster dns=HOST:PORT only"),
        Some(address) if !is_member_address(address) => refuse("peer-advertise", "is not HOST:PORT"),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
