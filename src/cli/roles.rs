//! Stands in for kube-apiserver, etcd and etcdctl, if this program is called by their name: the name of its file, of a
//! link to it, or the first argument.

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use flotilla::etcd;
use flotilla::kube_apiserver::{self, Translation};
use flotilla::terminal::answer;

use super::{Cli, Command, FAILED};

pub(super) const KUBE_APISERVER: &str = "kube-apiserver";
pub(super) const ETCD: &str = "etcd";
pub(super) const ETCDCTL: &str = "etcdctl";

/// Runs as one of these programs, if this program is called as one. Returns `None` if it is not.
pub(super) fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let called = arguments.next().unwrap_or_default();
    let called = Path::new(&called).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_role = |name: &str| [KUBE_APISERVER, ETCD, ETCDCTL].contains(&name);
    let role = if is_role(&called) { called } else { arguments.next().filter(|name| is_role(name))? };
    Some(match role.as_str() {
        KUBE_APISERVER => kube_apiserver(arguments),
        ETCD => etcd::run(arguments),
        _ => etcd::refuse_control(),
    })
}

fn kube_apiserver(arguments: impl Iterator<Item = String>) -> ExitCode {
    let given = match kube_apiserver::parse(arguments) {
        Ok(given) => given,
        Err(misuse) => return refuse(&misuse),
    };
    if given.is("help") {
        return answer(kube_apiserver::help().trim_end());
    }
    if let Some(how) = given.one("version").filter(|how| matches!(*how, "true" | "raw")) {
        return answer(kube_apiserver::version(how));
    }
    match kube_apiserver::translate(&given) {
        Ok(translation) => serve(&translation),
        Err(misuse) => refuse(&misuse),
    }
}

fn serve(Translation { arguments, log_lines }: &Translation) -> ExitCode {
    let line = ["flotilla", "serve"].into_iter().chain(arguments.iter().map(String::as_str));
    let matches = match Cli::command().try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) => return refuse(&first_line(&error.to_string())),
    };
    match (Cli::from_arg_matches(&matches).map(|cli| cli.command), matches.subcommand()) {
        (Ok(Command::Serve(settings)), Some((_, matches))) => super::begin(&settings, matches, log_lines),
        _ => refuse(&"the flags cannot be understood"),
    }
}

/// Returns the error without the usage that follows it.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn refuse(why: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("Error: {why}");
    ExitCode::from(FAILED)
}
