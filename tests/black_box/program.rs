//! Runs commands of the program, and reads what they print.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::Server;

/// Runs the program until it ends. Each of `paths` is a flag with its value.
pub fn flotilla(arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla"));
    command.args(arguments);
    for (flag, path) in paths {
        command.arg(flag).arg(path);
    }
    command.output().expect("the program can be run")
}

/// Runs a command as a server's administrator.
pub fn as_admin(server: &Server, arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let kubeconfig = server.data().join("admin.kubeconfig");
    flotilla(arguments, &[paths, &[("--kubeconfig", &kubeconfig)]].concat())
}

/// Returns what a command wrote to standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns what a command that must succeed wrote to standard output.
pub fn successful(output: Output) -> String {
    assert!(output.status.success(), "{}", errors(&output));
    String::from_utf8(output.stdout).expect("text")
}
