//! Writes of objects: create, update, patch, delete.

use std::sync::Arc;

use actix_web::HttpResponse;
use bytes::Bytes;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::head::Head;
use super::resources::Request;
use super::uploads::Body;
use super::{body, lists};
use crate::answer::{self, respond};
use crate::patch::Format;
use crate::registry::{Incoming, Listing, PatchBody, Written};
use crate::representation::Show;
use crate::request::{Caller, DeleteOptions, Form, Offer, Representation, WriteOptions};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

impl<'r> Request<'r> {
    async fn respond_written(&self, written: &Written, representation: Representation) -> ApiResult<HttpResponse> {
        self.respond_entity(if written.created { 201 } else { 200 }, &written.entity, representation).await
    }

    /// Reads a create or replacement of a part of the object: the representation of the answer, the options of this
    /// kind, and a function that returns the decoded object.
    pub(super) fn object(
        &self,
        (part, offer): (&Arc<Served>, Offer),
        body: Body,
        kind: &str,
    ) -> ApiResult<(Representation, WriteOptions, impl Fn() -> ApiResult<Incoming> + use<'r>)> {
        let representation = self.head.representation_of(&self.served, offer)?;
        let read_options = || WriteOptions::read(&self.head.query, kind, self.caller.identity.user_agent(), false);
        // In the reference, a create checks the media type first, an update last.
        let early = if kind == "UpdateOptions" { None } else { Some(body::media(self.head.content_type)?) };
        let bytes = body.read()?;
        let options = read_options()?;
        let media = early.map_or_else(|| body::media(self.head.content_type), Ok)?;
        let (part, validation) = (Arc::clone(part), options.validation);
        Ok((representation, options, move || body::decode(&bytes, media, &part, validation)))
    }

    pub(super) async fn create(self, body: Body) -> ApiResult<HttpResponse> {
        let (representation, options, object) = self.object((&self.served, self.offer()), body, "CreateOptions")?;
        let warnings_before = self.caller.notices.warnings.len();
        let decode = |caller: &mut Caller| {
            let decoded = object()?;
            caller.notices.warnings.truncate(warnings_before);
            note(caller, &self.served, &decoded);
            body::check_stated(&self.served, &decoded.value)?;
            Ok::<_, ApiError>(decoded)
        };
        let target = Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource);
        let registry = &self.gateway.registry;
        if let Some(tenure) = self.caller.basis.tenure() {
            let decoded = decode(self.caller)?;
            let created = registry.create_in_tenure(target, decoded, &options, self.caller, tenure).await?;
            if let Some(written) = created {
                return self.respond_written(&written, representation).await;
            }
        }
        let decoded = decode(self.caller)?;
        let written = registry.create(target, decoded, &options, self.caller).await?;
        self.respond_written(&written, representation).await
    }

    pub(super) async fn update(self, body: Body) -> ApiResult<HttpResponse> {
        let (representation, options, object) = self.object((&self.served, self.offer()), body, "UpdateOptions")?;
        let decoded = object()?;
        // A refusal also has the decoder's warnings, for example the error 404 of an object that does not exist.
        note(self.caller, &self.served, &decoded);
        body::check_stated(&self.served, &decoded.value)?;
        let registry = &self.gateway.registry;
        let written = registry.replace(
            Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource),
            decoded,
            &options,
            self.caller,
        );
        let written = written.await?;
        self.respond_written(&written, representation).await
    }

    pub(super) async fn patch(self, body: Body) -> ApiResult<HttpResponse> {
        let offer = self.offer();
        let patch = IncomingPatch::read((self.head, self.caller), (&self.served, offer), body)?;
        let IncomingPatch { representation, format, bytes, options } = patch;
        let registry = &self.gateway.registry;
        let target = Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource);
        let written = match format {
            Some(format) => registry.patch(target, PatchBody { format, bytes: &bytes }, &options, self.caller).await?,
            None => registry.apply(target, &bytes, &options, self.caller).await?,
        };
        self.respond_written(&written, representation).await
    }

    pub(super) async fn delete(self, body: Body) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, self.offer())?;
        let bytes = body.read()?;
        let options = body::decode_delete_options(&bytes, self.head.content_type)?;
        self.caller.record.iter_mut().for_each(|record| record.take_options(options.as_ref()));
        let options = DeleteOptions::read(&self.head.query, options.as_ref())?;
        let target = Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource);
        let deleted = self.gateway.registry.delete(target, &options, self.caller).await?;
        if !deleted.is_unreadable && (!deleted.gone || self.served.strategy.returns_deleted) {
            return self.respond_entity(200, &deleted.entity, representation).await;
        }
        let status = match deleted.is_unreadable {
            true => success_unseen(&self.served, self.name),
            false => success(&self.served, self.name, &deleted.uid),
        };
        let representation = Representation { form: Form::Object, ..representation };
        Ok(respond(200, answer::encode_status(&status, representation), &self.caller.notices.warnings))
    }

    pub(super) async fn delete_collection(self, body: Body) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, Offer::Objects)?;
        let bytes = body.read()?;
        let listing = Listing::read(&self.head.query, &self.served, false)?;
        let options = body::decode_delete_options(&bytes, self.head.content_type)?;
        self.caller.record.iter_mut().for_each(|record| record.take_options(options.as_ref()));
        let options = DeleteOptions::read(&self.head.query, options.as_ref())?;
        let registry = &self.gateway.registry;
        let page = registry.delete_collection(&self.served, self.namespace, &listing, &options, self.caller).await?;
        let show = Show { representation, include: self.include(), gzip: self.head.gzip };
        lists::respond(self.gateway, &self.served, page, show, &self.caller.notices.warnings).await
    }
}

/// Notes a decoded object: its warnings for the answer, and the object itself for the audit events.
pub(super) fn note(caller: &mut Caller, part: &Served, decoded: &Incoming) {
    caller.notices.warnings.extend(decoded.warnings.iter().cloned());
    if let Some(record) = &mut caller.record {
        record.take_object(part, &decoded.value);
    }
}

/// A patch that was read.
pub(super) struct IncomingPatch {
    /// The representation of the answer.
    pub(super) representation: Representation,
    /// The format. `None` for apply.
    pub(super) format: Option<Format>,
    /// The body.
    pub(super) bytes: Bytes,
    pub(super) options: WriteOptions,
}

impl IncomingPatch {
    /// Reads a patch of an object, or of a part of it, and notes it for the audit events.
    ///
    /// # Errors
    /// The format, the form of the answer, the body or an option is refused.
    pub(super) fn read(
        (head, caller): (&Head<'_>, &mut Caller),
        (served, offer): (&Served, Offer),
        body: Body,
    ) -> ApiResult<Self> {
        let format = patch_format(head, served)?;
        let representation = head.representation_of(served, offer)?;
        let bytes = body.read()?;
        caller.record.iter_mut().for_each(|record| record.take_patch(&bytes));
        let agent = caller.identity.user_agent();
        let options = WriteOptions::read(&head.query, "PatchOptions", agent, format.is_none())?;
        Ok(Self { representation, format, bytes, options })
    }
}

/// Returns the format of a PATCH body. `None` for apply. Custom resources have no strategic merge patch, since their
/// types do not say how lists merge.
fn patch_format(head: &Head<'_>, served: &Served) -> ApiResult<Option<Format>> {
    let is_custom = served.custom.is_some();
    Ok(match head.content_type.split(';').next().unwrap_or("").trim() {
        "application/json-patch+json" => Some(Format::Json),
        "application/merge-patch+json" => Some(Format::Merge),
        "application/strategic-merge-patch+json" if !is_custom => Some(Format::Strategic),
        "application/apply-patch+yaml" => None,
        _ if is_custom => return Err(body::unsupported_custom_patch()),
        _ => return Err(body::unsupported_patch()),
    })
}

/// Returns the `Status` of the deletion of an object that could not be decoded.
fn success_unseen(served: &Served, name: &str) -> Value {
    let details = value!({"name": name, "kind": (&*served.kind().name)});
    let metadata = Value::object();
    value!({
        "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Success", "details": details, "code": 200
    })
}

/// Returns the `Status` of a deletion that is done.
fn success(served: &Served, name: &str, uid: &str) -> Value {
    let mut details = value!({"name": name});
    if !served.group().is_empty() {
        details.set_at(&["group"], served.group());
    }
    details.set_at(&["kind"], &*served.resource.name);
    details.set_at(&["uid"], uid);
    value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
