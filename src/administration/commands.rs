//! The commands under `flotilla cluster`.

use std::io;
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
use crate::limits;
use crate::pki::KubeconfigError;
use crate::terminal::print;

/// A command about a cluster.
#[derive(Debug, Args)]
pub struct Cluster {
    #[command(subcommand)]
    command: Command,
    /// Kubeconfig with the address of a member and the user, who must be in the group system:masters.
    #[arg(long, global = true, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// Form of the output.
    #[arg(long, short, global = true, value_name = "FORM", default_value = "text")]
    output: Output,
    /// How long to wait for a change. The change goes on after that, and the same command waits for it again.
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
    /// Show the members and the groups, as one member sees them.
    ///
    /// A member without a VOTE is still receiving the data. REACHABLE says whether the answering member has a
    /// connection to it. LEADS counts the groups that the member leads; the second table names the leader of every
    /// group, and PREFERRED is the member of the last transfer with --prefer.
    Status,
    /// Admit the server that listens at an address for other members.
    ///
    /// The server takes the place of a member of the same name. To replace a member that lost its disk, start it with
    /// an empty data directory and the same flags as before, then admit it. In one group after the other it receives
    /// all data and then a vote, which may take minutes.
    Join {
        /// Name and address for other members (--name and --peer-listen of `flotilla serve`).
        #[arg(value_name = "NAME=HOST:PORT")]
        member: NewMember,
    },
    /// Take a member out. It first hands over the groups that it leads.
    ///
    /// Stop its server afterwards: it has no quorum any more. A cluster of two members tolerates no failure: admit
    /// another one soon.
    Remove {
        /// Name of the member.
        name: String,
    },
    /// Make a member the leader, for a while or whenever it can.
    ///
    /// The member leads for ten minutes, unless it is drained or fails. After that a group goes back to its preferred
    /// member, if it has one, and the members spread the leaders of the other groups evenly again.
    Transfer {
        /// Name of the member.
        #[arg(required_unless_present = "no_preference")]
        name: Option<String>,
        /// The group; by default all groups that exist now.
        #[arg(long, value_name = "GROUP")]
        group: Option<String>,
        /// Prefer the member from now on: it leads whenever it can.
        ///
        /// While it is away or drained others lead; once it is back they hand the group to it. The cluster keeps the
        /// preference until another transfer changes it or the member is removed; a server that replaces the member
        /// inherits it. Backups do not contain it.
        #[arg(long)]
        prefer: bool,
        /// Prefer no member any more. Without a name, leaders stay where they are.
        #[arg(long, conflicts_with = "prefer")]
        no_preference: bool,
    },
    /// Move leaders away from a member, and keep them away.
    ///
    /// The drain lasts until the member restarts, or until `drain --undo`. The member goes on voting and answering, and
    /// leads only groups that no other member can lead. A server that stops hands over by itself.
    Drain {
        /// Name of the member.
        name: String,
        /// Let it lead again.
        #[arg(long)]
        undo: bool,
    },
    /// Show the number of shards of resources, or change it while they are in use.
    ///
    /// Reads and watches notice nothing; writes wait for some milliseconds at the end. A change goes on when this
    /// command or a server is stopped, and the same command waits for it again. A change takes as long as writing the
    /// objects once more, and as much disk and memory until the history of the former shards is over.
    Shards {
        /// Resources with their new number of shards: `pods=8`, `apps/deployments=2`, or for a custom resource
        /// `example.com/widgets=4`, which need not exist yet. `large` stands for the resources that large clusters
        /// write most.
        #[arg(value_name = "RESOURCE=N")]
        shards: Vec<String>,
    },
}

/// The server to admit, `NAME=HOST:PORT`.
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

/// The reasons why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The numbers of shards are impossible.
    #[error(transparent)]
    Shards(#[from] ShardsError),
    /// The server refuses or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The change takes longer than the timeout of the command.
    #[error("not finished after {0} seconds; it goes on, and the same command waits for it again")]
    GoingOn(u64),
    /// Standard output cannot be written to.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

impl Cluster {
    /// Runs the command. It writes the result to standard output, and progress to standard error.
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
                eprintln!("admitting {name} at {address}: it receives the data that it lacks, which may take minutes");
                (self.change(&client, messages::JOIN, join)?, format!("{name} is a member\n"))
            }
            Command::Remove { name } => {
                let named = Named { name: name.clone() };
                match self.change(&client, messages::REMOVE, &named) {
                    Err(CommandError::Client(ClientError::Refused { message, unknown, .. }))
                        if unknown == "members" =>
                    {
                        // The server is a member already: the answer to an earlier attempt may have been lost.
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

    /// Requests a change until it is made.
    fn change(&self, client: &Client, path: &str, change: &impl Serialize) -> Result<ClusterView, CommandError> {
        let began = Instant::now();
        let mut reported = Duration::ZERO;
        loop {
            if let Changed::Done(view) = client.change(path, change)? {
                return Ok(view);
            }
            let waited = began.elapsed();
            if waited.as_secs() >= self.timeout {
                return Err(CommandError::GoingOn(self.timeout));
            }
            if waited >= reported + limits::ADMINISTRATION_PROGRESS_INTERVAL {
                reported = waited;
                eprintln!("still going on after {} s", waited.as_secs());
            }
        }
    }

    fn tell(&self, view: &ClusterView, sentence: &str) -> Result<(), CommandError> {
        let text = match self.output {
            Output::Text => sentence.to_owned(),
            Output::Json => serde_json::to_string_pretty(view).map_err(io::Error::from)? + "\n",
        };
        print(&text)?;
        Ok(())
    }
}

/// Describes the state after a transfer.
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
