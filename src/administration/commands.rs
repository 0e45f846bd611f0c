//! The commands under `flotilla cluster`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::client::{Changed, Client, ClientError};
use super::kubeconfig::Kubeconfig;
use super::messages::{self, ClusterView, Divide, Drain, Join, Named, Preference, Transfer};
use super::shown;
use crate::config::{self, Shards, ShardsError, is_member_address, is_member_name};
use crate::pki::KubeconfigError;

/// A command about a cluster.
#[derive(Debug, Args)]
pub struct Cluster {
    #[command(subcommand)]
    command: Command,
    /// Kubeconfig that says where a member serves and who asks: a member of the group system:masters.
    #[arg(long, global = true, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// How what is told is written.
    #[arg(long, short, global = true, value_name = "FORM", default_value = "text")]
    output: Output,
    /// How long a change is waited for. It goes on after that, and the same command waits for it again.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 900)]
    timeout: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables and sentences, for people.
    Text,
    /// The cluster as JSON, for programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the members and the groups, as the server sees them.
    ///
    /// A member without a VOTE is still being sent what it lacks. REACHABLE is told from the side of the server that is
    /// asked. LEADS counts the groups that the member leads; every group has the leader that the second table names,
    /// and PREFERRED is the member that was transferred to with --prefer.
    Status,
    /// Admit the server that listens at an address for other members.
    ///
    /// It takes the place of a member of the same name, so that this one command replaces a member that lost its disk:
    /// start it with an empty data directory and the same flags as before, then admit it. It is sent everything and
    /// given a vote after that, in one group after the other, which may take minutes.
    Join {
        /// Its name and where it listens for other members (--name and --peer-listen of `flotilla serve`).
        #[arg(value_name = "NAME=HOST:PORT")]
        member: NewMember,
    },
    /// Take a member out. What it leads is handed over first.
    ///
    /// Stop its server afterwards: it has no quorum any more. Two members tolerate the failure of none, so admit
    /// another one soon.
    Remove {
        /// Name of the member.
        name: String,
    },
    /// Let a member lead, for a while or whenever it can.
    ///
    /// What was transferred stays with the member for ten minutes, unless that is drained or fails. After that a group
    /// goes back to the member that is preferred for it, if one is, and the members spread the leaders of the others
    /// evenly again.
    Transfer {
        /// Name of the member.
        #[arg(required_unless_present = "no_preference")]
        name: Option<String>,
        /// The only group that is meant; without it, all that there are now.
        #[arg(long, value_name = "GROUP")]
        group: Option<String>,
        /// Prefer the member from now on: it leads whenever it can.
        ///
        /// While it is away or drained others lead, and it is handed the group once it is back. The cluster keeps this
        /// until it is said otherwise or the member is removed; whoever replaces the member takes it over. Backups do
        /// not have it.
        #[arg(long)]
        prefer: bool,
        /// Prefer no member any more. Without a name nothing is transferred at once.
        #[arg(long, conflicts_with = "prefer")]
        no_preference: bool,
    },
    /// Let others lead what a member leads, and give it nothing to lead.
    ///
    /// That lasts until the member is started anew, or drained with --undo. It goes on voting and answering, and leads
    /// only what no other member can. A server that is stopped hands over by itself.
    Drain {
        /// Name of the member.
        name: String,
        /// Let it lead again.
        #[arg(long)]
        undo: bool,
    },
    /// Show how many shards resources have, or change that while they are used.
    ///
    /// Whoever reads or watches notices nothing; writers wait for some milliseconds in the end. A change goes on when
    /// this command or a server is stopped, and the same command waits for it again. It takes as long as it takes to
    /// write the objects once more, and as much disk and memory until the history of the former shards is over.
    Shards {
        /// Resources, with how many shards each is to have: `pods=8`, `apps/deployments=2`, or of a custom resource
        /// `example.com/widgets=4`, which need not exist yet. `large` stands for what large clusters write most.
        #[arg(value_name = "RESOURCE=N")]
        shards: Vec<String>,
    },
}

/// Who is to be a member.
#[derive(Debug, Clone)]
struct NewMember(Join);

impl FromStr for NewMember {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (name, address) = text.split_once('=').ok_or("it must be NAME=HOST:PORT")?;
        if !is_member_name(name) {
            return Err("the name takes letters, digits, dashes, dots and underscores, 63 at most");
        }
        if !is_member_address(address) {
            return Err("what follows the name must be HOST:PORT");
        }
        Ok(Self(Join { name: name.to_owned(), address: address.to_owned() }))
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It is not known whom to ask.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// What is asked for cannot be.
    #[error(transparent)]
    Shards(#[from] ShardsError),
    /// The server does not do it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It takes longer than the command was to wait.
    #[error("not finished after {0} seconds; it goes on, and the same command waits for it again")]
    GoingOn(u64),
    /// What is to be told cannot be written.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

impl Cluster {
    /// Does what the command says. The result goes to standard output, what is going on to standard error.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub fn run(&self) -> Result<(), CommandError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        let (view, sentence) = match &self.command {
            Command::Status => {
                let view = client.status()?;
                let text = shown::cluster(&view);
                (view, text)
            }
            Command::Join { member: NewMember(join) } => {
                let Join { name, address } = join;
                eprintln!("admitting {name} at {address}: it is sent what it lacks, which may take minutes");
                (self.change(&client, messages::JOIN, join)?, format!("{name} is a member\n"))
            }
            Command::Remove { name } => {
                let named = Named { name: name.clone() };
                match self.change(&client, messages::REMOVE, &named) {
                    Err(CommandError::Client(ClientError::Refused { message, unknown, .. }))
                        if unknown == "members" =>
                    {
                        // That is how it is to be, and how it is found when the answer of the first attempt was lost.
                        (client.status()?, format!("{message}\n"))
                    }
                    changed => (changed?, format!("{name} is not a member any more\n")),
                }
            }
            Command::Transfer { name, group, prefer, no_preference } => {
                let preference = match (prefer, no_preference) {
                    (true, _) => Some(Preference::Named),
                    (false, true) => Some(Preference::Nobody),
                    (false, false) => None,
                };
                let transfer = Transfer { name: name.clone(), group: group.clone(), preference };
                (self.change(&client, messages::TRANSFER, &transfer)?, transferred(&transfer))
            }
            Command::Drain { name, undo } => {
                let drain = Drain { name: name.clone(), undo: *undo };
                let sentence =
                    if *undo { format!("{name} may lead again\n") } else { format!("others lead what {name} led\n") };
                (self.change(&client, messages::DRAIN, &drain)?, sentence)
            }
            Command::Shards { shards } => {
                let shards: Shards = shards.join(",").parse()?;
                let view = match shards.largest() {
                    0 => client.status()?,
                    _ => self.change(&client, messages::SHARDS, &Divide { shards })?,
                };
                let text = shown::shards(&view);
                (view, text)
            }
        };
        self.tell(&view, &sentence)
    }

    /// Asks for a change until it is made.
    fn change(&self, client: &Client, path: &str, change: &impl Serialize) -> Result<ClusterView, CommandError> {
        let began = Instant::now();
        let mut told = Duration::ZERO;
        loop {
            if let Changed::Done(view) = client.change(path, change)? {
                return Ok(view);
            }
            let waited = began.elapsed();
            if waited.as_secs() >= self.timeout {
                return Err(CommandError::GoingOn(self.timeout));
            }
            if waited >= told + TELL_INTERVAL {
                told = waited;
                eprintln!("still going on after {} s", waited.as_secs());
            }
        }
    }

    fn tell(&self, view: &ClusterView, sentence: &str) -> Result<(), CommandError> {
        let text = match self.output {
            Output::Text => sentence.to_owned(),
            Output::Json => serde_json::to_string_pretty(view).map_err(io::Error::from)? + "\n",
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}

/// What is so after a transfer.
fn transferred(Transfer { name, group, preference }: &Transfer) -> String {
    let what = group.as_ref().map_or("every group".to_owned(), |group| format!("the group {group}"));
    let leads = name.as_ref().map(|name| format!("{name} leads {what}"));
    match (leads, preference) {
        (Some(leads), None) => format!("{leads}\n"),
        (Some(leads), Some(Preference::Named)) => format!("{leads}, and is preferred from now on\n"),
        (Some(leads), Some(Preference::Nobody)) => format!("{leads}, and no member is preferred any more\n"),
        (None, _) => format!("no member is preferred for {} any more\n", group.as_ref().map_or("any group", |_| &what)),
    }
}

/// How often somebody who waits is told so.
const TELL_INTERVAL: Duration = Duration::from_secs(10);
