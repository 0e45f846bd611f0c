//! Texts that are generated from the definition of the command line: completions for shells, and manual pages.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;

/// Writes the completion script for a shell to standard output.
pub(super) fn completion(shell: Shell) -> io::Result<()> {
    // The generator panics if it cannot write. Writing to memory never fails.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flotilla", &mut text);
    let mut out = io::stdout().lock();
    match out.write_all(&text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a manual page for each command into a directory.
pub(super) fn manual(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), directory)
}
