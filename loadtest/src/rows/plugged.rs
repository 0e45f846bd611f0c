//! Rows that need another server: webhooks for each pod, and a node with a kubelet that provides logs and streams.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::{Context, write};
use crate::backend::{Backend, base64};
use crate::connection::{Call, Client, Error, Protocol};
use crate::limits;
use crate::objects;
use crate::operation::Operation;
use crate::report::Figures;

/// The name of the node, of its pod, and of the configurations of webhooks.
const NAME: &str = "loadtest-plugged";

const WEBHOOKS: [(&str, &str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutate"),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validate"),
];

/// The other server of a row.
#[derive(Clone, Copy)]
pub enum Plug {
    /// A mutating and a validating webhook, which are asked about the pods that the row creates.
    Webhooks,
    /// The kubelet of a node that runs one pod.
    Kubelet,
}

impl Plug {
    /// Starts the server, and creates the objects by which the API server finds it.
    pub async fn connect(self, client: &mut Client, context: &Context) -> Result<Backend, Error> {
        self.disconnect(client, context).await?; // an earlier run may have been cut off
        let backend = Backend::start().await?;
        match self {
            Self::Webhooks => register(client, &backend, context).await?,
            Self::Kubelet => join(client, &backend, context).await?,
        }
        Ok(backend)
    }

    /// Deletes the objects that [`Plug::connect`] creates.
    pub async fn disconnect(self, client: &mut Client, context: &Context) -> Result<(), Error> {
        let paths = match self {
            Self::Webhooks => WEBHOOKS.map(|(_, plural, _)| format!("{}/{NAME}", configurations(plural))),
            Self::Kubelet => {
                [format!("{}?gracePeriodSeconds=0", pod(&context.namespace, "")), format!("/api/v1/nodes/{NAME}")]
            }
        };
        for path in paths {
            client.must(&Call { method: Method::DELETE, ..Call::get(path) }, &[404]).await?;
        }
        Ok(())
    }
}

fn configurations(plural: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

async fn create(client: &mut Client, collection: String, object: &Value) -> Result<(), Error> {
    client.must(&Call::with_json(Method::POST, collection, object.to_string()), &[]).await.map(drop)
}

/// Registers the webhooks, and waits until the API server asks them.
async fn register(client: &mut Client, backend: &Backend, context: &Context) -> Result<(), Error> {
    let namespace = write::posted(context);
    for (kind, plural, path) in WEBHOOKS {
        let webhook = json!({
            "name": format!("{path}.loadtest.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {
                "url": format!("https://{}/{path}", backend.address), "caBundle": base64(&backend.certificate),
            },
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME},
            "webhooks": [webhook],
        });
        create(client, configurations(plural), &configuration).await?;
    }
    let path = format!("{}?dryRun=All", objects::pods(&namespace));
    let asked = Call::with_json(Method::POST, path, objects::pod("asked", 0)).keeping_body();
    let start = Instant::now();
    while start.elapsed() < limits::PLUG_WAIT {
        let answer = client.must(&asked, &[]).await?;
        if String::from_utf8_lossy(&answer.body).contains(r#""loadtest":"seen""#) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(Error::Start("the API server does not ask the webhook".into()))
}

/// Creates the node and its pod.
async fn join(client: &mut Client, backend: &Backend, context: &Context) -> Result<(), Error> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME},
        "status": {
            "addresses": [{"type": "InternalIP", "address": backend.address.ip().to_string()}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": backend.address.port()}},
        },
    });
    create(client, "/api/v1/nodes".into(), &node).await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME},
        "spec": {
            "nodeName": NAME, "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "registry.example.com/app:1"}],
        },
    });
    create(client, objects::pods(&context.namespace), &pod).await
}

/// Returns the path of the pod on the node, or of one of its subresources.
fn pod(namespace: &str, subresource: &str) -> String {
    let separator = if subresource.is_empty() { "" } else { "/" };
    format!("{}/{NAME}{separator}{subresource}", objects::pods(namespace))
}

pub fn log(context: &Context, _number: usize) -> Box<dyn Operation> {
    let call = Call::get(pod(&context.namespace, "log"));
    Box::new(move || call.clone())
}

pub fn proxied(_context: &Context, _number: usize) -> Box<dyn Operation> {
    let call = Call::get(format!("/api/v1/nodes/{NAME}/proxy/healthz"));
    Box::new(move || call.clone())
}

/// Receives [`limits::STREAMED_BYTES`] through one port-forward after the other.
pub async fn forward(context: &Context) -> Result<Figures, Error> {
    let connector = Arc::new(context.connector.with_protocol(Protocol::Http1)?);
    let path = pod(&context.namespace, "portforward");
    let (start, cpu, mut operations) = (Instant::now(), context.processes.cpu_seconds()?, 0);
    let mut buffer = vec![0; limits::STREAMED_CHUNK_BYTES];
    while operations == 0 || start.elapsed() < context.duration {
        let mut stream = connector.upgrade(&path, crate::backend::SPDY).await?;
        let mut left = limits::STREAMED_BYTES / buffer.len() * buffer.len();
        while left > 0 {
            let length = stream.read(&mut buffer).await?;
            if length == 0 {
                return Err(Error::Start(format!("a port-forward ended {left} bytes too early")));
            }
            left -= length.min(left);
        }
        operations += 1;
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), context.processes.cpu_seconds()? - cpu);
    Ok(Figures {
        row: "port-forward".into(),
        clients: 1,
        operations,
        seconds,
        per_second: operations as f64 / seconds,
        cpu_us: Some(cpu * 1e6 / operations as f64),
        core_percent: Some(cpu / seconds * 100.0),
        bytes: Some(limits::STREAMED_BYTES as u64),
        ..Figures::default()
    })
}

/// Keeps many exec streams open.
pub async fn exec(context: &Context, streams: usize) -> Result<Figures, Error> {
    let connector = Arc::new(context.connector.with_protocol(Protocol::Http1)?);
    let path = format!("{}?command=sh&stdout=true", pod(&context.namespace, "exec"));
    let before = context.processes.resident_kib()?;
    let (start, mut open) = (Instant::now(), Vec::with_capacity(streams));
    for _ in 0..streams {
        open.push(connector.upgrade(&path, crate::backend::SPDY).await?);
    }
    let seconds = start.elapsed().as_secs_f64();
    let cpu = context.processes.cpu_seconds()?;
    tokio::time::sleep(context.duration).await;
    let cpu = context.processes.cpu_seconds()? - cpu;
    let resident = context.processes.resident_kib()?;
    Ok(Figures {
        row: "exec".into(),
        clients: streams,
        operations: streams as u64,
        seconds,
        per_second: streams as f64 / seconds,
        core_percent: Some(cpu / context.duration.as_secs_f64() * 100.0),
        resident_kib: Some(resident),
        resident_growth_kib: Some(resident as i64 - before as i64),
        ..Figures::default()
    })
}
