//! The actor `lister`: clients that read lists, discovery and other documents.

use std::rc::Rc;
use std::time::Instant;

use super::Task;
use crate::connection::Call;
use crate::scenario::file::Lister;
use crate::scenario::record::Kind;
use crate::scenario::run::Run;
use crate::scenario::stream;

/// Returns the task that reads.
pub fn prepare(run: &Rc<Run>, name: String, how: &Lister) -> Task {
    let kinds: Vec<Kind> = {
        let mut recorder = run.recorder.borrow_mut();
        how.paths.iter().map(|path| recorder.kind(&format!("{name} {path}"), how.pace.since())).collect()
    };
    // A leak is acceptable: a process runs few scenarios, and each has few media types.
    let accept: Option<&'static str> = how.accept.clone().map(|accept| &*accept.leak());
    let (pace, how, of) = (how.pace.clone(), Rc::new(how.clone()), run.clone());
    Box::pin(stream::run(run.clone(), name, pace, move |number, due| {
        let at = number % how.paths.len();
        read(of.clone(), how.clone(), accept, (kinds[at], at, number), due)
    }))
}

/// Reads one list or document, page by page. Each page is due when the previous one has been read.
async fn read(
    run: Rc<Run>,
    how: Rc<Lister>,
    accept: Option<&'static str>,
    (kind, at, number): (Kind, usize, usize),
    due: Instant,
) {
    let path = run.path(&how.paths[at], number / how.paths.len());
    let join = if path.contains('?') { '&' } else { '?' };
    let (mut due, mut page) = (due, String::new());
    loop {
        let query = match how.page {
            0 => String::new(),
            limit => format!("{join}limit={limit}{page}"),
        };
        let mut call = Call::get(format!("{path}{query}"));
        call.accept = accept;
        // Only JSON lists are checked. A list from the cache may be older than the last acknowledged write.
        let is_looked_into = accept.is_none() && is_list(&path);
        call.keep_body = is_looked_into;
        let acknowledged = if path.contains("resourceVersion=") { 0 } else { run.acknowledged(&path) };
        let Some(answer) = run.ask(kind, due, &call, &[]).await else { return };
        if !is_looked_into {
            return;
        }
        // Later pages have the revision of the first page, which is checked.
        let least = if page.is_empty() { acknowledged } else { 0 };
        match run.listed(&call, &answer, least) {
            Some(next) if how.page > 0 => page = format!("&continue={next}"),
            _ => return,
        }
        due = Instant::now();
    }
}

/// Returns whether a path is that of a collection.
fn is_list(path: &str) -> bool {
    let words: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').skip(1).collect();
    let rest = match words[..] {
        ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
        _ => return false,
    };
    matches!(rest, [_] | ["namespaces", _, _])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_distinguished_from_documents() {
        for path in ["/api/v1/pods", "/api/v1/namespaces/a/pods?x", "/apis/apps/v1/deployments", "/api/v1/namespaces"] {
            assert!(is_list(path), "{path}");
        }
        for path in ["/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3", "/api/v1/namespaces/a/pods/b", "/version"] {
            assert!(!is_list(path), "{path}");
        }
    }
}
