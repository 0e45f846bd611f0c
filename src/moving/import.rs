//! The command `flotilla import`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use flotilla_cluster::{Drafts, RestoreError, Revision, Unfinished};
use flotilla_etcd_snapshot::Hash;

use super::aside::Aside;
use super::following::{Following, FollowingError};
use super::input::{Input, InputError};
use super::journal;
use super::live::{Live, LiveError};
use super::orders::Orders;
use super::report::Report;
use crate::backup::Founding;
use crate::encryption::{EncryptionError, Keys};
use crate::terminal;

/// The journal in a data directory, with the objects of a running API server.
const JOURNAL: &str = "import";

/// Create a data directory from the objects of kube-apiserver.
///
/// After an interruption, the same command continues the import or starts it again.
#[derive(Debug, Args)]
pub struct Import {
    #[command(flatten)]
    from: Origin,
    #[command(flatten)]
    founding: Founding,
    /// Prefix of all keys in etcd, as kube-apiserver's flag of this name states it.
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
    /// EncryptionConfiguration with the keys that kube-apiserver uses for encryption at rest.
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
    /// File for keys that cannot be imported, a line of JSON for each. Default: DATA_DIR.aside.
    ///
    /// The file is created only if some keys cannot be imported. It may contain Secrets.
    #[arg(long, value_name = "FILE")]
    aside: Option<PathBuf>,
    /// Accept a snapshot without a hash at its end, such as a file copied from an etcd data directory.
    ///
    /// Without the hash, the command cannot check whether the snapshot is complete.
    #[arg(long)]
    skip_hash_check: bool,
    /// Take over from a running API server once all objects were copied, without following later changes.
    #[arg(long, requires = "from_server", conflicts_with = "dry_run")]
    once: bool,
    /// Only report which objects would be imported, and which refused. Nothing is written.
    #[arg(long)]
    dry_run: bool,
}

/// The source of the objects.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Origin {
    /// etcd snapshot, as `etcdctl snapshot save` of releases 3.4 to 3.6 writes it.
    #[arg(long, value_name = "FILE")]
    from_etcd_snapshot: Option<PathBuf>,
    /// Kubeconfig of a running API server, for a user who may list and watch everything, Secrets included.
    ///
    /// After all objects were copied, the import follows changes until this process gets SIGUSR1. Stop all writing
    /// clients before you send it. SIGINT and SIGTERM interrupt the import; the same command continues it.
    #[arg(long, value_name = "KUBECONFIG")]
    from_server: Option<PathBuf>,
}

/// The reason why an import failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The encryption keys cannot be read.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// The snapshot cannot be read.
    #[error("cannot import {path}")]
    Input {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: InputError,
    },
    /// The server cannot be read.
    #[error("cannot import from the server")]
    Live(#[from] LiveError),
    /// Following the server failed or was interrupted.
    #[error("the import is not complete; the same command continues it")]
    Following(#[from] FollowingError),
    /// The data directory cannot be created.
    #[error(transparent)]
    Found(#[from] RestoreError),
}

impl Import {
    /// Imports, and prints a report on standard output. On success, the data directory is complete and durable. On
    /// failure, no server accepts it.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn run(&self) -> Result<(), ImportError> {
        let data_dir = &self.founding.data_dir;
        let aside = self.aside.clone().unwrap_or_else(|| self.usual_aside());
        let aside = (!self.dry_run).then(|| Aside::new(&aside, data_dir));
        if let Some(kubeconfig) = &self.from.from_server {
            match self.dry_run {
                true => self.try_live(kubeconfig)?,
                false => self.follow(kubeconfig, aside)?,
            }
        } else if let Some(path) = &self.from.from_etcd_snapshot {
            let keys = self.encryption_provider_config.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
            let hash = if self.skip_hash_check { Hash::Skipped } else { Hash::Demanded };
            let opened = Input::open(path, hash, &self.etcd_prefix, keys, aside);
            let mut input = opened.map_err(|source| ImportError::Input { path: path.clone(), source })?;
            let serve = self.make(input.revision(), input.drafts())?;
            input.complete();
            self.tell(serve, &input.report, input.put_aside.as_ref());
        }
        Ok(())
    }

    /// Reports which objects would be imported from a server.
    fn try_live(&self, kubeconfig: &Path) -> Result<(), ImportError> {
        let mut live = Live::open(kubeconfig, None)?;
        let serve = self.make(live.revision(), live.drafts())?;
        self.tell(serve, &live.report, live.put_aside.as_ref());
        Ok(())
    }

    /// Copies a server, follows it until a signal requests the takeover, and then creates the data directory.
    fn follow(&self, kubeconfig: &Path, aside: Option<Aside>) -> Result<(), ImportError> {
        let orders = Orders::listen(self.once).map_err(FollowingError::Signals)?;
        let collected = [JOURNAL, &*format!("{JOURNAL}.{}", journal::BESIDE)];
        let unfinished = Unfinished::begin(&self.founding.data_dir, &collected)?;
        let live = Live::open(kubeconfig, aside)?;
        let journal = self.founding.data_dir.join(JOURNAL);
        let mut following = Following::open(live, &journal, orders)?;
        following.run()?;
        let mut options = self.founding.options(&BTreeMap::new(), 0);
        options.above = options.above.max(following.revision()).next();
        let serve = self.founding.serve(&options);
        actix_web::rt::System::new().block_on(unfinished.create(options, following.drafts()))?;
        let removed = fs::remove_file(&journal);
        let mut live = following.into_live();
        live.complete();
        self.tell(Some(serve), &live.report, live.put_aside.as_ref());
        if let Err(error) = removed {
            eprintln!("flotilla: {} is no longer needed, but cannot be removed: {error}", journal.display());
        }
        Ok(())
    }

    /// Creates the data directory, with revisions above `last`. Returns the command that serves it. With `dry_run`,
    /// only reads all drafts and returns `None`.
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
        actix_web::rt::System::new().block_on(flotilla_cluster::create(options, drafts))?;
        Ok(Some(serve))
    }

    fn tell(&self, serve: Option<String>, report: &Report, put_aside: Option<&(PathBuf, u64)>) {
        terminal::report(report);
        if let Some((path, count)) = put_aside {
            terminal::report(format_args!("{count} keys that were refused are in {}", path.display()));
        }
        match serve {
            Some(serve) => {
                terminal::report(format_args!(
                    "{}: {} objects\n{serve}",
                    self.founding.data_dir.display(),
                    report.taken_count()
                ));
            }
            None => terminal::report("nothing was written"),
        }
    }

    fn usual_aside(&self) -> PathBuf {
        let mut path = self.founding.data_dir.clone().into_os_string();
        path.push(".aside");
        path.into()
    }
}
