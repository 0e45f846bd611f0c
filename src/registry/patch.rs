//! Changes objects by PATCH bodies.

use std::sync::Arc;

use flotilla_objects::api_version;
use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use super::change::{Change, check_identity};
use super::{FieldValidation, Registry, Served, Target, WriteOptions, Written, convert};
use crate::field::quote;
use crate::fieldmanager;
use crate::patch::{Format, Patch, complaints};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};
use crate::type_meta;
use flotilla_proto::limits::COMPLAINTS_MAX;

/// A PATCH body that is not parsed yet, because a missing object is reported before an invalid body.
#[derive(Debug, Clone, Copy)]
pub struct PatchBody<'a> {
    /// The patch format.
    pub format: Format,
    /// The raw body.
    pub bytes: &'a [u8],
}

impl Registry {
    /// Changes an object by a patch.
    pub async fn patch(
        &self,
        target: Target<'_>,
        body: PatchBody<'_>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        self.must_exist(target, caller).await?;
        let versions = self.tables.resources.versions(&target.served.table);
        let parsed = Patched::parse(target, body, options).map(|patched| Patched { versions, ..patched });
        if parsed.is_err() {
            // A missing object is reported before an error in the patch.
            self.confirm_basis(target, None, caller).await?;
            self.must_exist(target, caller).await?;
        }
        self.update(target, &mut parsed?, options, caller).await
    }
}

pub(super) struct Patched<'a> {
    patch: Patch,
    target: Target<'a>,
    validation: FieldValidation,
    untracked: bool,
    /// The versions that serve the objects, if there are several.
    versions: Option<Arc<[Arc<Served>]>>,
}

impl<'a> Patched<'a> {
    pub(super) fn parse(target: Target<'a>, body: PatchBody<'_>, options: &WriteOptions) -> ApiResult<Self> {
        let patch = Patch::parse(body.format, body.bytes, options.validation != FieldValidation::Ignore)?;
        Ok(Self { patch, target, validation: options.validation, untracked: false, versions: None })
    }
}

impl Patched<'_> {
    /// Refuses a patched object without kind and version: the reference cannot decode it and so sees no name.
    fn check_stated(&self, patched: &Value, caller: &mut Caller) -> ApiResult<()> {
        let of = Some(self.target.served.of());
        type_meta::type_meta(patched).map_err(|why| {
            self.patch.undecodable(of, patched, patched, &format!("couldn't get version/kind; json parse error: {why}"))
        })?;
        if self.target.served.custom.is_some() {
            let stands = !patched.str_at(&["kind"]).is_empty();
            let missing = || type_meta::missing_kind(&json::to_vec(patched));
            return if stands { Ok(()) } else { Err(self.patch.undecodable(of, patched, patched, &missing())) };
        }
        if !patched.str_at(&["apiVersion"]).is_empty() {
            return Ok(());
        }
        let keys = patched.as_object().into_iter().flat_map(Map::keys);
        let mut unknown: Vec<&str> = keys.filter(|key| !matches!(*key, "kind" | "apiVersion")).collect();
        unknown.sort_unstable();
        unknown.truncate(COMPLAINTS_MAX);
        let complaints = unknown.iter().map(|key| format!("unknown field {}", quote(key)));
        let undecodable = |why: &str| self.patch.undecodable(of, patched, patched, why);
        report_complaints(&self.patch, complaints, undecodable, self.validation, caller)?;
        check_identity(self.target, &Value::object())
    }
}

impl Patched<'_> {
    /// Converts the patched object if it states another version of its kind: the reference decodes an object in the
    /// version that the object states. A strategic patch cannot change the version.
    fn converted(&self, patched: Value, current: &Value, caller: &mut Caller) -> ApiResult<Value> {
        let (served, version) = (self.target.served, patched.str_at(&["apiVersion"]));
        let others = self.versions.as_deref().unwrap_or_default().iter();
        let is_stated =
            |other: &&Arc<Served>| other.api_version() == version && other.kind().name == patched.str_at(&["kind"]);
        let is_own = version == served.kind().api_version();
        if is_own || self.patch.is_strategic() || served.custom.is_some() || !self.target.subresource.is_empty() {
            return Ok(patched);
        }
        let Some(other) = others.clone().find(is_stated) else { return Ok(patched) };
        let mut value = patched.clone();
        let undecodable = |why: &str| self.patch.undecodable(Some(other.of()), current, &patched, why);
        let mut unknown = other.conform(&mut value, &Value::Null).map_err(|error| undecodable(&error.to_string()))?;
        unknown.sort();
        let complaints: Vec<String> = unknown.iter().map(|path| format!("unknown field {}", quote(path))).collect();
        match self.validation {
            FieldValidation::Strict if !complaints.is_empty() => {
                return Err(undecodable(&format!("strict decoding error: {}", complaints.join(", "))));
            }
            FieldValidation::Warn => caller.notices.warnings.extend(complaints),
            _ => {}
        }
        convert::default(other, &mut value)?;
        let mut shown = convert::to_served(served, convert::to_stored(other, value))?;
        shown.set_at(&["kind"], &*served.kind().name);
        shown.set_at(&["apiVersion"], served.kind().api_version());
        Ok(shown)
    }
}

impl Change for Patched<'_> {
    fn apply(&mut self, current: &Value, caller: &mut Caller) -> ApiResult<Value> {
        let served = self.target.served;
        let of = Some(served.of());
        let patched = self.patch.apply(of, current.clone())?;
        self.untracked = fieldmanager::untracks(&patched);
        if !self.patch.is_strategic() {
            self.check_stated(&patched, caller)?;
        }
        let patched = self.converted(patched, current, caller)?;
        let again = || self.patch.apply(of, current.clone());
        let mut decoded = decode(&self.patch, self.target, (patched, current), &again, self.validation, caller)?;
        convert::default_changed(served, &mut decoded, current)?;
        Ok(decoded)
    }

    fn untracked(&self) -> bool {
        self.untracked
    }
}

/// Decodes a patched object as a body is decoded, with the errors of patches. The errors show the patched object.
/// `again` makes that object once more, since keeping a copy would cost every patch another tree.
fn decode(
    patch: &Patch,
    target: Target<'_>,
    (patched, current): (Value, &Value),
    again: &dyn Fn() -> ApiResult<Value>,
    validation: FieldValidation,
    caller: &mut Caller,
) -> ApiResult<Value> {
    let kind = target.served.kind();
    let of = Some(target.served.of());
    check_kind(target, &patched, patch)?;
    let text = patch.text(current);
    let undecodable = |why: &str| match (&text, again()) {
        (Some(text), _) => Patch::undecodable_text(text, why),
        (None, Ok(patched)) => patch.undecodable(of, current, &patched, why),
        (None, Err(error)) => error,
    };
    let custom = target.served.custom.as_ref();
    if patch.has_holes
        && custom.is_some()
        && let Some(hole) = patched.hole()
    {
        return Err(undecodable(&json::Error::from(hole).to_string()));
    }
    let mut value = patched;
    if custom.is_none() {
        value.set_at(&["kind"], &*kind.name);
        value.set_at(&["apiVersion"], kind.api_version());
    }
    // The reference decodes text with sorted keys, so it reports unknown fields in sorted order.
    let conformed = target.served.conform(&mut value, current);
    let mut unknown = conformed.map_err(|error| undecodable(&error.to_string()))?;
    unknown.sort();
    let repeated = text.as_deref().map(|text| complaints(text, of.filter(|_| custom.is_none())));
    if repeated.is_some() && custom.is_none() {
        unknown.clear(); // one decoder reports both
    }
    let unknown = unknown.iter().map(|path| format!("unknown field {}", quote(path)));
    report_complaints(patch, repeated.into_iter().flatten().chain(unknown), undecodable, validation, caller)?;
    custom.map_or(Ok(()), |custom| custom.check_type(&value))?;
    Ok(value)
}

/// Handles the reports of strict decoding about the patch and its result: refuses the patch or adds warnings, as
/// `validation` says.
fn report_complaints(
    patch: &Patch,
    unknown: impl Iterator<Item = String>,
    undecodable: impl FnOnce(&str) -> ApiError,
    validation: FieldValidation,
    caller: &mut Caller,
) -> ApiResult<()> {
    let complaints: Vec<String> = patch.complaints.iter().cloned().chain(unknown).collect();
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            return Err(undecodable(&why));
        }
        FieldValidation::Warn => caller.notices.warnings.extend(complaints),
        _ => {}
    }
    Ok(())
}

/// Refuses a patch that changes the kind or version. A strategic patch knows the kind anyway and is not checked; custom
/// resources are checked by their own rules.
fn check_kind(target: Target<'_>, patched: &Value, patch: &Patch) -> ApiResult<()> {
    if patch.is_strategic() || target.served.custom.is_some() {
        return Ok(());
    }
    let kind = target.served.kind();
    let (stated, version) = (patched.str_at(&["kind"]), patched.str_at(&["apiVersion"]));
    let same = (stated.is_empty() || stated == kind.name) && (version.is_empty() || version == kind.api_version());
    if same {
        return Ok(());
    }
    let of = Some(target.served.of());
    let known = api_version::split(version);
    let why = match flotilla_proto::catalogue::kind(known.0, known.1, stated) {
        Some(_) => type_meta::unknown_conversion(known.1, stated, kind),
        None => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(stated),
            quote(version)
        ),
    };
    Err::<(), ApiError>(patch.undecodable(of, patched, patched, &why))
}
