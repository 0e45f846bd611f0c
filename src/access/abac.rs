//! Authorizes by the policies of a file (Kubernetes documentation, "Using ABAC Authorization").

use std::path::Path;

use compact_str::CompactString;
use flotilla_proto::value::Value;

use super::attributes::{Attributes, ResourceAttributes};
use super::rbac::Rule;
use super::user::{AUTHENTICATED, User};
use crate::field::quote;
use crate::pki::{PkiError, read_credential};
use crate::type_meta;
use crate::webhooks::typed::{self, TypedMember};

/// The version that a policy without a version has.
const OLD: &str = "abac.authorization.kubernetes.io/v0";
const CURRENT: &str = "abac.authorization.kubernetes.io/v1beta1";
const KIND: &str = "Policy";
/// The wildcard of users, groups, namespaces, resources, API groups and paths.
const ALL: &str = "*";
/// The verbs that every policy allows.
const READING: [&str; 3] = ["get", "list", "watch"];

/// The policies of a file, in its order.
#[derive(Debug)]
pub struct Policies(Box<[AbacPolicy]>);

/// The reason why a file of policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// A line is not a policy.
    #[error("error reading policy file {path}, line {line}: {text}: {why}")]
    Line {
        /// The file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
        /// The mistake.
        why: String,
    },
}

/// Lets users make requests.
#[derive(Debug)]
struct AbacPolicy {
    /// The name of the user. If empty, the group alone counts.
    user: String,
    /// The group of the user. If empty, the name alone counts.
    group: String,
    /// Whether only the verbs of [`READING`] are allowed.
    reads_only: bool,
    /// The API group of the resource, empty for the core group, or `*`.
    api_group: String,
    /// The resource, or `*`. If empty, only paths are allowed.
    resource: String,
    /// The namespace, empty for requests without one, or `*`.
    namespace: String,
    /// The path of requests that concern no resource. `*` at its end stands for any rest. If empty, only resources are
    /// allowed.
    path: String,
}

impl Policies {
    /// Reads a file with a policy on each line. Skips empty lines and lines that start with `#`.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a policy.
    pub fn open(path: &Path) -> Result<Self, PolicyError> {
        let text = read_credential(path)?;
        Self::parse(&text).map_err(|(line, text, why)| PolicyError::Line {
            path: path.display().to_string(),
            line,
            text,
            why,
        })
    }

    /// Returns the policies of a text. An error has the number of the line, the line, and the mistake.
    fn parse(text: &str) -> Result<Self, (usize, String, String)> {
        let (mut policies, mut old) = (Vec::new(), 0);
        for (number, line) in text.lines().enumerate() {
            let stated = line.trim();
            if stated.is_empty() || stated.starts_with('#') {
                continue;
            }
            let document = type_meta::parse(stated.as_bytes());
            let policy = document.and_then(|document| {
                let is_old = is_old(&document)?;
                old += usize::from(is_old);
                if is_old { AbacPolicy::old(&document) } else { AbacPolicy::current(&document) }
            });
            policies.push(policy.map_err(|why| (number + 1, line.to_owned(), why))?);
        }
        if old > 0 {
            tracing::warn!(policies = old, "policies of ABAC without a version: see Kubernetes' documentation of ABAC");
        }
        Ok(Self(policies.into()))
    }

    /// Returns whether a policy lets the user make the request.
    pub fn allow(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        self.0.iter().any(|policy| policy.concerns(user) && policy.allows(attributes))
    }

    /// Returns the permissions of a user in a namespace, as rules.
    pub fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let concerns = |policy: &&AbacPolicy| policy.concerns(user) && matches(&policy.namespace, namespace);
        self.0.iter().filter(concerns).flat_map(AbacPolicy::rules).collect()
    }
}

/// Returns whether a document is a policy of the version `v0`, whose fields are not in `spec`.
///
/// # Errors
/// The document is not a policy, or has an unknown version.
fn is_old(document: &Value) -> Result<bool, String> {
    let or = |field: &str, default: &'static str| match document.str_at(&[field]) {
        "" => default.to_owned(),
        stated => stated.to_owned(),
    };
    let (version, kind) = (or("apiVersion", OLD), or("kind", KIND));
    match (&*version, &*kind) {
        (OLD, KIND) => Ok(true),
        (CURRENT, KIND) if document.str_at(&["kind"]).is_empty() => {
            Err(format!("converting (v1beta1.{KIND}) to (v0.{KIND}): unknown conversion"))
        }
        (CURRENT, KIND) => Ok(false),
        _ if version.matches('/').count() > 1 => Err(format!("unexpected GroupVersion string: {version}")),
        _ => {
            let (kind, version) = (quote(&kind), quote(&version));
            Err(format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""))
        }
    }
}

impl AbacPolicy {
    /// Reads a policy of the version `v1beta1`.
    fn current(document: &Value) -> Result<Self, String> {
        const SPEC: &str = "PolicySpec";
        let is_object = |value: &Value| value.as_object().is_some();
        typed::check(
            document,
            &[
                TypedMember { path: &["spec"], of: KIND, called: "v1beta1.PolicySpec", takes: is_object },
                text(SPEC, &["spec", "user"]),
                text(SPEC, &["spec", "group"]),
                flag(SPEC, &["spec", "readonly"]),
                text(SPEC, &["spec", "apiGroup"]),
                text(SPEC, &["spec", "resource"]),
                text(SPEC, &["spec", "namespace"]),
                text(SPEC, &["spec", "nonResourcePath"]),
            ],
        )?;
        let field = |name: &str| document.str_at(&["spec", name]).to_owned();
        Ok(Self {
            user: field("user"),
            group: field("group"),
            reads_only: document.at(&["spec", "readonly"]).as_bool() == Some(true),
            api_group: field("apiGroup"),
            resource: field("resource"),
            namespace: field("namespace"),
            path: field("nonResourcePath"),
        }
        .for_authenticated())
    }

    /// Reads a policy of the version `v0`. What it does not state matches everything.
    fn old(document: &Value) -> Result<Self, String> {
        typed::check(
            document,
            &[
                text(KIND, &["user"]),
                text(KIND, &["group"]),
                flag(KIND, &["readonly"]),
                text(KIND, &["resource"]),
                text(KIND, &["namespace"]),
            ],
        )?;
        let field = |name: &str| document.str_at(&[name]);
        let or_all = |name: &str| if field(name).is_empty() { ALL } else { field(name) }.to_owned();
        let concerns_paths = field("resource").is_empty() && field("namespace").is_empty();
        let is_for_all = field("user").is_empty() && field("group").is_empty();
        Ok(Self {
            user: field("user").to_owned(),
            group: if is_for_all { ALL } else { field("group") }.to_owned(),
            reads_only: document.at(&["readonly"]).as_bool() == Some(true),
            api_group: ALL.to_owned(),
            resource: or_all("resource"),
            namespace: or_all("namespace"),
            path: if concerns_paths { ALL } else { "" }.to_owned(),
        }
        .for_authenticated())
    }

    /// A user or group `*` stands for all authenticated users.
    fn for_authenticated(self) -> Self {
        match self.user == ALL || self.group == ALL {
            true => Self { user: String::new(), group: AUTHENTICATED.to_owned(), ..self },
            false => self,
        }
    }

    fn concerns(&self, user: &User) -> bool {
        let is_stated = !self.user.is_empty() || !self.group.is_empty();
        is_stated
            && (self.user.is_empty() || user.name == self.user)
            && (self.group.is_empty() || user.is_member(&self.group))
    }

    fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if self.reads_only && !READING.contains(&attributes.verb()) {
            return false;
        }
        match *attributes {
            Attributes::Resource(ResourceAttributes { group, resource, namespace, .. }) => {
                matches(&self.namespace, namespace)
                    && matches(&self.resource, resource)
                    && matches(&self.api_group, group)
            }
            Attributes::Path { path, .. } => {
                let begins = |begin: &str| path.starts_with(begin.trim_end_matches('*'));
                self.path == path || self.path.strip_suffix('*').is_some_and(begins)
            }
        }
    }

    /// Returns what the policy allows as rules of a role.
    fn rules(&self) -> impl Iterator<Item = Rule> {
        let only = |word: &str| Box::from([CompactString::from(word)]);
        let verbs: Box<[CompactString]> = match self.reads_only {
            true => READING.map(CompactString::from).into(),
            false => only(ALL),
        };
        let of_resource = (!self.resource.is_empty()).then(|| Rule {
            verbs: verbs.clone(),
            groups: only(&self.api_group),
            resources: only(&self.resource),
            ..Rule::default()
        });
        let of_path = (!self.path.is_empty()).then(|| Rule { verbs, urls: only(&self.path), ..Rule::default() });
        [of_resource, of_path].into_iter().flatten()
    }
}

const fn text(of: &'static str, path: &'static [&'static str]) -> TypedMember {
    TypedMember { path, of, called: "string", takes: |value| value.as_str().is_some() }
}

const fn flag(of: &'static str, path: &'static [&'static str]) -> TypedMember {
    TypedMember { path, of, called: "bool", takes: |value| value.as_bool().is_some() }
}

/// Returns whether a field of a policy, which may be `*`, matches a text.
fn matches(stated: &str, text: &str) -> bool {
    stated == ALL || stated == text
}

#[cfg(test)]
#[path = "abac_tests.rs"]
mod tests;
