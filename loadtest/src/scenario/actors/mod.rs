//! The actors of a scenario. Each kind has a file of its own.

mod churn;
mod definitions;
mod heartbeat;
mod lister;
mod made;
mod reflector;
mod writer;

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use super::file::{Actor, Setup};
use super::run::Run;
use crate::connection::{Connector, Error};
use crate::process::Processes;
use crate::seed;

pub use reflector::compare;

/// A task that runs during the phases.
pub type Task = LocalBoxFuture<'static, ()>;

/// The tasks of an actor, which its preparation returns.
#[derive(Default)]
pub struct Prepared {
    /// Tasks that end soon after the last phase.
    pub tasks: Vec<Task>,
    /// Tasks that run until they are dropped.
    pub endless: Vec<Task>,
}

/// Returns the name of a node.
pub fn node_name(number: usize) -> String {
    format!("loadtest-node-{number:06}")
}

/// Creates the objects of the setup, before the actors are prepared.
pub async fn set_up(run: &Rc<Run>, setup: &Setup, connector: &std::sync::Arc<Connector>) -> Result<(), Error> {
    seed::namespace(&mut connector.open().await?, &run.namespace).await?;
    made::nodes(run, setup.nodes).await?;
    if setup.pods > 0 && run.part.number == 1 {
        let nobody = Processes::default();
        let pods = seed::Seeds { count: setup.pods, bytes: None };
        let figures = seed::objects(pods, &run.namespace, 16, 4, connector, &nobody).await?;
        if let Some(error) = figures.first_error.filter(|_| figures.errors > 0) {
            return Err(Error::Start(format!("pods of the setup: {error}")));
        }
    }
    Ok(())
}

/// Creates the objects that an actor needs. Returns the actor's tasks.
pub async fn prepare(run: &Rc<Run>, name: &str, actor: &Actor) -> Result<Prepared, Error> {
    let name = name.to_owned();
    let mut prepared = Prepared::default();
    match actor {
        Actor::Heartbeat(it) => prepared.tasks = heartbeat::prepare(run, name, it).await?,
        Actor::Reflector(it) => prepared.endless.push(reflector::prepare(run, name, it).await?),
        Actor::Writer(it) => prepared.tasks.push(writer::prepare(run, name, it).await?),
        Actor::Lister(it) => prepared.tasks.push(lister::prepare(run, name, it)),
        Actor::Churn(it) => prepared.tasks.push(churn::prepare(run, name, it).await?),
        Actor::Definitions(it) => prepared.tasks.push(definitions::prepare(run, name, it).await?),
    }
    Ok(prepared)
}

pub use made::{clean, micro_time};
