//! The command `flotilla import`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use flotilla_cluster::{Drafts, RestoreError, Revision};
use flotilla_etcd_snapshot::Hash;

use super::encryption::{EncryptionError, Keys};
use super::input::{Input, InputError};
use super::live::{Live, LiveError};
use super::report::Report;
use crate::backup::Founding;

/// Makes a data directory out of what kube-apiserver keeps.
#[derive(Debug, Args)]
pub struct Import {
    #[command(flatten)]
    from: Origin,
    #[command(flatten)]
    founding: Founding,
    /// What the keys of kube-apiserver begin with in etcd, as its flag of this name says.
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
    /// EncryptionConfiguration with the keys by which kube-apiserver has encrypted what it stores.
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
    /// Where to put what cannot be taken over, a line of JSON for each key; without it beside the data directory.
    ///
    /// The file is made only if there is such a thing. There may be Secrets in it.
    #[arg(long, value_name = "FILE")]
    aside: Option<PathBuf>,
    /// Take a snapshot without a hash at its end, as one that was copied out of the directory of an etcd.
    ///
    /// Nobody can tell then whether all of it is there.
    #[arg(long)]
    skip_hash_check: bool,
    /// Only say what would come and what would not. Nothing is written.
    #[arg(long)]
    dry_run: bool,
}

/// Where objects come from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Origin {
    /// Snapshot of etcd, as `etcdctl snapshot save` writes it, of releases 3.4 to 3.6.
    #[arg(long, value_name = "FILE")]
    from_etcd_snapshot: Option<PathBuf>,
    /// Kubeconfig of a running API server, and of somebody who may list everything, Secrets included.
    ///
    /// Each resource comes as of one moment, but not all as of the same one: nobody should write meanwhile.
    #[arg(long, value_name = "KUBECONFIG")]
    from_server: Option<PathBuf>,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The keys cannot be read.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// What is imported cannot be read.
    #[error("cannot import {path}")]
    Input {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: InputError,
    },
    /// The server cannot be asked.
    #[error("cannot import from the server")]
    Live(#[from] LiveError),
    /// The data directory cannot be made.
    #[error(transparent)]
    Found(#[from] RestoreError),
}

impl Import {
    /// Imports, and says on standard output what came and what did not. Without an error the data directory is
    /// complete and durable; with one there is none.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn run(&self) -> Result<(), ImportError> {
        let aside = self.aside.clone().unwrap_or_else(|| self.usual_aside());
        let aside = (!self.dry_run).then_some(&*aside);
        if let Some(kubeconfig) = &self.from.from_server {
            let mut live = Live::open(kubeconfig, aside)?;
            let serve = self.make(live.revision(), live.drafts())?;
            self.tell(serve, &live.report, live.put_aside.as_ref());
        } else if let Some(path) = &self.from.from_etcd_snapshot {
            let keys = self.encryption_provider_config.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
            let hash = if self.skip_hash_check { Hash::Skipped } else { Hash::Demanded };
            let opened = Input::open(path, hash, &self.etcd_prefix, keys, aside);
            let mut input = opened.map_err(|source| ImportError::Input { path: path.clone(), source })?;
            let serve = self.make(input.revision(), input.drafts())?;
            self.tell(serve, &input.report, input.put_aside.as_ref());
        }
        Ok(())
    }

    /// Makes the data directory, with revisions above `last`, unless only a report is wanted. Returns the command that
    /// serves it.
    fn make<E>(
        &self,
        last: Revision,
        mut drafts: impl Iterator<Item = Result<Drafts, E>>,
    ) -> Result<Option<String>, ImportError>
    where
        RestoreError: From<E>,
    {
        if self.dry_run {
            drafts.try_for_each(|drafts| drafts.map(drop)).map_err(RestoreError::from)?;
            return Ok(None);
        }
        let mut options = self.founding.options(&BTreeMap::new(), 0);
        options.above = options.above.max(last).next();
        let serve = self.founding.serve(&options);
        actix_web::rt::System::new().block_on(flotilla_cluster::found(options, drafts))?;
        Ok(Some(serve))
    }

    fn tell(&self, serve: Option<String>, report: &Report, put_aside: Option<&(PathBuf, u64)>) {
        println!("{report}");
        if let Some((path, count)) = put_aside {
            println!("{count} keys that were refused are in {}", path.display());
        }
        match serve {
            Some(serve) => {
                println!("{}: {} objects\n{serve}", self.founding.data_dir.display(), report.taken_count());
            }
            None => println!("nothing was written"),
        }
    }

    fn usual_aside(&self) -> PathBuf {
        let mut path = self.founding.data_dir.clone().into_os_string();
        path.push(".aside");
        path.into()
    }
}
