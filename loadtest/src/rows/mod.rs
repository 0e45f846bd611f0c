//! The rows of the cost table: each one repeats one kind of request.

mod custom;
mod plugged;
mod policies;
mod read;
mod write;

use std::sync::Arc;
use std::time::Duration;

use self::plugged::Plug;
use crate::backend::Backend;
use crate::connection::{Client, Connector, Error};
use crate::numbers::Numbers;
use crate::operation::{Load, Operation, run};
use crate::process::Processes;
use crate::report::Figures;
use crate::seed;
use crate::watchers::{self, Pace, Plan};

/// The server and the settings with which rows run.
pub struct Context {
    /// Opens connections to the server.
    pub connector: Arc<Connector>,
    /// The processes of the server.
    pub processes: Processes,
    /// The namespace of all objects.
    pub namespace: String,
    /// The number of seeded pods.
    pub pods: usize,
    /// The number of concurrent clients. `None` for the row's default.
    pub clients: Option<usize>,
    /// The number of HTTP/2 connections that clients share.
    pub connections: usize,
    /// How long a row is measured.
    pub duration: Duration,
    /// How long a row runs before that.
    pub warmup: Duration,
    /// The largest number of requests of a row.
    pub requests_max: u64,
    /// The number of concurrent watches. `None` for the row's default.
    pub watchers: Option<usize>,
    /// Changes per second of rows with a steady rate.
    pub changes_per_second: u32,
    /// The resident memory of the server without pods, in KiB.
    pub baseline_kib: u64,
}

/// Makes the requests of client `number` of a row.
type Make = fn(context: &Context, number: usize) -> Box<dyn Operation>;

/// The servers and objects that the requests of a row need besides pods.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// A custom resource.
    Definition(&'static custom::Definition),
    /// Admission policies.
    Policies,
    /// Another server.
    Plug(Plug),
}

impl Needs {
    /// Provides the servers and objects that the requests need. The caller keeps the returned server until the last
    /// request is answered.
    async fn provide(self, client: &mut Client, context: &Context) -> Result<Option<Backend>, Error> {
        match self {
            Self::Nothing => Ok(None),
            Self::Definition(definition) => definition.define(client).await.map(|()| None),
            Self::Policies => policies::enforce(client, context).await.map(|()| None),
            Self::Plug(plug) => plug.connect(client, context).await.map(Some),
        }
    }

    /// Removes the objects that `provide` has created.
    async fn remove(self, client: &mut Client, context: &Context) -> Result<(), Error> {
        match self {
            Self::Nothing => Ok(()),
            Self::Definition(definition) => definition.forget(client).await,
            Self::Policies => policies::lift(client).await,
            Self::Plug(plug) => plug.disconnect(client, context).await,
        }
    }
}

/// How a row is measured.
enum Kind {
    /// Clients in a closed loop.
    Loop {
        /// The default number of clients.
        clients: usize,
        /// The number of requests in one operation.
        requests_per_operation: u64,
        /// Makes the requests of a client.
        make: Make,
        /// The servers and objects that the requests need besides pods.
        needs: Needs,
    },
    /// Changes that watches deliver.
    Watch {
        /// The default number of watchers.
        watchers: usize,
        /// Whether changes come at a steady rate, and not one after the other.
        is_steady: bool,
    },
    /// Bytes through port-forwards.
    Forward,
    /// Streams of exec that stay open.
    Exec {
        /// The number of streams.
        streams: usize,
    },
    /// No requests.
    Idle,
    /// Resident memory.
    Memory,
}

/// A row of the cost table.
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// The subject of the row.
    pub about: &'static str,
    kind: Kind,
    /// Whether the row creates pods that would disturb other rows.
    leaves_pods: bool,
}

const fn closed(name: &'static str, about: &'static str, clients: usize, make: Make) -> Row {
    needing(name, about, clients, make, Needs::Nothing)
}

const fn needing(name: &'static str, about: &'static str, clients: usize, make: Make, needs: Needs) -> Row {
    Row { name, about, kind: Kind::Loop { clients, requests_per_operation: 1, make, needs }, leaves_pods: false }
}

const KUBELET: Needs = Needs::Plug(Plug::Kubelet);

/// All rows, in the order of the cost table.
pub static ROWS: &[Row] = &[
    closed("get", "GET a pod, most recent", 32, read::get),
    closed("get-any", "GET a pod at resourceVersion=0", 32, read::get_any),
    closed("get-missing", "GET that answers 404", 32, read::get_missing),
    closed("list", "LIST all pods as JSON", 1, read::list),
    closed("list-protobuf", "LIST all pods as protobuf", 1, read::list_protobuf),
    closed("list-metadata", "LIST all pods as metadata only", 1, read::list_metadata),
    closed("list-table", "LIST 500 pods as Table", 1, read::list_table),
    closed("select-nothing", "LIST with a label selector that matches no pod", 1, read::select_nothing),
    closed("select-indexed", "LIST with spec.nodeName of no pod, which an index serves", 1, read::select_indexed),
    Row { leaves_pods: true, ..closed("post-pod", "POST a pod", 16, write::post_pod) },
    Row {
        leaves_pods: true,
        ..needing(
            "post-webhooks",
            "POST a pod that a mutating and a validating webhook are asked about",
            16,
            write::post_pod,
            Needs::Plug(Plug::Webhooks),
        )
    },
    Row {
        leaves_pods: true,
        ..needing(
            "post-policies",
            "POST a pod under 10 policies of 3 expressions",
            16,
            write::post_pod,
            Needs::Policies,
        )
    },
    needing(
        "post-ruled",
        "POST a custom resource with 20 rules in CEL",
        16,
        custom::post_ruled,
        Needs::Definition(&custom::RULED),
    ),
    needing(
        "post-unruled",
        "POST the same custom resource without rules",
        16,
        custom::post_unruled,
        Needs::Definition(&custom::UNRULED),
    ),
    closed("patch-merge", "PATCH (merge) an annotation of a pod", 16, write::patch_merge),
    closed("patch-status", "PATCH (strategic merge) the status of a pod", 16, write::patch_status),
    closed("apply", "PATCH (server-side apply) a small ConfigMap", 16, write::apply),
    closed("lease", "PUT a lease, 64 clients", 64, write::lease),
    closed("lease-single", "PUT a lease, 1 client", 1, write::lease),
    Row {
        name: "configmap-churn",
        about: "POST and DELETE a ConfigMap (one operation is both)",
        kind: Kind::Loop { clients: 16, requests_per_operation: 2, make: write::churn, needs: Needs::Nothing },
        leaves_pods: false,
    },
    Row {
        name: "watch",
        about: "one change to many watchers, per delivery",
        kind: Kind::Watch { watchers: 500, is_steady: false },
        leaves_pods: false,
    },
    Row {
        name: "watch-steady",
        about: "many changes per second to few watchers, per delivery; latency starts at the writer's answer",
        kind: Kind::Watch { watchers: 4, is_steady: true },
        leaves_pods: false,
    },
    closed("discovery", "GET aggregated discovery", 8, read::discovery),
    needing("proxy", "GET two bytes through the proxy of a node", 16, plugged::proxied, KUBELET),
    needing("logs", "GET a log of 100 MB from a kubelet", 1, plugged::log, KUBELET),
    Row { name: "port-forward", about: "100 MB through a port-forward", kind: Kind::Forward, leaves_pods: false },
    Row {
        name: "exec",
        about: "memory of 1,000 streams of exec that stay open",
        kind: Kind::Exec { streams: 1_000 },
        leaves_pods: false,
    },
    Row { name: "memory", about: "resident memory per seeded pod", kind: Kind::Memory, leaves_pods: false },
    Row { name: "idle", about: "CPU and memory without requests", kind: Kind::Idle, leaves_pods: false },
];

impl Row {
    /// Measures the row.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or refuses a request that the row depends on.
    pub async fn measure(&self, context: &Context) -> Result<Figures, Error> {
        let mut client = context.connector.open().await?;
        seed::namespace(&mut client, &context.namespace).await?;
        match &self.kind {
            Kind::Loop { clients, requests_per_operation, make, needs } => {
                let load = Load {
                    clients: context.clients.unwrap_or(*clients),
                    connections: context.connections,
                    duration: context.duration,
                    warmup: context.warmup,
                    requests_max: context.requests_max,
                    requests_per_operation: *requests_per_operation,
                };
                if self.leaves_pods {
                    seed::namespace(&mut client, &write::posted(context)).await?;
                }
                let _backend = needs.provide(&mut client, context).await?;
                let operation = |number| make(context, number);
                let figures = run(self.name, &load, &context.connector, &context.processes, &operation).await;
                if self.leaves_pods {
                    seed::delete_pods(&mut client, &write::posted(context)).await?;
                }
                needs.remove(&mut client, context).await?;
                figures
            }
            Kind::Watch { watchers, is_steady } => {
                let steady =
                    Pace::Steady { per_second: context.changes_per_second, clients: context.clients.unwrap_or(16) };
                let plan = Plan {
                    watchers: context.watchers.unwrap_or(*watchers),
                    duration: context.duration,
                    changes_max: context.requests_max,
                    pace: if *is_steady { steady } else { Pace::Single },
                };
                let figures = watchers::run(plan, &context.namespace, &context.connector, &context.processes).await?;
                Ok(Figures { row: self.name.into(), ..figures })
            }
            Kind::Forward => {
                let _backend = KUBELET.provide(&mut client, context).await?;
                let figures = plugged::forward(context).await?;
                KUBELET.remove(&mut client, context).await?;
                Ok(figures)
            }
            Kind::Exec { streams } => {
                let _backend = KUBELET.provide(&mut client, context).await?;
                let figures = plugged::exec(context, context.clients.unwrap_or(*streams)).await?;
                KUBELET.remove(&mut client, context).await?;
                Ok(figures)
            }
            Kind::Idle => idle(context).await,
            Kind::Memory => memory(context),
        }
    }
}

async fn idle(context: &Context) -> Result<Figures, Error> {
    let cpu = context.processes.cpu_seconds()?;
    let start = std::time::Instant::now();
    tokio::time::sleep(context.duration).await;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = context.processes.cpu_seconds()? - cpu;
    Ok(Figures {
        row: "idle".into(),
        seconds,
        core_percent: Some(cpu / seconds * 100.0),
        resident_kib: Some(context.processes.resident_kib()?),
        ..Figures::default()
    })
}

fn memory(context: &Context) -> Result<Figures, Error> {
    let resident = context.processes.resident_kib()?;
    let per_pod = resident.saturating_sub(context.baseline_kib) as f64 / context.pods.max(1) as f64;
    Ok(Figures {
        row: "memory".into(),
        resident_kib: Some(resident),
        resident_kib_per_pod: Some(per_pod),
        ..Figures::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_different_names() {
        let mut names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
