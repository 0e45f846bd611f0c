//! Runs commands of the program, and reads their output.

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

/// Returns the standard error of a command.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the standard output of a command that must succeed.
pub fn successful(output: Output) -> String {
    assert!(output.status.success(), "{}", errors(&output));
    String::from_utf8(output.stdout).expect("text")
}
