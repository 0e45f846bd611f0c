//! What stands in for the etcd that others start beside kube-apiserver: it takes etcd's flags and answers what tools
//! ask at the start, and keeps nothing, since the API server keeps the objects itself.

mod flags;
mod serving;

use std::process::ExitCode;

/// Release of etcd whose flags are taken.
const RELEASE: &str = "3.6.16";
/// What this is, for people.
const WHAT: &str = "this is no etcd, but a stand-in of Flotilla: it keeps nothing, and answers only what tools ask at \
                    the start. The API server keeps the objects itself";

/// Does what etcd is asked for, as far as it is done here, until it is told to end.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let given = match flags::parse(arguments) {
        Ok(given) => given,
        Err(why) => return refuse(&why, 2),
    };
    if given.is("help") || given.is("h") {
        print!("{}", flags::help());
        return ExitCode::SUCCESS;
    }
    if given.is("version") {
        println!("etcd Version: {RELEASE}\n{WHAT} ({}).", crate::version::GIT_VERSION);
        return ExitCode::SUCCESS;
    }
    eprintln!("flotilla etcd: {WHAT}.");
    match actix_web::rt::System::new().block_on(serving::serve(&given)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string(), 1),
    }
}

/// Tells what to use in the place of etcdctl.
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
