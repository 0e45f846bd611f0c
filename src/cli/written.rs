//! Texts that are generated from the definition of the command line: completions for shells, and manual pages.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use flotilla::terminal::print;

/// Writes the completion script for a shell to standard output.
pub(super) fn completion(shell: Shell) -> io::Result<()> {
    // The generator panics if it cannot write. Writing to memory never fails.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flotilla", &mut text);
    print(&String::from_utf8_lossy(&text)).map(|_| ())
}

/// Writes a manual page for each command into a directory.
pub(super) fn manual(directory: &Path) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", directory.display()));
    clap_mangen::generate_to(Cli::command(), directory).map_err(named)
}
