//! One page of a list, and its objects one by one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use flotilla_cluster::{Compacted, Cursor, Object, Revision};

use crate::limits;
use crate::selector::Selection;
use crate::status::{ApiError, ApiResult};
use crate::turn::Turn;

/// One page of a list: a part of a snapshot.
pub struct Page {
    /// The revision at which every object is shown.
    pub revision: Revision,
    /// The token for the next page. `None` when this is the last.
    pub next: Option<String>,
    /// The number of objects that follow this page. `None` if the server does not state it.
    pub remaining: Option<u64>,
    pub(super) rows: Rows,
}

pub(super) enum Rows {
    /// Read before the answer begins, because the head of the answer depends on them.
    Collected(std::vec::IntoIter<Arc<Object>>),
    /// Read while the answer is sent: memory does not grow with the length of the list.
    Streamed(Box<Streamed>),
}

/// A page that is read while it is sent.
pub(super) struct Streamed {
    pub(super) cursor: Cursor,
    pub(super) selection: Selection,
    pub(super) done: bool,
}

impl Page {
    /// Returns the last page of a list, with these objects.
    pub(super) fn last(revision: Revision, objects: Vec<Arc<Object>>) -> Self {
        Self { revision, next: None, remaining: None, rows: Rows::Collected(objects.into_iter()) }
    }

    /// Returns the same page with these objects instead.
    #[must_use]
    pub fn of(self, objects: Vec<Arc<Object>>) -> Self {
        Self { rows: Rows::Collected(objects.into_iter()), ..self }
    }

    /// Returns whether an object is, or may be, on the page.
    pub fn may_have(&self, object: &Object) -> bool {
        match &self.rows {
            Rows::Collected(rows) => rows.as_slice().iter().any(|row| row.key() == object.key()),
            Rows::Streamed(streamed) => {
                streamed.cursor.scope().contains(object.key()) && selects(&streamed.selection, object)
            }
        }
    }

    /// Appends the next objects of the page to `out`. Returns false when none are left.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        self.read_some(limits::LIST_CHUNK_OBJECTS, out)
    }

    /// Returns all objects of the page that were not read yet. Yields to other tasks meanwhile.
    ///
    /// # Errors
    /// As for [`Page::read`].
    pub async fn read_all(&mut self) -> ApiResult<Vec<Arc<Object>>> {
        let (mut objects, mut turn) = (Vec::new(), Turn::begin());
        while self.read(&mut objects)? {
            turn.pause().await;
        }
        Ok(objects)
    }

    /// Does the same as [`Page::read`] for at most `most` objects.
    fn read_some(&mut self, most: usize, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        match &mut self.rows {
            Rows::Collected(rows) => {
                out.extend(rows.take(most));
                Ok(!rows.as_slice().is_empty())
            }
            Rows::Streamed(streamed) if streamed.done => Ok(false),
            Rows::Streamed(streamed) => {
                let Streamed { cursor, selection, done } = &mut **streamed;
                let from = out.len();
                let more = cursor.read(most.min(objects_at_once(selection)), out).map_err(expired)?;
                if !selection.is_everything() {
                    let mut at = 0;
                    out.retain(|object| {
                        at += 1;
                        at <= from || selects(selection, object)
                    });
                }
                *done = !more;
                Ok(more)
            }
        }
    }
}

/// The objects of a page one by one. Callers may wait between two objects until the client has taken the first.
pub struct OneByOne {
    /// The page that holds the objects.
    pub page: Page,
    read: VecDeque<Arc<Object>>,
    more: bool,
    /// Size of the object that was returned last, in bytes.
    size: usize,
    /// Bytes of the objects that were returned since the turn was checked.
    returned: usize,
}

impl OneByOne {
    /// Begins with the first object of a page.
    pub fn of(page: Page) -> Self {
        Self { page, read: VecDeque::new(), more: true, size: 0, returned: 0 }
    }

    /// Returns the next object. Returns `None` at the end. Is pending when the turn is over before an object was found.
    /// Reads fewer objects at a time if they are large, since each keeps its version in memory while the client waits.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, turn: &mut Turn) -> Poll<ApiResult<Option<Arc<Object>>>> {
        if self.returned >= limits::TURN_BYTES {
            ready!(turn.poll_pause(cx));
            self.returned = 0;
        }
        while self.read.is_empty() && self.more {
            ready!(turn.poll_pause(cx));
            let most = (limits::LIST_READ_BYTES / self.size.max(1)).clamp(1, limits::LIST_CHUNK_OBJECTS);
            let mut read = Vec::from(std::mem::take(&mut self.read));
            self.more = self.page.read_some(most, &mut read)?;
            self.read = read.into();
        }
        Poll::Ready(Ok(self.read.pop_front().inspect(|object| {
            self.size = object.bytes().len();
            self.returned += self.size;
        })))
    }

    /// Appends some of the remaining objects to `out`. Returns false when none are left.
    ///
    /// # Errors
    /// As for [`OneByOne::poll_next`].
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        out.extend(self.read.drain(..));
        self.more = self.more && self.page.read(out)?;
        Ok(self.more)
    }
}

/// Returns whether a selection matches an object, as far as the stored form of the object decides that.
pub fn selects(selection: &Selection, object: &Object) -> bool {
    let key = object.key();
    selection.matches(key.namespace().unwrap_or(""), key.name(), object.terms())
}

/// Returns the number of objects that are compared with a selection before the time is checked. It is smaller for a
/// selection with many requirements.
pub(super) fn objects_at_once(selection: &Selection) -> usize {
    (limits::SELECTION_CHECKS / selection.requirements().max(1)).clamp(1, limits::LIST_CHUNK_OBJECTS)
}

pub(super) fn expired(compacted: Compacted) -> ApiError {
    ApiError::expired(format!("the list took too long; history begins at {}", compacted.floor))
}
