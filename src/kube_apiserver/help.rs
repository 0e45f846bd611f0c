//! The output of `--help` and `--version`.

use std::fmt::Write as _;

use super::table::{Flag, FlagEffect, SECTIONS};
use crate::version;

/// Returns the flags in their sections, each with a sentence.
pub fn help() -> String {
    let mut text =
        "Serves the Kubernetes API in the place of kube-apiserver 1.36, without etcd: this server stores the\n\
                    objects itself. It takes all flags of kube-apiserver. Where a flag has another effect here, its\n\
                    description says so.\n\nUsage:\n  kube-apiserver [flags]\n"
            .to_owned();
    for section in &SECTIONS {
        let _ = writeln!(text, "\n{} flags:\n", section.title); // writing to a String never fails
        let heads: Vec<String> = section.flags.iter().map(head).collect();
        let width = heads.iter().map(String::len).max().unwrap_or(0);
        for (flag, head) in section.flags.iter().zip(&heads) {
            let _ = writeln!(text, "{head:width$}   {}", sentence(flag));
        }
    }
    text
}

fn head(flag: &Flag) -> String {
    let short = flag.short.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    let kind = flag.kind.name();
    let space = if kind.is_empty() { "" } else { " " };
    format!("  {short}--{}{space}{kind}", flag.name)
}

fn sentence(flag: &Flag) -> String {
    let default = match flag.default {
        "" | "false" => String::new(),
        default => format!(" (default {default})"),
    };
    let effect = match flag.effect {
        FlagEffect::Acts | FlagEffect::Own => String::new(),
        FlagEffect::Accepted => " Accepted, and changes nothing.".to_owned(),
        FlagEffect::Logged(why) => format!(" Accepted: {why}."),
        FlagEffect::Refused(why) => format!(" Refused: {why}."),
    };
    format!("{}{effect}{default}", flag.help)
}

/// Returns the output of `--version`; `how` is the flag's value.
pub fn version(how: &str) -> String {
    match how {
        "raw" => format!(
            "version.Info{{Major:\"{}\", Minor:\"{}\", GitVersion:\"{}\", Platform:\"{}/{}\"}}",
            version::MAJOR,
            version::MINOR,
            version::GIT_VERSION,
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        _ => format!("Kubernetes {}", version::GIT_VERSION),
    }
}
