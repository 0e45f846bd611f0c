//! The actor `definitions`: many custom resource definitions, and objects of each.

use std::rc::Rc;
use std::time::Instant;

use hyper::Method;

use super::{Task, made};
use crate::connection::{Call, Error};
use crate::scenario::file::Definitions;
use crate::scenario::mark::{Mark, Object};
use crate::scenario::record::{Kind, Times};
use crate::scenario::result::Since;
use crate::scenario::run::Run;
use crate::scenario::stream;

fn plural(number: usize) -> String {
    format!("things{number:05}")
}

fn kind(number: usize) -> String {
    format!("Thing{number:05}")
}

/// Creates the definitions. Returns the task that creates objects of them.
pub async fn prepare(run: &Rc<Run>, name: String, how: &Definitions) -> Result<Task, Error> {
    let (served, create) = {
        let mut recorder = run.recorder.borrow_mut();
        (
            recorder.kind(&format!("{name}/served"), Since::Sent),
            recorder.kind(&format!("{name}/create"), how.pace.since()),
        )
    };
    run.each(run.part.numbers(how.count), |number| async move {
        let due = Instant::now();
        made::define(run, &plural(number), &kind(number)).await?;
        let times = Times { due, sent: due, done: Instant::now() };
        run.recorder.borrow_mut().success(served, times);
        Ok(())
    })
    .await?;
    let (pace, count, of) = (how.pace.clone(), how.count, run.clone());
    Ok(Box::pin(stream::run(run.clone(), name.clone(), pace, move |number, due| {
        object(of.clone(), (number % count, format!("{name}-{}-{number}", of.id)), create, due)
    })))
}

async fn object(run: Rc<Run>, (number, name): (usize, String), create: Kind, due: Instant) {
    let mark = Mark::new(1, run.unix_micros(due), &run.namespace, &name, "");
    let path = format!("/apis/{}/v1/namespaces/{}/{}", made::GROUP, run.namespace, plural(number));
    let body = made::custom(&kind(number), &name, &mark).to_string();
    let call = Call::with_json(Method::POST, path, body).keeping_body();
    let Some(answer) = run.ask(create, due, &call, &[]).await else { return };
    let revision = run.answered(&call, &answer, |object: &Object<'_>| match object.mark()? {
        Some(found) if found == mark => object.revision(),
        found => Err(format!("the answer has the mark {found:?}, not {mark:?}")),
    });
    run.acknowledge(&call.path, revision.unwrap_or(0));
}
