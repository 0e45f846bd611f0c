//! The file of `--audit-policy-file`: the requests that are recorded, and the extent of each record.

use std::path::Path;

use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use super::fields::{list, texts, truth, warn_of_unknown};
use super::level::Level;
use super::requested::Requested;
use super::rule::AuditRule;
use super::stage::Stages;
use crate::access::User;
use crate::field::{Errors, Path as FieldPath, quote};
use crate::pki::{PkiError, read_credential};

const VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

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

/// The reasons why a policy cannot be used.
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
        let omitted = Stages::of(&stages, &FieldPath::root("omitStages"), &mut errors);
        let without_managed_fields = truth(value, "omitManagedFields")?.unwrap_or(false);
        let root = FieldPath::root("rules");
        let mut rules = Vec::new();
        for (at, rule) in list(value, "rules")?.iter().enumerate() {
            let mut rule = AuditRule::of(rule, &root.index(at), without_managed_fields, &mut errors)?;
            rule.decision.omitted = rule.decision.omitted.and(omitted);
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

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
