//! Validation of a pod's DNS settings and host names.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::rules::{addresses, names};

/// Most name servers (resolv.conf(5)).
const NAME_SERVERS_MAX: usize = 3;
/// Most search paths.
const SEARCHES_MAX: usize = 32;
/// Most characters of all search paths together.
const SEARCH_CHARACTERS_MAX: usize = 2048;
/// Longest host name.
const HOSTNAME_BYTES_MAX: usize = 64;

/// Checks `dnsConfig` of a pod spec; `path` is its path.
pub fn validate_dns(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let config = spec.at(&["dnsConfig"]);
    let servers = config.list_at(&["nameservers"]);
    if spec.str_at(&["dnsPolicy"]) == "None" {
        if config.is_null() {
            return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&path.child("nameservers"), why);
        }
    }
    let servers_path = path.child("nameservers");
    if servers.len() > NAME_SERVERS_MAX {
        let why = format!("must not have more than {NAME_SERVERS_MAX} nameservers");
        errors.invalid(&servers_path, config.at(&["nameservers"]), why);
    }
    for (n, server) in servers.iter().enumerate() {
        addresses::check_legacy(&servers_path.index(n), server.as_str().unwrap_or(""), &[], errors);
    }
    searches(config.at(&["searches"]), &path.child("searches"), errors);
    let options = path.child("options");
    for (n, option) in config.list_at(&["options"]).iter().enumerate() {
        if option.str_at(&["name"]).is_empty() {
            errors.required(&options.index(n), "must not be empty");
        }
    }
}

fn searches(searches: &Value, path: &Path<'_>, errors: &mut Errors) {
    let list = searches.as_array().unwrap_or(&[]);
    if list.len() > SEARCHES_MAX {
        errors.invalid(path, searches, format!("must not have more than {SEARCHES_MAX} search paths"));
    }
    let characters = list.iter().filter_map(Value::as_str).map(|search| search.len() + 1).sum::<usize>();
    if characters > SEARCH_CHARACTERS_MAX + 1 {
        let why =
            format!("must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list");
        errors.invalid(path, searches, why);
    }
    for (n, search) in list.iter().filter_map(Value::as_str).enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        names::check(&path.index(n), search, names::dns1123_subdomain_underscore, errors);
    }
}

/// Checks `hostnameOverride`.
pub fn hostname_override(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(name) = spec.at(&["hostnameOverride"]).as_str() else { return };
    let path = path.child("hostnameOverride");
    if spec.is_true_at(&["setHostnameAsFQDN"]) {
        errors.forbidden(&path, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.is_true_at(&["hostNetwork"]) {
        errors.forbidden(&path, "may not be specified when hostNetwork is true");
    }
    if name.len() > HOSTNAME_BYTES_MAX {
        errors.too_long(&path, HOSTNAME_BYTES_MAX);
    }
    names::check(&path, name, names::dns1123_subdomain, errors);
}

/// Checks `hostAliases`.
pub fn host_aliases(aliases: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (n, alias) in aliases.iter().enumerate() {
        let path = path.index(n);
        addresses::check_legacy(&path.child("ip"), alias.str_at(&["ip"]), &[], errors);
        let hostnames = path.child("hostnames");
        for (n, name) in alias.list_at(&["hostnames"]).iter().enumerate() {
            names::check(&hostnames.index(n), name.as_str().unwrap_or(""), names::dns1123_subdomain, errors);
        }
    }
}
