//! Parses a command line as Go's pflag does: `--name=value` or `--name value`, single letters after one dash, `_` for
//! `-`, and truth values without a value.

use std::collections::BTreeMap;

use flotilla_golang::strconv;

use super::table::{self, Flag};
use super::value;

/// A parsed command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedFlags(BTreeMap<&'static str, Vec<String>>);

/// The reason why a command line is invalid, in the words of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

impl ParsedFlags {
    /// Returns all values of a flag; empty if it is not given.
    pub fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a flag. `None` if it is not given or empty.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns whether a flag with a truth value is true.
    pub fn is(&self, name: &str) -> bool {
        self.one(name) == Some("true")
    }

    /// Returns the given flags, by name.
    pub fn flags(&self) -> impl Iterator<Item = (&'static Flag, &[String])> {
        self.0.iter().filter_map(|(name, values)| Some((table::find(name)?, values.as_slice())))
    }

    fn set(&mut self, flag: &'static Flag, text: &str) -> Result<(), Misuse> {
        let parts = value::parts(flag.kind, text).map_err(|why| {
            let name = match flag.short {
                Some(short) => format!("-{short}, --{}", flag.name),
                None => format!("--{}", flag.name),
            };
            Misuse(format!("invalid argument {} for {} flag: {why}", strconv::quote(text), strconv::quote(&name)))
        })?;
        let values = self.0.entry(flag.name).or_default();
        if !flag.kind.is_list() {
            values.clear();
        }
        values.extend(parts);
        Ok(())
    }
}

/// Parses the arguments after the name of the program.
///
/// # Errors
/// If a flag is unknown, a value is missing or wrong, or a word belongs to no flag.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<ParsedFlags, Misuse> {
    let (mut given, mut words) = (ParsedFlags::default(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix('-') {
            None | Some("") => words.push(argument),
            Some("-") => words.extend(arguments.by_ref()),
            Some(rest) => match rest.strip_prefix('-') {
                Some(long) => named(&mut given, &argument, long, &mut arguments)?,
                None => letters(&mut given, &argument, rest, &mut arguments)?,
            },
        }
    }
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        return Ok(given);
    }
    let words: Vec<String> = words.iter().map(|word| strconv::quote(word)).collect();
    Err(Misuse(format!("\"kube-apiserver\" does not take any arguments, got [{}]", words.join(" "))))
}

fn named(
    given: &mut ParsedFlags,
    argument: &str,
    long: &str,
    rest: &mut impl Iterator<Item = String>,
) -> Result<(), Misuse> {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    if name.is_empty() || name.starts_with(['-', '=']) {
        return Err(Misuse(format!("bad flag syntax: {argument}")));
    }
    let flag = table::find(&name.replace('_', "-")).ok_or_else(|| Misuse(format!("unknown flag: --{name}")))?;
    match (value, flag.kind.alone()) {
        (Some(value), _) | (None, Some(value)) => given.set(flag, value),
        (None, None) => {
            let value = rest.next().ok_or_else(|| Misuse(format!("flag needs an argument: {argument}")))?;
            given.set(flag, &value)
        }
    }
}

/// Parses letters after one dash: each is a flag, until one takes the rest as its value.
fn letters(
    given: &mut ParsedFlags,
    argument: &str,
    letters: &str,
    rest: &mut impl Iterator<Item = String>,
) -> Result<(), Misuse> {
    let mut left = letters;
    while let Some(letter) = left.chars().next() {
        let unknown = || Misuse(format!("unknown shorthand flag: '{letter}' in {argument}"));
        let flag = table::flags().find(|flag| flag.short == Some(letter)).ok_or_else(unknown)?;
        left = &left[letter.len_utf8()..];
        match (left.strip_prefix('='), flag.kind.alone()) {
            (Some(value), _) => return given.set(flag, value),
            (None, Some(value)) => given.set(flag, value)?,
            (None, None) if !left.is_empty() => return given.set(flag, left),
            (None, None) => {
                let missing = || Misuse(format!("flag needs an argument: '{letter}' in {argument}"));
                let value = rest.next().ok_or_else(missing)?;
                return given.set(flag, &value);
            }
        }
    }
    Ok(())
}
