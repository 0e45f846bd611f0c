//! The command `flotilla import`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use flotilla_cluster::{Drafts, RestoreError, Revision, Unfinished};
use flotilla_etcd_snapshot::Hash;

use super::aside::Aside;
use super::encryption::{EncryptionError, Keys};
use super::following::{Following, FollowingError};
use super::input::{Input, InputError};
use super::journal;
use super::live::{Live, LiveError};
use super::orders::Orders;
use super::report::Report;
use crate::backup::Founding;

/// The file in a data directory where it is collected what a running API server has.
const JOURNAL: &str = "import";

/// Makes a data directory out of what kube-apiserver keeps.
///
/// The same command goes on with an import that was interrupted, or begins it anew.
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
    /// Take over from a running API server as soon as everything has come, and do not follow what changes.
    #[arg(long, requires = "from_server", conflicts_with = "dry_run")]
    once: bool,
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
    /// Once everything has come, changes are followed until SIGUSR1 to this process says to take over: nobody should
    /// write to the server from then on. SIGINT and SIGTERM interrupt; the same command goes on.
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
    /// What the server has cannot be followed, or it was told to stop.
    #[error("the import is not complete; the same command goes on with it")]
    Following(#[from] FollowingError),
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

    /// Says what would come of a server.
    fn try_live(&self, kubeconfig: &Path) -> Result<(), ImportError> {
        let mut live = Live::open(kubeconfig, None)?;
        let serve = self.make(live.revision(), live.drafts())?;
        self.tell(serve, &live.report, live.put_aside.as_ref());
        Ok(())
    }

    /// Copies a server, follows it until told to take over, and makes the data directory then.
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
            eprintln!("flotilla: {} is of no use any more, and cannot be removed: {error}", journal.display());
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
        actix_web::rt::System::new().block_on(flotilla_cluster::create(options, drafts))?;
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
