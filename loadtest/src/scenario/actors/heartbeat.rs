//! The actor `heartbeat`: nodes that renew their leases and update their status, spread evenly over the period.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use hyper::Method;
use serde_json::{Value, json};

use super::{Task, made, node_name};
use crate::connection::{Call, Error};
use crate::objects;
use crate::scenario::check::Broken;
use crate::scenario::file::{Arrivals, Heartbeat, Pace};
use crate::scenario::record::Kind;
use crate::scenario::result::Since;
use crate::scenario::run::Run;
use crate::scenario::stream;

struct Nodes {
    run: Rc<Run>,
    count: usize,
    /// The revision of each lease, or 0 if it is not known. Leases of other parts stay at 0.
    revisions: Vec<Cell<u64>>,
    leases: String,
    lease: Kind,
    status: Kind,
}

/// Creates nodes and their leases. Returns the tasks that renew and update them.
pub async fn prepare(run: &Rc<Run>, name: String, how: &Heartbeat) -> Result<Vec<Task>, Error> {
    made::nodes(run, how.count).await?;
    let (lease, status) = {
        let mut recorder = run.recorder.borrow_mut();
        let kind = |recorder: &mut crate::scenario::record::Recorder, what| {
            recorder.kind(&format!("{name}/{what}"), Since::Due)
        };
        (kind(&mut recorder, "lease"), kind(&mut recorder, "status"))
    };
    let nodes = Rc::new(Nodes {
        run: run.clone(),
        count: how.count,
        revisions: vec![Cell::new(0); how.count],
        leases: objects::leases(&run.namespace),
        lease,
        status,
    });
    run.each(run.part.numbers(how.count), |number| nodes.first(number)).await?;
    let pace = |seconds: f64| Pace {
        rate: Some(how.count as f64 / seconds),
        clients: None,
        arrivals: Arrivals::Even,
        total: None,
    };
    let (renewing, telling) = (nodes.clone(), nodes);
    let lease = stream::run(run.clone(), format!("{name}/lease"), pace(how.lease_seconds), move |number, due| {
        renewing.clone().renew(number, due)
    });
    let status = stream::run(run.clone(), format!("{name}/status"), pace(how.status_seconds), move |number, due| {
        telling.clone().update_status(number, due)
    });
    Ok(vec![Box::pin(lease), Box::pin(status)])
}

impl Nodes {
    /// Creates the lease of a node, or reads its revision if it exists.
    async fn first(&self, number: usize) -> Result<(), Error> {
        let now = self.run.unix_micros(Instant::now());
        let mut body = self.body(number, now);
        body["metadata"].as_object_mut().map(|metadata| metadata.remove("resourceVersion"));
        let call = Call::with_json(Method::POST, self.leases.clone(), body.to_string()).keeping_body();
        let mut answer = self.run.must(&call, &[409]).await?;
        if answer.status.as_u16() == 409 {
            let get = Call::get(format!("{}/{}", self.leases, node_name(number))).keeping_body();
            answer = self.run.must(&get, &[]).await?;
        }
        self.revisions[number].set(self.run.answered(&call, &answer, |lease| lease.revision()).unwrap_or(0));
        Ok(())
    }

    fn body(&self, number: usize, now: u64) -> Value {
        let name = node_name(number);
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "resourceVersion": self.revisions[number].get().to_string()},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": made::micro_time(now)},
        })
    }

    async fn renew(self: Rc<Self>, number: usize, due: Instant) {
        let Some(number) = self.run.part.number_of(number, self.count) else { return };
        let before = self.revisions[number].get();
        let now = self.run.unix_micros(Instant::now());
        let path = format!("{}/{}", self.leases, node_name(number));
        let call = Call::with_json(Method::PUT, path, self.body(number, now).to_string()).keeping_body();
        let Some(answer) = self.run.ask(self.lease, due, &call, &[]).await else {
            return self.learn(number).await;
        };
        let wanted = format!(r#""renewTime":"{}""#, made::micro_time(now));
        if memchr::memmem::find(&answer.body, wanted.as_bytes()).is_none() {
            self.run.broken(Broken::WrongBody, || format!("{}: the answer does not contain {wanted}", call.path));
        }
        if let Some(revision) = self.run.answered(&call, &answer, |lease| lease.revision()) {
            if revision <= before {
                self.run.broken(Broken::Stale, || format!("{}: {revision} after {before}", call.path));
            }
            self.run.acknowledge(&call.path, revision);
            self.revisions[number].set(revision.max(self.revisions[number].get()));
        }
    }

    /// Reads the lease after a failed renewal, because the renewal may have taken effect.
    async fn learn(&self, number: usize) {
        let get = Call::get(format!("{}/{}", self.leases, node_name(number))).keeping_body();
        if let Ok(answer) = self.run.must(&get, &[]).await
            && let Some(revision) = self.run.answered(&get, &answer, |lease| lease.revision())
        {
            self.revisions[number].set(revision);
        }
    }

    async fn update_status(self: Rc<Self>, number: usize, due: Instant) {
        let Some(number) = self.run.part.number_of(number, self.count) else { return };
        let name = node_name(number);
        let body = json!({"status": {"conditions": made::conditions(&made::time())}}).to_string();
        let mut call = Call::with_json(Method::PATCH, format!("/api/v1/nodes/{name}/status"), body).keeping_body();
        call.body = call.body.map(|(_, bytes)| ("application/strategic-merge-patch+json", bytes));
        let Some(answer) = self.run.ask(self.status, due, &call, &[]).await else { return };
        let revision = self.run.answered(&call, &answer, |node| {
            if node.metadata.name == name { node.revision() } else { Err(format!("found {}", node.metadata.name)) }
        });
        self.run.acknowledge("/api/v1/nodes", revision.unwrap_or(0));
    }
}
