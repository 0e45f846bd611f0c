//! Reads the options of lists and watches, and checks them (API concepts, "Resource versions").

use flotilla_cluster::Scope;

use super::Served;
use crate::field::{Errors, Path};
use crate::request::query::{Query, parse_revision};
use crate::selector::{FieldOperator, FieldRequirement, FieldSelector, LabelSelector, Selection};
use crate::status::{ApiError, ApiResult};

/// The options of a list or watch, read from the query.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The selectors.
    pub selection: Selection,
    /// The greatest number of objects; 0 for all.
    pub limit: usize,
    /// The continue token; empty for the first page.
    pub token: String,
    /// `resourceVersion`, as it stands in the query.
    pub revision: String,
    /// `resourceVersionMatch`, as it stands in the query.
    pub revision_match: String,
    /// Whether the request is a watch.
    pub watch: bool,
    /// Whether a watch begins with the present objects. `None` when the query does not say.
    pub initial_events: Option<bool>,
    /// Whether a watch sends bookmarks.
    pub bookmarks: bool,
    /// Seconds after which the server ends the request.
    pub timeout_seconds: Option<i64>,
}

impl Listing {
    /// Returns whether the request asks for the most recent state.
    pub fn is_recent(&self) -> bool {
        self.token.is_empty() && self.revision.is_empty()
    }

    /// Returns whether a selector names the only object that can be selected. As in the reference, only the namespace
    /// of the path counts, not one that a selector demands.
    pub fn names_one(&self, served: &Served, namespace: &str) -> bool {
        let is_named = self.selection.exact_field("metadata.name").is_some();
        is_named && (!namespace.is_empty() || !served.resource.namespaced)
    }

    /// Returns the options by which a deletion of a collection lists its objects. A revision names the state to delete,
    /// unless the request asks for only one object. The reference does the same, because it reads the collection in
    /// pages.
    pub fn of_deletion(&self, served: &Served, namespace: &str) -> Self {
        let mut listing = self.clone();
        let states_revision = !matches!(listing.revision.as_str(), "" | "0");
        if listing.revision_match.is_empty() && states_revision && !self.names_one(served, namespace) {
            listing.revision_match = "Exact".to_owned();
        }
        listing
    }

    /// Reads and checks the options of a list or watch.
    pub fn read(query: &Query<'_>, served: &Served, watch: bool) -> ApiResult<Self> {
        let watch = watch || query.flag("watch").unwrap_or(false);
        let limit = query.int("limit")?.unwrap_or(0).max(0);
        let timeout_seconds = query.int("timeoutSeconds")?;
        let labels = LabelSelector::parse(query.text("labelSelector"))?;
        let fields = FieldSelector::parse(query.text("fieldSelector"))?;
        let mut listing = Self {
            selection: Selection { labels, fields, ..Selection::default() },
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            token: query.text("continue").into(),
            revision: query.text("resourceVersion").into(),
            revision_match: query.text("resourceVersionMatch").into(),
            watch,
            initial_events: query.flag("sendInitialEvents"),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            timeout_seconds,
        };
        let mut errors = Errors::default();
        if watch {
            listing.check_watch(&mut errors)
        } else {
            listing.check_list(&mut errors)
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors.0));
        }
        let fields = &mut listing.selection.fields;
        fields.remove_blank();
        fields.check(served)?;
        fields.rename(served.strategy.selectors);
        fields.rename(served.strategy.aliases);
        listing.selection.converted = fields.take_converted(served);
        Ok(listing)
    }

    /// Returns the revision that the request states; 0 for none.
    pub(super) fn wanted(&self) -> ApiResult<u64> {
        parse_revision(&self.revision).map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))
    }

    fn check_list(&self, errors: &mut Errors) {
        let path = Path::root("resourceVersionMatch");
        let wanted = self.revision_match.as_str();
        if !wanted.is_empty() {
            if self.revision.is_empty() {
                errors.forbidden(&path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.token.is_empty() {
                errors.forbidden(&path, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(wanted, "Exact" | "NotOlderThan") {
                errors.not_supported(&path, wanted, &["Exact", "NotOlderThan", ""]);
            }
            if wanted == "Exact" && self.revision == "0" {
                errors.forbidden(&path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if self.initial_events.is_some() {
            errors.forbidden(&Path::root("sendInitialEvents"), "sendInitialEvents is forbidden for list");
        }
    }

    fn check_watch(&self, errors: &mut Errors) {
        let path = Path::root("resourceVersionMatch");
        let wanted = self.revision_match.as_str();
        if self.initial_events.is_some() && wanted != "NotOlderThan" {
            errors.forbidden(&path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !wanted.is_empty() {
            if self.initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.forbidden(&path, why);
            }
            if wanted != "NotOlderThan" {
                errors.not_supported(&path, wanted, &["NotOlderThan"]);
            }
        }
        // A watch that does not say where it begins counts as one that states this option.
        let stated_by_default = self.initial_events.is_none() && matches!(self.revision.as_str(), "" | "0");
        if !self.token.is_empty() && (!wanted.is_empty() || stated_by_default) {
            errors.forbidden(&path, "resourceVersionMatch is forbidden when continue is provided");
        }
    }

    /// Selects one object, as the deprecated watch paths do. Returns 400 when the field selector demands another.
    pub fn select_name(&mut self, name: &str) -> ApiResult<()> {
        if self.selection.exact_field("metadata.name").is_some_and(|wanted| wanted != name) {
            return Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let operator = FieldOperator::Equals;
        let requirement = FieldRequirement { field: "metadata.name".into(), operator, value: name.into() };
        self.selection.fields.0.push(requirement);
        Ok(())
    }

    /// Returns the namespace of the list: that of the path, or the one that a field selector demands.
    pub fn scope(&self, namespace: &str) -> Scope {
        match namespace {
            "" => self.selection.exact_field("metadata.namespace").map_or(Scope::All, Scope::namespace),
            own => Scope::namespace(own),
        }
    }
}
