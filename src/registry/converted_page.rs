//! Converts a page of a list by a webhook before the answer begins.

use super::{Page, Registry, Served};
use crate::limits;
use crate::selector::FieldSelector;
use crate::status::{ApiError, ApiResult};
use crate::tables::webhook_converts;
use crate::turn::Turn;

impl Registry {
    /// Converts a page of a list by the webhook, and leaves out converted objects that do not meet `requirements`.
    /// Errors are thus reported before the answer begins. The page may then have fewer objects than its limit. Returns
    /// the page unchanged if no webhook converts the resource.
    ///
    /// # Errors
    /// As for [`Tables::convert_to_show`](crate::tables::Tables::convert_to_show); 413 for a list that is too large.
    pub async fn convert_page(&self, served: &Served, mut page: Page, requirements: &FieldSelector) -> ApiResult<Page> {
        if webhook_converts(served).is_none() {
            return Ok(page);
        }
        let (mut objects, mut bytes, mut turn) = (Vec::new(), 0, Turn::begin());
        loop {
            let from = objects.len();
            let more = page.read(&mut objects)?;
            let read = objects[from..].iter().filter(|object| !served.shows_as_stored(object));
            bytes += read.map(|object| object.bytes().len()).sum::<usize>();
            if bytes > limits::CONVERSIONS_LISTED_BYTES {
                let why = "the list has more objects to be converted by a webhook than fit: ask for it in pages";
                return Err(ApiError::new(413, "RequestEntityTooLarge", why));
            }
            if !more {
                break;
            }
            turn.pause().await;
        }
        self.tables.convert_to_show(served, &objects).await?;
        if requirements.0.is_empty() {
            return Ok(page.of(objects));
        }
        let mut selected = Vec::new();
        for object in objects {
            if self.tables.selects_converted(served, requirements, &object)? {
                selected.push(object);
            }
            turn.pause().await;
        }
        Ok(page.of(selected))
    }
}
