//! Creates the objects that must exist before a write, as admission plugins state them.

use flotilla_proto::value::Value;
use futures_util::future::LocalBoxFuture;

use super::{Incoming, Registry, Target, WriteOptions};
use crate::admission::Prerequisite;
use crate::request::{Caller, Identity};
use crate::status::ApiResult;

/// The owner of the fields of objects that the server creates.
const MANAGER: &str = "kube-apiserver";

impl Registry {
    /// Creates the objects that must exist before a create, or before an action on a document.
    ///
    /// # Errors
    /// 403: such an object cannot be created.
    pub async fn prepare(
        &self,
        target: Target<'_>,
        object: &Value,
        options: &WriteOptions,
        caller: &Caller,
    ) -> ApiResult<()> {
        self.admission.prepare(target, object, options, caller, &|needed| self.provide(needed)).await
    }

    /// Creates such an object in the name of the server itself.
    fn provide(&self, Prerequisite { served, object }: Prerequisite) -> LocalBoxFuture<'_, ApiResult<()>> {
        Box::pin(async move {
            let namespace = object.str_at(&["metadata", "namespace"]).to_owned();
            let target = Target::resource(&served, &namespace);
            let incoming = Incoming { value: object, ..Incoming::default() };
            let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
            let mut caller = Caller::of(Identity::of_api_server(MANAGER));
            self.create(target, incoming, &options, &mut caller).await.map(drop)
        })
    }
}
