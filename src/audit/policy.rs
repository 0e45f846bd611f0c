//! The file of `--audit-policy-file`: which requests are recorded, and how much of them.

use std::collections::BTreeSet;
use std::path::Path;

use compact_str::CompactString;
use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use crate::access::User;
use crate::field::{Errors, Path as FieldPath, quote};
use crate::pki::{PkiError, read_credential};
use crate::rules::names;

const VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

/// The extent to which a request is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// The user, the request and its result.
    Metadata,
    /// Also the object of the request.
    Request,
    /// Also the object of the answer.
    RequestResponse,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// Returns the name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The moment of a request at which an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The user is authenticated, and nothing else is done yet.
    RequestReceived,
    /// The head of the answer of a long-running request is sent.
    ResponseStarted,
    /// Nothing more of the answer will be sent.
    ResponseComplete,
    /// The server failed to answer.
    Panic,
}

impl Stage {
    const ALL: [Self; 4] = [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// Returns the name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Returns whether a stage is in the set.
    pub const fn has(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }
}

/// The decision of the policy about a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditDecision {
    /// The extent of the record.
    pub level: Level,
    /// The stages without events.
    pub omitted: Stages,
    /// Whether objects are recorded without `metadata.managedFields`.
    pub without_managed_fields: bool,
}

/// A request as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Requested<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The path, decoded.
    pub path: &'a str,
    /// The objects that the request is about. `None` if the path leads to no resource.
    pub object: Option<ObjectRef<'a>>,
}

/// The objects of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectRef<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource; may be empty.
    pub subresource: &'a str,
    /// The namespace; empty at the cluster scope.
    pub namespace: &'a str,
    /// The name; may be empty.
    pub name: &'a str,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// The file is not valid YAML.
    #[error("failed decoding: {source}: from file {path}")]
    Yaml {
        /// The file.
        path: String,
        /// The mistake.
        source: yaml::Error,
    },
    /// The policy is not valid.
    #[error("{why}: from file {path}")]
    Wrong {
        /// The file.
        path: String,
        /// The mistake.
        why: String,
    },
}

/// The rules. The first one that fits a request decides.
#[derive(Debug, Default)]
pub struct Policy {
    rules: Vec<AuditRule>,
    otherwise: AuditDecision,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The file cannot be read or is not a policy, or a rule is not valid.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let text = read_credential(path)?;
        let shown = || path.display().to_string();
        let parsed = yaml::parse(text.as_bytes()).map_err(|source| PolicyError::Yaml { path: shown(), source })?;
        Self::of(&parsed.value).map_err(|why| PolicyError::Wrong { path: shown(), why })
    }

    fn of(value: &Value) -> Result<Self, String> {
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        if kind.is_empty() {
            return Err("failed decoding: Object 'Kind' is missing".to_owned());
        }
        if (version, kind) != (VERSION, KIND) {
            return Err(format!(
                "failed decoding: no kind {} is registered for version {}",
                quote(kind),
                quote(version)
            ));
        }
        warn_of_unknown(value, "", &["apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"]);
        let mut errors = Errors::default();
        let stages = texts(value, "omitStages")?;
        let omitted = stages_of(&stages, &FieldPath::root("omitStages"), &mut errors);
        let without_managed_fields = truth(value, "omitManagedFields")?.unwrap_or(false);
        let root = FieldPath::root("rules");
        let mut rules = Vec::new();
        for (at, rule) in list(value, "rules")?.iter().enumerate() {
            let mut rule = AuditRule::of(rule, &root.index(at), without_managed_fields, &mut errors)?;
            rule.decision.omitted.0 |= omitted.0;
            rules.push(rule);
        }
        if !errors.is_empty() {
            let all: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
            return Err(if all.len() == 1 { all.concat() } else { format!("[{}]", all.join(", ")) });
        }
        if rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".to_owned());
        }
        Ok(Self { rules, otherwise: AuditDecision { level: Level::None, omitted, without_managed_fields } })
    }

    /// Decides about a request. `user` is `None` if authentication failed.
    pub fn decide(&self, user: Option<&User>, requested: &Requested<'_>) -> AuditDecision {
        self.rules.iter().find(|rule| rule.fits(user, requested)).map_or(self.otherwise, |rule| rule.decision)
    }
}

#[derive(Debug, Default)]
struct AuditRule {
    decision: AuditDecision,
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
    fn of(value: &Value, path: &FieldPath<'_>, omits_fields: bool, errors: &mut Errors) -> Result<Self, String> {
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
        let omitted = stages_of(&texts(value, "omitStages")?, &path.child("omitStages"), errors);
        let names_objects = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if names_objects && !rule.paths.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(&path.child("nonResourceURLs"), value.at(&["nonResourceURLs"]), why);
        }
        let without_managed_fields = truth(value, "omitManagedFields")?.unwrap_or(omits_fields);
        Ok(Self { decision: AuditDecision { level, omitted, without_managed_fields }, ..rule })
    }

    fn check_paths(&self, path: &FieldPath<'_>, errors: &mut Errors) {
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

    fn check_resources(&self, path: &FieldPath<'_>, errors: &mut Errors) {
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

    fn fits(&self, user: Option<&User>, requested: &Requested<'_>) -> bool {
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

/// Warns of unknown fields, which are ignored as in the reference.
fn warn_of_unknown(value: &Value, place: &str, known: &[&str]) {
    let members = value.as_object().into_iter().flat_map(|members| members.keys());
    let unknown: BTreeSet<&str> = members.filter(|name| !known.contains(name)).collect();
    for name in unknown {
        tracing::warn!(field = %format_args!("{place}{name}"), "an unknown field of the audit policy is ignored");
    }
}

fn stages_of(stages: &[CompactString], path: &FieldPath<'_>, errors: &mut Errors) -> Stages {
    let mut all = Stages::default();
    for (at, name) in stages.iter().enumerate() {
        match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
            Some(stage) => all.0 |= 1 << stage as u8,
            None => {
                let why = format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                errors.invalid_str(&path.index(at), name, why);
            }
        }
    }
    all
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> String {
    format!("failed decoding: {name} must be {wanted}, not of type {}", found.type_name())
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    let found = value.at(&[name]);
    if found.is_null() { Ok("") } else { found.as_str().ok_or_else(|| wrong_type(name, "a string", found)) }
}

fn truth(value: &Value, name: &str) -> Result<Option<bool>, String> {
    let found = value.at(&[name]);
    if found.is_null() {
        Ok(None)
    } else {
        found.as_bool().map(Some).ok_or_else(|| wrong_type(name, "a boolean", found))
    }
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value], String> {
    let found = value.at(&[name]);
    if found.is_null() { Ok(&[]) } else { found.as_array().ok_or_else(|| wrong_type(name, "a list", found)) }
}

fn texts(value: &Value, name: &str) -> Result<Vec<CompactString>, String> {
    let all = list(value, name)?.iter();
    all.map(|item| item.as_str().map(Into::into).ok_or_else(|| wrong_type(name, "a list of strings", item))).collect()
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
