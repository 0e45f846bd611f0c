//! `flotilla console`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{LINKS_PATH, OPEN_PATH};
use crate::administration::{Client, ClientError, Kubeconfig};
use crate::config;
use crate::pki::KubeconfigError;

/// The answer to a request for a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The value of the parameter `token` in the query of the link.
    pub token: String,
    /// The time for which the link can be opened, in seconds.
    pub seconds: u64,
}

/// Issue a link to the console of a member.
#[derive(Debug, Args)]
pub struct Console {
    /// Kubeconfig with the address of the member and the user whose rights the link has.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
}

/// The reasons why no link was issued.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server issues no link.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Standard output cannot be written to.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

impl Console {
    /// Writes a link to standard output, and the time for which it is valid to standard error.
    ///
    /// # Errors
    /// See [`ConsoleError`].
    pub fn run(&self) -> Result<(), ConsoleError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        let Link { token, seconds } = client.obtain(LINKS_PATH)?;
        writeln!(io::stdout(), "{}{OPEN_PATH}?token={token}", client.server().trim_end_matches('/'))?;
        eprintln!("The link opens the console once, within {} minutes.", seconds.div_ceil(60));
        Ok(())
    }
}
