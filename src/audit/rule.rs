//! The rules of an audit policy.

use compact_str::CompactString;
use flotilla_proto::value::Value;

use super::fields::{list, text, texts, truth, warn_of_unknown};
use super::level::Level;
use super::policy::AuditDecision;
use super::requested::{ObjectRef, Requested};
use super::stage::Stages;
use crate::access::User;
use crate::field::{Errors, Path};
use crate::rules::names;

/// A rule of a policy.
#[derive(Debug, Default)]
pub(super) struct AuditRule {
    /// The decision about requests that the rule fits.
    pub(super) decision: AuditDecision,
    users: Vec<CompactString>,
    groups: Vec<CompactString>,
    verbs: Vec<CompactString>,
    resources: Vec<GroupResources>,
    namespaces: Vec<CompactString>,
    paths: Vec<CompactString>,
}

#[derive(Debug, Default)]
struct GroupResources {
    group: CompactString,
    resources: Vec<CompactString>,
    names: Vec<CompactString>,
}

impl AuditRule {
    /// Reads a rule. If the rule does not state whether it omits `metadata.managedFields`, `omits_fields` decides.
    ///
    /// # Errors
    /// A field has a value of another type. Other mistakes are added to `errors`.
    pub(super) fn of(value: &Value, path: &Path<'_>, omits_fields: bool, errors: &mut Errors) -> Result<Self, String> {
        const FIELDS: &[&str] = &[
            "level",
            "users",
            "userGroups",
            "verbs",
            "resources",
            "namespaces",
            "nonResourceURLs",
            "omitStages",
            "omitManagedFields",
        ];
        warn_of_unknown(value, "rules.", FIELDS);
        let level = match text(value, "level")? {
            "" => {
                errors.required(&path.child("level"), "");
                Level::None
            }
            name => Level::ALL.into_iter().find(|level| level.name() == name).unwrap_or_else(|| {
                errors.not_supported(&path.child("level"), name, &Level::ALL.map(Level::name));
                Level::None
            }),
        };
        let rule = Self {
            users: texts(value, "users")?,
            groups: texts(value, "userGroups")?,
            verbs: texts(value, "verbs")?,
            namespaces: texts(value, "namespaces")?,
            paths: texts(value, "nonResourceURLs")?,
            resources: list(value, "resources")?.iter().map(GroupResources::of).collect::<Result<_, _>>()?,
            decision: AuditDecision::default(),
        };
        rule.check_paths(&path.child("nonResourceURLs"), errors);
        rule.check_resources(&path.child("resources"), errors);
        let omitted = Stages::of(&texts(value, "omitStages")?, &path.child("omitStages"), errors);
        let names_objects = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if names_objects && !rule.paths.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(&path.child("nonResourceURLs"), value.at(&["nonResourceURLs"]), why);
        }
        let without_managed_fields = truth(value, "omitManagedFields")?.unwrap_or(omits_fields);
        Ok(Self { decision: AuditDecision { level, omitted, without_managed_fields }, ..rule })
    }

    fn check_paths(&self, path: &Path<'_>, errors: &mut Errors) {
        for (at, url) in self.paths.iter().enumerate().filter(|(_, url)| *url != "*") {
            if !url.starts_with('/') {
                errors.invalid_str(&path.index(at), url, "non-resource URL rules must begin with a '/' character");
            }
            if url.find('*').is_some_and(|star| star + 1 < url.len()) {
                let why = "non-resource URL wildcards '*' must be the final character of the rule";
                errors.invalid_str(&path.index(at), url, why);
            }
        }
    }

    fn check_resources(&self, path: &Path<'_>, errors: &mut Errors) {
        for of in &self.resources {
            let wrong =
                if matches!(&*of.group, "" | "*") { Vec::new() } else { names::dns1123_subdomain(&of.group).to_vec() };
            if !wrong.is_empty() {
                errors.invalid_str(&path.child("group"), &of.group, wrong.join(","));
            }
            if !of.names.is_empty() && of.resources.is_empty() {
                let names = Value::from(of.names.iter().map(|name| Value::from(&**name)).collect::<Vec<_>>());
                errors.invalid(
                    &path.child("resourceNames"),
                    &names,
                    "using resourceNames requires at least one resource",
                );
            }
        }
    }

    /// Returns whether the rule is about a request. `user` is `None` if authentication failed.
    pub(super) fn fits(&self, user: Option<&User>, requested: &Requested<'_>) -> bool {
        let any = |list: &[CompactString], text: &str| list.is_empty() || list.iter().any(|own| own == text);
        if !self.users.is_empty() && !user.is_some_and(|user| any(&self.users, &user.name)) {
            return false;
        }
        if !self.groups.is_empty() && !user.is_some_and(|user| self.groups.iter().any(|group| user.is_member(group))) {
            return false;
        }
        if !any(&self.verbs, requested.verb) {
            return false;
        }
        match requested.object {
            Some(object) if !(self.namespaces.is_empty() && self.resources.is_empty()) => {
                any(&self.namespaces, object.namespace)
                    && (self.resources.is_empty() || self.resources.iter().any(|own| own.fits(&object)))
            }
            Some(_) => self.paths.is_empty(),
            None => {
                self.namespaces.is_empty()
                    && self.resources.is_empty()
                    && (self.paths.is_empty() || self.paths.iter().any(|spec| path_fits(spec, requested.path)))
            }
        }
    }
}

fn path_fits(spec: &str, path: &str) -> bool {
    spec == "*" || spec == path || (spec.ends_with('*') && path.starts_with(spec.trim_end_matches('*')))
}

impl GroupResources {
    fn of(value: &Value) -> Result<Self, String> {
        warn_of_unknown(value, "rules.resources.", &["group", "resources", "resourceNames"]);
        Ok(Self {
            group: text(value, "group")?.into(),
            resources: texts(value, "resources")?,
            names: texts(value, "resourceNames")?,
        })
    }

    fn fits(&self, object: &ObjectRef<'_>) -> bool {
        if self.group != object.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.names.is_empty() && !self.names.iter().any(|name| name == object.name) {
            return false;
        }
        self.resources.iter().any(|own| {
            if own == "*" || (object.subresource.is_empty() && own == object.resource) {
                return true;
            }
            let Some((resource, subresource)) = own.split_once('/') else { return false };
            match (resource, subresource) {
                (resource, "*") => resource == object.resource,
                ("*", subresource) => !object.subresource.is_empty() && subresource == object.subresource,
                (resource, subresource) => resource == object.resource && subresource == object.subresource,
            }
        })
    }
}
