//! `flotilla console`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{LINKS_PATH, OPEN_PATH};
use crate::administration::{Client, ClientError, Kubeconfig, KubeconfigError};
use crate::config;

/// What a server answers to whoever asks for a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// What its query has as `token`.
    pub token: String,
    /// How long it can be used.
    pub seconds: u64,
}

/// Make a link to the console of a member.
#[derive(Debug, Args)]
pub struct Console {
    /// Kubeconfig that says where the member serves and who asks: whoever uses the link sees what that user may.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// It is not known whom to ask.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server makes none.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It cannot be written.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

impl Console {
    /// Writes a link to standard output, and how long it is good to standard error.
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
