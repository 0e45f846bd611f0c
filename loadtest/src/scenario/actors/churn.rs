//! The actor `churn`: objects that are created, become ready and are deleted.

use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use super::{Task, made, node_name};
use crate::connection::{Call, Error};
use crate::objects;
use crate::scenario::file::{Churn, Made};
use crate::scenario::mark::{ANNOTATION, Mark, Object};
use crate::scenario::record::{Kind, Times};
use crate::scenario::result::Since;
use crate::scenario::run::Run;
use crate::scenario::stream;

const SANDBOXES: &str = "sandboxes";

/// The number of nodes for pods, if no other actor creates nodes.
const NODES: usize = 10;

struct Kinds {
    create: Kind,
    bind: Kind,
    status: Kind,
    custom: Kind,
    ready: Kind,
    delete: Kind,
}

struct Churner {
    run: Rc<Run>,
    name: String,
    how: Churn,
    kinds: Kinds,
}

/// Creates the nodes and definitions that the objects need. Returns the task that creates the objects.
pub async fn prepare(run: &Rc<Run>, name: String, how: &Churn) -> Result<Task, Error> {
    if how.object == Made::Sandbox {
        made::define(run, SANDBOXES, "Sandbox").await?;
    }
    if matches!(how.object, Made::Pod | Made::Sandbox) && run.nodes.get() == 0 {
        made::nodes(run, NODES).await?;
    }
    let kinds = {
        let mut recorder = run.recorder.borrow_mut();
        let mut kind = |what: &str, since| recorder.kind(&format!("{name}/{what}"), since);
        Kinds {
            create: kind("create", how.pace.since()),
            bind: kind("bind", Since::Sent),
            status: kind("status", Since::Sent),
            custom: kind("custom", how.pace.since()),
            // `ready` measures the time from when the object was due until it is ready.
            ready: kind("ready", Since::Due),
            delete: kind("delete", Since::Due),
        }
    };
    let (pace, churner) =
        (how.pace.clone(), Rc::new(Churner { run: run.clone(), name: name.clone(), how: how.clone(), kinds }));
    Ok(Box::pin(stream::run(run.clone(), name, pace, move |number, due| churner.clone().add(number, due))))
}

impl Churner {
    fn mark(&self, name: &str, sequence: u32, due: Instant, payload: &str) -> Mark {
        Mark::new(sequence, self.run.unix_micros(due), &self.run.namespace, name, payload)
    }

    /// Creates an object and makes it ready. Schedules its deletion.
    async fn add(self: Rc<Self>, number: usize, due: Instant) {
        let name = format!("{}-{}-{number}", self.name, self.run.id);
        let namespace = &self.run.namespace;
        let made = match self.how.object {
            Made::Pod => self.pod(&name, number, due).await,
            Made::Sandbox => self.sandbox(&name, number, due).await,
            Made::Event => {
                let path = format!("/api/v1/namespaces/{namespace}/events");
                let mark = self.mark(&name, 1, due, "");
                self.create(self.kinds.create, path, &made::event(&name, namespace, &mark), due).await
            }
            Made::ConfigMap | Made::Deployment => {
                let body = made::config_map(&name, &self.mark(&name, 1, due, "text"), "text");
                self.create(self.kinds.create, objects::config_maps(namespace), &body, due).await
            }
        };
        if made.is_none() {
            return;
        }
        let done = Instant::now();
        self.run.recorder.borrow_mut().success(self.kinds.ready, Times { due, sent: due, done });
        if let Some(seconds) = self.how.hold_seconds {
            let churner = self.clone();
            self.run.later(async move { churner.end(&name, done + Duration::from_secs_f64(seconds.max(0.0))).await });
        }
    }

    /// Creates an object. Encodes it before the request is awaited, so that many waiting requests do not keep their
    /// trees in memory.
    fn create(
        &self,
        kind: Kind,
        collection: String,
        body: &Value,
        due: Instant,
    ) -> impl Future<Output = Option<()>> + use<'_> {
        let call = Call::with_json(Method::POST, collection, body.to_string()).keeping_body();
        let (name, mark) = (body["metadata"]["name"].clone(), body["metadata"]["annotations"][ANNOTATION].clone());
        async move { self.step(kind, due, &call, &name, Some(&mark)).await }
    }

    /// Sends one request for an object, and checks the answer.
    async fn step(&self, kind: Kind, due: Instant, call: &Call, name: &Value, mark: Option<&Value>) -> Option<()> {
        let answer = self.run.ask(kind, due, call, &[]).await?;
        let look = |object: &Object<'_>| {
            object.mark()?;
            let found = object.metadata.annotations.mark.as_deref();
            if object.metadata.name != name.as_str().unwrap_or_default() {
                return Err(format!("the answer is {}, not {name}", object.metadata.name));
            }
            if mark.is_some_and(|mark| found != mark.as_str()) {
                return Err(format!("the answer has the mark {found:?}, not {mark:?}"));
            }
            object.revision()
        };
        let revision = self.run.answered(call, &answer, look)?;
        self.run.acknowledge(&call.path, revision);
        Some(())
    }

    async fn pod(&self, name: &str, number: usize, due: Instant) -> Option<()> {
        let pods = objects::pods(&self.run.namespace);
        self.create(self.kinds.create, pods.clone(), &made::pod(name, &self.mark(name, 1, due, "")), due).await?;
        let node = node_name(number % self.run.nodes.get().max(1));
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let bind = Call::with_json(Method::POST, format!("{pods}/{name}/binding"), binding.to_string());
        self.run.ask(self.kinds.bind, Instant::now(), &bind, &[]).await?;
        let mark = json!(self.mark(name, 2, due, "").text());
        let mut status = made::running(&made::time());
        status["metadata"] = json!({"annotations": {ANNOTATION: mark}});
        self.patch_status(&format!("{pods}/{name}/status"), name, &status, Some(&mark)).await
    }

    async fn patch_status(&self, path: &str, name: &str, body: &Value, mark: Option<&Value>) -> Option<()> {
        let mut call = Call::with_json(Method::PATCH, path, body.to_string()).keeping_body();
        call.body = call.body.map(|(_, bytes)| ("application/merge-patch+json", bytes));
        self.step(self.kinds.status, Instant::now(), &call, &json!(name), mark).await
    }

    /// Creates a custom resource and its pod. Updates the custom resource's status once the pod is ready.
    async fn sandbox(&self, name: &str, number: usize, due: Instant) -> Option<()> {
        let body = made::custom("Sandbox", name, &self.mark(name, 1, due, ""));
        self.create(self.kinds.custom, self.sandboxes(), &body, due).await?;
        self.pod(name, number, due).await?;
        let status = json!({"status": {"phase": "Ready", "pod": name}});
        self.patch_status(&format!("{}/{name}/status", self.sandboxes()), name, &status, None).await
    }

    fn sandboxes(&self) -> String {
        format!("/apis/{}/v1/namespaces/{}/{SANDBOXES}", made::GROUP, self.run.namespace)
    }

    /// Deletes an object at its time, or earlier when the last phase has ended.
    async fn end(&self, name: &str, at: Instant) {
        let due = if self.run.waited(at).await { at } else { at.min(Instant::now()) };
        let namespace = &self.run.namespace;
        let collections = match self.how.object {
            Made::Pod => vec![objects::pods(namespace)],
            Made::Sandbox => vec![objects::pods(namespace), self.sandboxes()],
            Made::Event => vec![format!("/api/v1/namespaces/{namespace}/events")],
            Made::ConfigMap | Made::Deployment => vec![objects::config_maps(namespace)],
        };
        for collection in collections {
            let path = format!("{collection}/{name}?gracePeriodSeconds=0");
            let delete = Call { method: Method::DELETE, ..Call::get(path) };
            self.run.ask(self.kinds.delete, due, &delete, &[]).await;
        }
    }
}
