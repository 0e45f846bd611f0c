//! A stand-in for the etcd that tools start beside kube-apiserver: it accepts etcd's flags and answers the requests
//! that tools make at the start. It stores nothing, since the API server itself stores the objects.

mod flags;
mod serving;

use crate::terminal::answer;
use std::process::ExitCode;

/// Release of etcd whose flags are accepted.
const RELEASE: &str = "3.6.16";
/// The explanation for users.
const WHAT: &str = "this is no etcd, but a stand-in of Flotilla: it keeps nothing, and answers only what tools ask at \
                    the start. The API server keeps the objects itself";

/// Runs the command line of an etcd, as far as it is supported here, until a signal stops it.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let given = match flags::parse(arguments) {
        Ok(given) => given,
        Err(why) => return refuse(&why, 2),
    };
    if given.is("help") || given.is("h") {
        return answer(flags::help().trim_end());
    }
    if given.is("version") {
        return answer(format_args!("etcd Version: {RELEASE}\n{WHAT} ({}).", crate::version::GIT_VERSION));
    }
    eprintln!("flotilla etcd: {WHAT}.");
    match actix_web::rt::System::new().block_on(serving::serve(&given)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string(), 1),
    }
}

/// Prints what to use instead of etcdctl.
pub fn refuse_control() -> ExitCode {
    refuse(
        "there is no etcd to control: Flotilla keeps the objects itself. Save them with `flotilla backup --help`, and \
         bring them back with `flotilla restore --help`; see and change the members with `flotilla cluster --help`",
        1,
    )
}

fn refuse(why: &str, code: u8) -> ExitCode {
    eprintln!("flotilla etcd: {why}");
    ExitCode::from(code)
}
