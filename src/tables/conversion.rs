//! Converts custom resources by webhooks before they are shown or stored.
//!
//! For all other resources this costs the check of one field.

use std::sync::Arc;

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

use super::{Tables, stored_tree};
use crate::custom::Custom;
use crate::selector::FieldSelector;
use crate::served::Served;
use crate::status::ApiResult;
use crate::turn::Turn;

impl Tables {
    /// Converts stored objects by the webhook of a definition to the version of the request. Does nothing if no webhook
    /// converts the resource.
    ///
    /// # Errors
    /// The reference's error about a webhook that fails to convert them.
    pub async fn convert_to_show(&self, served: &Served, objects: &[Arc<Object>]) -> ApiResult<()> {
        let Some(custom) = webhook_converts(served) else { return Ok(()) };
        let own = served.api_version();
        // Leaves out objects that cannot be decoded: the caller reports them when it shows them.
        let (mut trees, mut turn) = (Vec::new(), Turn::begin());
        for object in objects.iter().filter(|object| !served.shows_as_stored(object)) {
            let tree = stored_tree(object).ok().and_then(|tree| custom.read(tree).ok());
            trees.extend(tree.filter(|tree| tree.str_at(&["apiVersion"]) != own));
            turn.pause().await;
        }
        Box::pin(self.converted(custom, &own, trees)).await
    }

    /// Converts an object by the webhook from the version of the request to the stored one. With `and_back`, also
    /// converts the result back, for an answer that shows the object as if it were stored. Does nothing if no webhook
    /// converts the resource.
    ///
    /// # Errors
    /// As for [`Tables::convert_to_show`].
    pub async fn convert_to_store(&self, served: &Served, object: &Value, and_back: bool) -> ApiResult<()> {
        let Some(custom) = webhook_converts(served) else { return Ok(()) };
        let (own, stored) = (served.api_version(), custom.definition().stored().api_version());
        if object.str_at(&["apiVersion"]) != stored {
            Box::pin(self.converted(custom, &stored, vec![object.clone()])).await?;
        }
        if and_back && own != stored {
            let shown = custom.read(custom.store(object.clone())?)?;
            Box::pin(self.converted(custom, &own, vec![shown])).await?;
        }
        Ok(())
    }

    /// Returns whether an object meets requirements in the version of the request, for which it was converted.
    ///
    /// # Errors
    /// 500: the object cannot be shown in that version. Nothing is then known of its fields.
    pub fn selects_converted(&self, served: &Served, requirements: &FieldSelector, object: &Object) -> ApiResult<bool> {
        match served.custom.as_ref().filter(|_| !requirements.0.is_empty()) {
            Some(custom) => Ok(requirements.selects(custom, &self.shown(served, object)?)),
            None => Ok(true),
        }
    }

    async fn converted(&self, custom: &Custom, to: &str, objects: Vec<Value>) -> ApiResult<()> {
        match custom.converted_by_webhook() {
            Some(definition) if !objects.is_empty() => self.convert_ahead(definition, to, objects).await,
            _ => Ok(()),
        }
    }
}

/// Returns the custom resource if a webhook converts it. Returns `None` otherwise.
pub fn webhook_converts(served: &Served) -> Option<&Custom> {
    served.custom.as_ref().filter(|custom| custom.converted_by_webhook().is_some())
}
