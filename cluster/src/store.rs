//! The store: opening, writing, read points, shutting down.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use actix::{Actor, Addr};
use tokio::sync::{Mutex, oneshot};

use crate::group::{Admission, Applier, Batch, Lead, Log, Propose, Proposer, Replies, Tables};
use crate::limits::{OBJECT_BYTES_MAX, TRIM_INTERVAL, WRITE_TIMEOUT};
use crate::{Mutation, OpenError, Options, Outcome, ReadError, Revision, Table, TableId, Write, WriteError};

/// A handle on the store of this replica. Cheap to clone; usable from any thread and runtime.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    node: u64,
    tables: Arc<Tables>,
    groups: BTreeMap<Arc<str>, Group>,
    stop: parking_lot::Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

/// What writers need of a group.
struct Group {
    admission: Arc<Admission>,
    proposer: Addr<Proposer<Direct>>,
}

/// What a store is doing, for metrics.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Writes of all groups that wait for their outcome.
    pub writes_waiting: usize,
    /// Bytes of these.
    pub writes_waiting_bytes: usize,
}

impl Store {
    /// Opens the store and waits until everything that was acknowledged before is there and writes can be made.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub async fn open(options: Options) -> Result<Store, OpenError> {
        std::fs::create_dir_all(&options.directory)
            .map_err(|source| OpenError::Directory { directory: options.directory.clone(), source })?;
        let tables = Arc::new(Tables::new(&options));
        let (node, registry) = (options.node, tables.clone());
        let (started, groups) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || actix::System::new().block_on(run(options, registry, started, stopped)))
            .map_err(|source| OpenError::Directory { directory: "thread".into(), source })?;
        let groups = groups.await.map_err(|_| OpenError::Ended)?;
        let stop = parking_lot::Mutex::new(Some((stop, thread)));
        Ok(Store { shared: Arc::new(Shared { node, tables, groups, stop }) })
    }

    /// Id of this replica.
    pub fn node(&self) -> u64 {
        self.shared.node
    }

    /// The table of this name; it comes into being when first asked for.
    pub fn table(&self, id: &TableId) -> Arc<Table> {
        self.shared.tables.table(id)
    }

    /// Every table that was asked for or written to.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.shared.tables.all(None)
    }

    /// Makes one conditional write, and waits until it is durable and visible here.
    ///
    /// # Errors
    /// See [`WriteError`], which also says what may be concluded. A caller that stops waiting may conclude nothing.
    pub async fn write(&self, write: Write) -> Result<Outcome, WriteError> {
        let bytes = match &write.mutation {
            Mutation::Put(draft) if !draft.layout.fits(draft.bytes.len()) => return Err(WriteError::Malformed),
            Mutation::Put(draft) => draft.bytes.len(),
            Mutation::Delete => 0,
        };
        if bytes > OBJECT_BYTES_MAX {
            return Err(WriteError::TooLarge { bytes, bytes_max: OBJECT_BYTES_MAX });
        }
        let table = self.shared.tables.table(&write.table);
        let group = self.shared.groups.get(table.group()).ok_or(WriteError::Unavailable)?;
        let permit = group.admission.admit(bytes + write.key.as_str().len()).ok_or(WriteError::QueueFull)?;
        let (reply, outcome) = oneshot::channel();
        group.proposer.try_send(Propose { write, reply, permit }).map_err(|refused| match refused {
            actix::dev::SendError::Full(_) => WriteError::QueueFull,
            actix::dev::SendError::Closed(_) => WriteError::Closed,
        })?;
        match tokio::time::timeout(WRITE_TIMEOUT, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(WriteError::Unknown),
        }
    }

    /// A linearizable read point: whatever was acknowledged before this call is visible in the table at the revision
    /// that is answered, here.
    ///
    /// # Errors
    /// Leadership cannot be confirmed.
    pub async fn barrier(&self, table: &Table) -> Result<Revision, ReadError> {
        Ok(table.revision())
    }

    /// What the store is doing.
    pub fn status(&self) -> Status {
        let admissions = || self.shared.groups.values().map(|group| &group.admission);
        Status {
            writes_waiting: admissions().map(|admission| admission.writes()).sum(),
            writes_waiting_bytes: admissions().map(|admission| admission.bytes()).sum(),
        }
    }

    /// Stops the store and waits until it has let go of its directory. Other handles then answer `Closed`.
    pub async fn shutdown(self) {
        let Some((stop, thread)) = self.shared.stop.lock().take() else { return };
        let _ = stop.send(());
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

async fn run(
    options: Options,
    tables: Arc<Tables>,
    started: oneshot::Sender<BTreeMap<Arc<str>, Group>>,
    stopped: oneshot::Receiver<()>,
) {
    let names: Vec<Arc<str>> = tables.groups().cloned().collect();
    let mut groups = BTreeMap::new();
    let mut appliers = Vec::new();
    for name in names {
        let applier = Rc::new(Mutex::new(Applier::new(name.clone(), tables.clone(), &options)));
        let genesis = Revision::from_unix_ms(unix_ms());
        let _ = applier.lock().await.apply([Batch::closing(genesis)].into()).await;
        let proposer = Proposer::new(Direct { applier: applier.clone() }).start();
        let above = Some(applier.lock().await.last());
        let _ = proposer.send(Lead { above, leader: Some(options.node) }).await;
        appliers.push(applier);
        groups.insert(name, Group { admission: Arc::default(), proposer });
    }
    let _ = started.send(groups);
    let trim = async {
        loop {
            tokio::time::sleep(TRIM_INTERVAL).await;
            for applier in &appliers {
                applier.lock().await.trim(unix_ms(), Instant::now());
            }
        }
    };
    tokio::select! {
        () = trim => {}
        _ = stopped => {}
    }
}

/// The wall clock, in milliseconds since 1970.
fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// A log that forgets: what is proposed is applied at once.
struct Direct {
    applier: Rc<Mutex<Applier>>,
}

impl Log for Direct {
    fn propose(&mut self, batch: Batch, replies: Replies) -> impl Future<Output = ()> + 'static {
        let applier = self.applier.clone();
        async move {
            match applier.lock().await.apply([batch].into()).await {
                Ok(outcomes) => replies.outcomes(outcomes.into_iter().flatten().collect()),
                Err(_) => replies.fail(WriteError::Unknown),
            }
        }
    }
}
