//! Creates many objects in the server, and deletes them again.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Method;

use crate::connection::{Call, Client, Connector, Error};
use crate::limits;
use crate::objects;
use crate::operation::{Load, Operation, run};
use crate::process::Processes;
use crate::report::Figures;

/// Creates the namespace if it does not exist, and waits until pods can be created in it.
pub async fn namespace(client: &mut Client, name: &str) -> Result<(), Error> {
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    client.must(&Call::with_json(Method::POST, "/api/v1/namespaces", body), &[409]).await?;
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    let start = Instant::now();
    while start.elapsed() < limits::SERVICE_ACCOUNT_WAIT {
        if client.must(&Call::get(format!("{accounts}/default")), &[404]).await?.status.is_success() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The server has no controllers, so the harness creates the ServiceAccount.
    let body = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
    client.must(&Call::with_json(Method::POST, accounts, body), &[409]).await?;
    Ok(())
}

/// The objects to create.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The number of objects.
    pub count: usize,
    /// The size of ConfigMaps, in bytes. `None` for pods.
    pub bytes: Option<usize>,
}

impl Seeds {
    fn path(self, namespace: &str) -> String {
        if self.bytes.is_some() { objects::config_maps(namespace) } else { objects::pods(namespace) }
    }

    fn object(self, number: usize) -> String {
        match self.bytes {
            Some(bytes) => objects::config_map(number, bytes),
            None => objects::pod(&objects::pod_name(number), number),
        }
    }
}

/// Creates objects. Those that exist already count as created. Returns figures with the server's memory per object.
pub async fn objects(
    seeds: Seeds,
    name: &str,
    clients: usize,
    connections: usize,
    connector: &Arc<Connector>,
    processes: &Processes,
) -> Result<Figures, Error> {
    namespace(&mut connector.open().await?, name).await?;
    let before = processes.resident_kib()?;
    let load = Load {
        clients,
        connections,
        duration: Duration::from_secs(24 * 3600),
        warmup: Duration::ZERO,
        requests_max: seeds.count as u64,
        requests_per_operation: 1,
    };
    let next = Rc::new(Cell::new(0));
    let path = seeds.path(name);
    let mut figures = run("seed", &load, connector, processes, &|_| -> Box<dyn Operation> {
        let (next, path) = (next.clone(), path.clone());
        Box::new(move || {
            let number = next.get();
            next.set(number + 1);
            Call::with_json(Method::POST, path.clone(), seeds.object(number))
        })
    })
    .await?;
    if !processes.pids.is_empty() {
        let after = processes.resident_kib()?;
        figures.resident_kib = Some(after);
        figures.resident_kib_per_pod = Some((after as f64 - before as f64) / seeds.count.max(1) as f64);
    }
    Ok(figures)
}

/// Deletes a namespace and everything in it: first the pods, without grace, then the rest.
pub async fn clean(name: &str, connector: &Arc<Connector>) -> Result<(), Error> {
    let mut client = connector.open().await?;
    delete_pods(&mut client, name).await?;
    let delete = Call { method: Method::DELETE, ..Call::get(format!("/api/v1/namespaces/{name}")) };
    client.must(&delete, &[404, 409]).await?;
    Ok(())
}

/// Deletes the pods of a namespace without grace.
pub async fn delete_pods(client: &mut Client, name: &str) -> Result<(), Error> {
    let path = format!("{}?gracePeriodSeconds=0", objects::pods(name));
    client.must(&Call { method: Method::DELETE, ..Call::get(path) }, &[404]).await?;
    Ok(())
}
