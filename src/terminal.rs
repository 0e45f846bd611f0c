//! Output of commands: nothing else writes to standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Writes to standard output. Returns `false` if the reader has closed its end, as `head` does. The command then ends
/// without an error.
///
/// # Errors
/// Standard output cannot be written to for another reason.
pub fn print(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes the text that a command was asked for. The command fails if the text cannot be written, unless the reader has
/// closed its end.
pub fn answer(text: impl Display) -> ExitCode {
    match print(&format!("{text}\n")) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flotilla: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a line about the completed work of a command. A failure to write the line is no failure of the command, since
/// its work is done.
pub fn report(line: impl Display) {
    let _ = print(&format!("{line}\n"));
}
