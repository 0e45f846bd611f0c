//! The actor `writer`: changes a set of objects, with marks by which watches and reads are checked.

use std::rc::Rc;
use std::time::Instant;

use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Task, made};
use crate::connection::{Answer, Call, Error};
use crate::numbers::Numbers;
use crate::objects;
use crate::scenario::check::{Broken, Seen};
use crate::scenario::file::{Made, Verb, Writer};
use crate::scenario::mark::{ANNOTATION, Mark, Object};
use crate::scenario::record::Kind;
use crate::scenario::result::Since;
use crate::scenario::run::Run;
use crate::scenario::stream;

struct Set {
    run: Rc<Run>,
    name: String,
    how: Writer,
    collection: String,
    payload: String,
    /// The last acknowledged state of each object. A change holds the lock until its answer.
    objects: Vec<Mutex<Seen>>,
    write: Kind,
    read: Option<Kind>,
    chance: std::cell::RefCell<Numbers>,
}

/// Creates the objects. Returns the task that changes them.
pub async fn prepare(run: &Rc<Run>, name: String, how: &Writer) -> Result<Task, Error> {
    let (write, read) = {
        let mut recorder = run.recorder.borrow_mut();
        let verb = match how.verb {
            Verb::Put => "put",
            Verb::Patch => "patch",
            Verb::Apply => "apply",
        };
        let write = recorder.kind(&format!("{name}/{verb}"), how.pace.since());
        (write, (how.read_back > 0.0).then(|| recorder.kind(&format!("{name}/read-back"), Since::Sent)))
    };
    let collection = match how.object {
        Made::Deployment => format!("/apis/apps/v1/namespaces/{}/deployments", run.namespace),
        _ => objects::config_maps(&run.namespace),
    };
    let set = Rc::new(Set {
        run: run.clone(),
        name: name.clone(),
        how: how.clone(),
        collection,
        payload: "abcdefghijklmnopqrstuvwxyz0123456789".chars().cycle().take(how.bytes).collect(),
        objects: (0..how.objects).map(|_| Mutex::new(Seen { revision: 0, sequence: 0 })).collect(),
        write,
        read,
        chance: std::cell::RefCell::new(Numbers::named(run.seed, &name)),
    });
    run.each(run.part.numbers(how.objects), |number| set.first(number)).await?;
    let pace = how.pace.clone();
    Ok(Box::pin(stream::run(run.clone(), name, pace, move |number, due| set.clone().change(number, due))))
}

impl Set {
    fn object_name(&self, number: usize) -> String {
        format!("{}-{number:05}", self.name)
    }

    fn mark(&self, number: usize, sequence: u32, due: Instant) -> Mark {
        let payload = if self.how.object == Made::Deployment { "" } else { &self.payload };
        Mark::new(sequence, self.run.unix_micros(due), &self.run.namespace, &self.object_name(number), payload)
    }

    fn body(&self, number: usize, mark: &Mark) -> Value {
        match self.how.object {
            Made::Deployment => made::deployment(&self.object_name(number), mark),
            _ => made::config_map(&self.object_name(number), mark, &self.payload),
        }
    }

    /// Creates an object, or reads its state if it exists.
    async fn first(&self, number: usize) -> Result<(), Error> {
        let body = self.body(number, &self.mark(number, 1, Instant::now())).to_string();
        let call = Call::with_json(Method::POST, &self.collection, body).keeping_body();
        let answer = self.run.must(&call, &[409]).await?;
        if answer.status.as_u16() == 409 {
            return self.learn(number, &mut *self.objects[number].lock().await).await;
        }
        if let Some(seen) = self.run.answered(&call, &answer, seen) {
            *self.objects[number].lock().await = seen;
        }
        Ok(())
    }

    /// Reads the stored state, for instance after a change whose outcome is unknown.
    async fn learn(&self, number: usize, known: &mut Seen) -> Result<(), Error> {
        let get = Call::get(format!("{}/{}", self.collection, self.object_name(number))).keeping_body();
        let answer = self.run.must(&get, &[]).await?;
        if let Some(seen) = self.run.answered(&get, &answer, seen) {
            if seen.sequence < known.sequence {
                self.run.broken(Broken::Stale, || format!("{}: {seen:?} after {known:?}", get.path));
            }
            *known = seen;
        }
        Ok(())
    }

    fn call(&self, number: usize, mark: &Mark) -> Call {
        let path = format!("{}/{}", self.collection, self.object_name(number));
        let (method, media_type, path, body) = match self.how.verb {
            Verb::Put => (Method::PUT, "application/json", path, self.body(number, mark)),
            Verb::Patch => {
                let patch = json!({"metadata": {"annotations": {ANNOTATION: mark.text()}}});
                (Method::PATCH, "application/merge-patch+json", path, patch)
            }
            Verb::Apply => {
                let manager = mark.sequence as usize % self.how.managers;
                let path = format!("{path}?fieldManager=loadtest-{manager}&force=true");
                (Method::PATCH, "application/apply-patch+yaml", path, self.body(number, mark))
            }
        };
        let mut call = Call::with_json(method, path, body.to_string()).keeping_body();
        call.body = call.body.map(|(_, bytes)| (media_type, bytes));
        call
    }

    async fn change(self: Rc<Self>, number: usize, due: Instant) {
        // Each part changes its own objects only.
        let Some(number) = self.run.part.number_of(number, self.objects.len()) else { return };
        let mut known = self.objects[number].lock().await;
        let mark = self.mark(number, known.sequence + 1, due);
        let call = self.call(number, &mark);
        let Some(answer) = self.run.ask(self.write, due, &call, &[]).await else {
            // If this fails, the next failed change repeats it.
            let _ = self.learn(number, &mut known).await;
            return;
        };
        if let Some(now) = self.acknowledged(&call, &answer, mark) {
            if now.revision <= known.revision {
                self.run.broken(Broken::Stale, || format!("{}: {now:?} after {known:?}", call.path));
            }
            *known = now;
        }
        if let Some(kind) = self.read
            && self.chance.borrow_mut().unit() < self.how.read_back
        {
            self.read_back(kind, number, *known).await;
        }
    }

    /// Checks the answer to a change. Returns the acknowledged state.
    fn acknowledged(&self, call: &Call, answer: &Answer, mark: Mark) -> Option<Seen> {
        let seen = self.run.answered(call, answer, |object| match object.mark()? {
            Some(found) if found == mark => seen(object),
            found => Err(format!("the answer has the mark {found:?}, not {mark:?}")),
        })?;
        self.run.acknowledge(&call.path, seen.revision);
        Some(seen)
    }

    /// Reads an object and checks that its state is the last acknowledged one.
    async fn read_back(&self, kind: Kind, number: usize, known: Seen) {
        let get = Call::get(format!("{}/{}", self.collection, self.object_name(number))).keeping_body();
        let Some(answer) = self.run.ask(kind, Instant::now(), &get, &[]).await else { return };
        if let Some(found) = self.run.answered(&get, &answer, seen)
            && (found.sequence < known.sequence || found.revision < known.revision)
        {
            self.run.broken(Broken::Stale, || format!("{}: {found:?} after {known:?}", get.path));
        }
    }
}

fn seen(object: &Object<'_>) -> Result<Seen, String> {
    let sequence = object.mark()?.map_or(0, |mark| mark.sequence);
    Ok(Seen { revision: object.revision()?, sequence })
}
