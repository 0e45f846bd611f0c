//! Resources that nobody may consume without a quota for them (ResourceQuotaConfiguration of
//! `apiserver.config.k8s.io`).

use std::collections::BTreeSet;

use flotilla_proto::value::{Map, Value};

use super::scopes::{self, Scope};
use super::{Charge, Usage};
use crate::field::{Errors, Path};

/// A resource whose consumption needs a quota.
#[derive(Debug, Clone, PartialEq)]
pub struct Limited {
    group: String,
    resource: String,
    /// Parts of the names of the amounts that need a quota.
    contains: Vec<String>,
    /// Scopes that need a quota, as quotas have them.
    scopes: Vec<Value>,
}

/// The reason why a write is refused that no quota covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncovered {
    /// The amounts that no quota has.
    Amounts(String),
    /// The scopes that no quota has. The reference answers with an internal error.
    Scopes(String),
}

/// The members of a configuration, and of a scope in it.
const MEMBERS: [&str; 4] = ["apiGroup", "resource", "matchContains", "matchScopes"];
const SCOPE_MEMBERS: [&str; 3] = ["scopeName", "operator", "values"];

impl Limited {
    /// Reads a configuration; adds an error for each setting that is wrong or not known.
    pub fn read(document: &Value, errors: &mut Errors) -> Vec<Self> {
        let root = Path::root("limitedResources");
        known(document, &["apiVersion", "kind", "limitedResources"], "", errors);
        let all = items(document, "limitedResources", &root, errors);
        let each = all.iter().enumerate().map(|(at, limited)| Self::read_one(limited, &root.index(at), errors));
        each.collect()
    }

    fn read_one(limited: &Value, path: &Path<'_>, errors: &mut Errors) -> Self {
        known(limited, &MEMBERS, &path.to_string(), errors);
        if limited.str_at(&["resource"]).is_empty() {
            errors.required(&path.child("resource"), "");
        }
        let scopes = items(limited, "matchScopes", &path.child("matchScopes"), errors);
        for (at, scope) in scopes.iter().enumerate() {
            let path = path.child("matchScopes");
            known(scope, &SCOPE_MEMBERS, &path.index(at).to_string(), errors);
        }
        let contains = items(limited, "matchContains", &path.child("matchContains"), errors);
        Self {
            group: limited.str_at(&["apiGroup"]).to_owned(),
            resource: limited.str_at(&["resource"]).to_owned(),
            contains: contains.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            scopes: scopes.to_vec(),
        }
    }
}

/// Returns the items of a list; adds an error if the member is something else.
fn items<'v>(of: &'v Value, member: &str, path: &Path<'_>, errors: &mut Errors) -> &'v [Value] {
    let value = of.at(&[member]);
    if !value.is_null() && value.as_array().is_none() {
        errors.invalid(path, value, "must be a list");
    }
    of.list_at(&[member])
}

/// Adds an error for each member that the configuration does not have.
fn known(of: &Value, members: &[&str], path: &str, errors: &mut Errors) {
    for name in of.as_object().into_iter().flat_map(Map::keys).filter(|name| !members.contains(name)) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        errors.forbidden(&Path::root(&path), "unknown field");
    }
}

impl Charge<'_> {
    /// Checks that the quotas of a namespace cover the amounts that the configuration limits.
    ///
    /// # Errors
    /// A limited resource is covered by no quota.
    pub fn check_covered(
        &self,
        limited: &[Limited],
        quotas: &[Value],
        used: &(Usage, Option<Usage>),
    ) -> Result<(), Uncovered> {
        if limited.is_empty() || !self.consumes(quotas, used) {
            return Ok(());
        }
        let covered = quotas.iter().filter_map(|quota| self.limits_of(quota)).flatten().collect::<BTreeSet<_>>();
        let mut amounts = self.limited_amounts(limited, &used.0);
        amounts.retain(|name| !covered.contains(name));
        if !amounts.is_empty() {
            return Err(Uncovered::Amounts(amounts.into_iter().collect::<Vec<_>>().join(",")));
        }
        let of_quotas = quotas.iter().flat_map(scopes::of_quota).filter(|scope| self.is_in(scope));
        let covered: BTreeSet<&str> = of_quotas.map(|scope| scope.name).collect();
        let stated = limited.iter().flat_map(|limited| &limited.scopes).map(scopes::stated);
        let missing = stated.filter(|scope| self.is_in(scope) && !covered.contains(scope.name));
        let missing: Vec<String> = missing.map(|scope| scope.to_string()).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Uncovered::Scopes(missing.join(" "))),
        }
    }

    /// Returns the amounts of an object that need a quota.
    fn limited_amounts<'u>(&self, limited: &[Limited], used: &'u Usage) -> BTreeSet<&'u str> {
        let own = limited.iter().filter(|limited| (&*limited.group, &*limited.resource) == (self.group, self.resource));
        let parts: Vec<&str> = own.flat_map(|limited| &limited.contains).map(String::as_str).collect();
        let consumed = used.iter().filter(|(_, amount)| amount.sign() > 0).map(|(name, _)| &**name);
        consumed.filter(|name| parts.iter().any(|part| name.contains(part))).collect()
    }

    /// Returns whether the write consumes more than before, or a quota concerns the object that did not concern it
    /// before.
    fn consumes(&self, quotas: &[Value], (now, before): &(Usage, Option<Usage>)) -> bool {
        let mut concerned = quotas.iter().filter(|quota| self.limits_of(quota).is_some()).peekable();
        let (Some(before), Some(old)) = (before, self.old) else { return true };
        let more = now.iter().any(|(name, amount)| {
            let grown = before.get(name).map_or_else(|| amount.clone(), |before| amount.minus(before));
            grown.sign() > 0
        });
        more || concerned.any(|quota| !scopes::match_object(quota, self.group, self.resource, old))
    }

    fn is_in(&self, scope: &Scope<'_>) -> bool {
        scopes::is_in(scope, self.group, self.resource, self.object)
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::time::Timestamp;
    use flotilla_proto::value;

    use super::*;

    fn read(limited: Value) -> Vec<Limited> {
        let mut errors = Errors::default();
        let read = Limited::read(&value!({"limitedResources": limited}), &mut errors);
        assert!(errors.is_empty(), "{:?}", errors.0);
        read
    }

    fn check(limited: Value, quotas: &[Value], pod: &Value, old: Option<&Value>) -> Result<(), Uncovered> {
        let now = Timestamp { seconds: 1_790_000_000, nanos: 0 };
        let charge = Charge { group: "", resource: "pods", subresource: "", object: pod, old, now };
        charge.check_covered(&read(limited), quotas, &charge.usages())
    }

    fn pod(class: &str) -> Value {
        value!({"spec": {"priorityClassName": class, "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}]}})
    }

    fn quota(hard: Value, spec: Value) -> Value {
        value!({"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard}})
    }

    #[test]
    fn amounts_need_a_quota() {
        let limited = || value!([{"resource": "pods", "matchContains": ["gpu", "cpu"]}]);
        let refused = check(limited(), &[], &pod(""), None).unwrap_err();
        assert_eq!(refused, Uncovered::Amounts("cpu,requests.cpu,requests.example.com/gpu".into()));
        let hard = value!({"cpu": "1", "requests.cpu": "1"});
        let part = quota(hard, value!({}));
        let refused = check(limited(), std::slice::from_ref(&part), &pod(""), None).unwrap_err();
        assert_eq!(refused, Uncovered::Amounts("requests.example.com/gpu".into()));
        let rest = quota(value!({"requests.example.com/gpu": "1"}), value!({}));
        assert_eq!(check(limited(), &[part, rest], &pod(""), None), Ok(()));
        assert_eq!(check(value!([{"resource": "services", "matchContains": ["cpu"]}]), &[], &pod(""), None), Ok(()));
        assert_eq!(check(limited(), &[], &pod(""), Some(&pod("other"))), Ok(()), "nothing more is consumed");
    }

    #[test]
    fn scopes_need_a_quota() {
        let scope = |operator: &str| value!({"scopeName": "PriorityClass", "operator": operator, "values": ["a", "b"]});
        let limited = || value!([{"resource": "pods", "matchScopes": [(scope("In"))]}]);
        assert_eq!(check(limited(), &[], &pod("c"), None), Ok(()));
        let refused = check(limited(), &[], &pod("a"), None).unwrap_err();
        assert_eq!(refused, Uncovered::Scopes("{PriorityClass In [a b]}".into()));
        let spec =
            value!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}});
        assert_eq!(check(limited(), &[quota(value!({"pods": "1"}), spec)], &pod("a"), None), Ok(()));
        let spec = value!({"scopes": ["NotTerminating"]});
        assert!(check(limited(), &[quota(value!({"pods": "1"}), spec)], &pod("a"), None).is_err());
    }

    #[test]
    fn wrong_settings_are_named() {
        let mut errors = Errors::default();
        let wrong = value!({"limitedResources": [{"matchContain": [], "matchScopes": [{"name": "x"}]}, {
            "resource": "pods", "matchContains": "cpu"}], "limits": []});
        Limited::read(&wrong, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| &*error.field).collect();
        let one = "limitedResources[0]";
        let expected = [
            "limits".into(),
            format!("{one}.matchContain"),
            format!("{one}.resource"),
            format!("{one}.matchScopes[0].name"),
            "limitedResources[1].matchContains".into(),
        ];
        assert_eq!(fields, expected);
    }
}
