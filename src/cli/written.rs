//! Texts made from the command line: completions for shells, and manual pages.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;

/// Writes a script to standard output that makes a shell complete the command line.
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

/// Writes a page of every command into a directory.
pub(super) fn manual(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), directory)
}
