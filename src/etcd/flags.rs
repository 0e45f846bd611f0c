//! The flags of etcd, with the syntax of Go's package `flag`: one dash or two, and boolean flags without a value.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flotilla_golang::strconv;

use super::WHAT;

/// The names of the flags, one a line. `bool` follows the names of boolean flags.
const FLAGS: &str = include_str!("flags.txt");

/// The flags that have an effect, and the effect.
const ACTING: [(&str, &str); 8] = [
    ("listen-client-urls", "the URLs at which clients get answers, http://localhost:2379 by default"),
    ("listen-client-http-urls", "further URLs at which clients get answers"),
    ("listen-metrics-urls", "further URLs, for health and metrics"),
    ("advertise-client-urls", "the URLs in the list of members"),
    ("name", "the name in the list of members"),
    ("cert-file, key-file", "the certificate and the key for https URLs"),
    ("trusted-ca-file, client-cert-auth", "the authority of the client certificates that https URLs require"),
    ("end-with-parent", "whether to end with the process that has started this one; not a flag of etcd"),
];

/// The flags of a command line and of the environment.
#[derive(Debug, Default)]
pub(super) struct EtcdFlags(BTreeMap<String, String>);

impl EtcdFlags {
    /// Returns the value of a flag, from the command line or else from the environment, as in `ETCD_NAME`.
    pub(super) fn one(&self, name: &str) -> Option<String> {
        let variable = || std::env::var(format!("ETCD_{}", name.to_uppercase().replace('-', "_"))).ok();
        self.0.get(name).cloned().or_else(variable).filter(|value| !value.is_empty())
    }

    /// Returns whether a flag is true.
    pub(super) fn is(&self, name: &str) -> bool {
        self.one(name).is_some_and(|value| strconv::parse_bool(&value) == Ok(true))
    }

    /// Returns the URLs of a flag.
    pub(super) fn urls(&self, name: &str) -> Vec<String> {
        let text = self.one(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect()
    }
}

/// Parses the arguments after the name of the program. `Err` is the message for the user.
pub(super) fn parse(arguments: impl Iterator<Item = String>) -> Result<EtcdFlags, String> {
    let mut given = EtcdFlags::default();
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        let Some(flag) = argument.strip_prefix('-').map(|rest| rest.strip_prefix('-').unwrap_or(rest)) else {
            return Err(format!("{} is not a valid flag", strconv::quote(&argument)));
        };
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
        let is_bool = kind(name).ok_or_else(|| format!("flag provided but not defined: -{name}"))?;
        let value = match value {
            Some(value) => value,
            None if is_bool => "true".to_owned(),
            None => arguments.next().ok_or_else(|| format!("flag needs an argument: -{name}"))?,
        };
        if is_bool && strconv::parse_bool(&value).is_err() {
            return Err(format!("invalid boolean value {} for -{name}: parse error", strconv::quote(&value)));
        }
        given.0.insert(name.to_owned(), value);
    }
    Ok(given)
}

/// Returns whether the flag with this name is boolean. `None` if there is no such flag.
fn kind(name: &str) -> Option<bool> {
    FLAGS
        .lines()
        .map(|line| line.split_once(' ').map_or((line, false), |(name, _)| (name, true)))
        .find_map(|(known, is_bool)| (known == name).then_some(is_bool))
}

/// Returns the help: all flags, and the effect of those that have one.
pub(super) fn help() -> String {
    let mut text = format!("Usage:\n\n  etcd [flags]\n\n{WHAT}.\n\nThese have an effect:\n\n");
    for (name, what) in ACTING {
        let _ = writeln!(text, "  --{}\n    {what}.", name.replace(", ", ", --")); // writing to a String never fails
    }
    text.push_str("\nThese are accepted, and change nothing:\n\n");
    let acting: Vec<&str> = ACTING.iter().flat_map(|(names, _)| names.split(", ")).collect();
    for line in FLAGS.lines() {
        let name = line.split(' ').next().unwrap_or(line);
        if !acting.contains(&name) {
            let _ = writeln!(text, "  --{name}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<EtcdFlags, String> {
        parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn syntax() {
        let found = given("--name=a -data-dir /d --unsafe-no-fsync --client-cert-auth=false").unwrap();
        assert_eq!(found.one("name").as_deref(), Some("a"));
        assert_eq!(found.one("data-dir").as_deref(), Some("/d"));
        assert!(found.is("unsafe-no-fsync") && !found.is("client-cert-auth"));
        assert_eq!(given("--listen-client-urls=http://a:1,http://b:2").unwrap().urls("listen-client-urls").len(), 2);
        assert_eq!(given("--nope").unwrap_err(), "flag provided but not defined: -nope");
        assert_eq!(given("--name").unwrap_err(), "flag needs an argument: -name");
        assert!(given("word").is_err() && given("--pre-vote=perhaps").is_err());
    }

    #[test]
    fn help_names_the_flags_that_tools_look_for() {
        assert!(help().lines().any(|line| line.trim() == "--unsafe-no-fsync"));
        for (names, _) in ACTING {
            assert!(names.split(", ").all(|name| kind(name).is_some()), "{names}");
        }
    }
}
