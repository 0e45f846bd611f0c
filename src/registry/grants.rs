//! Refuses roles and bindings by which users would grant more than they have themselves (Kubernetes documentation,
//! "Privilege escalation prevention and bootstrapping").

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cluster::Revision;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::{Registry, Target};
use crate::access::rbac::{self, RoleRef, Unresolved, uncovered};
use crate::access::{Attributes, Inquiry, ResourceAttributes, User};
use crate::field::{joined, quote};
use crate::limits;
use crate::request::Caller;
use crate::rules::names::MASTERS;
use crate::status::{ApiError, ApiResult};

/// Metadata fields that the garbage collector may change, and `managedFields`, which change with them.
const COLLECTOR_FIELDS: [&str; 3] = ["ownerReferences", "finalizers", "managedFields"];

impl Registry {
    /// Refuses a role or binding that grants more than the user has. `old` is the stored object, `None` on a create.
    ///
    /// # Errors
    /// 403 names the permissions that the user lacks; 404 when the role of a binding does not exist.
    pub(super) async fn check_grants(
        &self,
        target: Target<'_>,
        object: &Value,
        old: Option<&Value>,
        caller: &Caller,
    ) -> ApiResult<()> {
        let served = target.served;
        if served.group() != rbac::GROUP || caller.identity.user().is_member(MASTERS) {
            return Ok(());
        }
        self.know_grants().await?;
        let grant = Grant { registry: self, target, caller, user: caller.identity.user() };
        match &*served.resource.name {
            "roles" | "clusterroles" if !only_for_collector(object, old) && !grant.may_escalate().await => {
                grant.check_role(object, old)
            }
            "rolebindings" | "clusterrolebindings" if !only_for_collector(object, old) => {
                grant.check_binding(object).await
            }
            _ => Ok(()),
        }
    }
}

impl Registry {
    /// Waits until the authorizer's index of roles and bindings contains everything that this replica has stored. The
    /// index follows the tables, usually within a millisecond. After the time limit the index is used as it is: the
    /// change of a group that cannot close stays invisible.
    ///
    /// # Errors
    /// 404 if a resource of RBAC is not served.
    pub async fn know_grants(&self) -> ApiResult<()> {
        let mut stored = [Revision::ZERO; rbac::RESOURCES.len()];
        for (stored, resource) in stored.iter_mut().zip(rbac::RESOURCES) {
            let served = self.tables.resources.of_resource(rbac::GROUP, resource).ok_or_else(ApiError::no_such_path)?;
            *stored = self.tables.table(&served).last_change();
        }
        let _ = tokio::time::timeout(limits::GRANTS_WAIT, self.tables.authorizer.rbac.reach(stored)).await;
        Ok(())
    }
}

/// One write that grants permissions, and the user who makes it.
struct Grant<'a> {
    registry: &'a Registry,
    target: Target<'a>,
    caller: &'a Caller,
    user: &'a User,
}

impl Grant<'_> {
    async fn allows(&self, of: ResourceAttributes<'_>) -> bool {
        let attributes = Attributes::Resource(ResourceAttributes { version: "*", ..of });
        let allows = |inquiry: &Inquiry| self.registry.tables.authorizer.allows(self.user, &attributes, inquiry);
        self.caller.inquiry.settled(self.caller.ends, allows).await
    }

    /// Returns whether the user has the verb `escalate` on the role, and so may grant anything by it.
    async fn may_escalate(&self) -> bool {
        let Target { served, namespace, name, .. } = self.target;
        let resource = &*served.resource.name;
        let of = ResourceAttributes {
            verb: "escalate",
            group: rbac::GROUP,
            resource,
            namespace,
            name,
            ..ResourceAttributes::default()
        };
        self.allows(of).await
    }

    /// Returns whether the user has the verb `bind` on the role, and may therefore bind it regardless of its rules.
    async fn may_bind(&self, role: &Value) -> bool {
        let resource = match RoleRef::read(role) {
            RoleRef::Role(_) => "roles",
            RoleRef::ClusterRole(_) => "clusterroles",
            RoleRef::Other(_) => return false,
        };
        self.allows(ResourceAttributes {
            verb: "bind",
            group: role.str_at(&["apiGroup"]),
            resource,
            namespace: self.target.namespace,
            name: role.str_at(&["name"]),
            ..ResourceAttributes::default()
        })
        .await
    }

    fn check_role(&self, role: &Value, old: Option<&Value>) -> ApiResult<()> {
        self.check_rules(role, role.list_at(&["rules"]))?;
        // An aggregated role can gain any rule later.
        let aggregates = |role: &Value| !role.list_at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
        let everything = value!([
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]);
        if (aggregates(role) || old.is_some_and(aggregates))
            && self.check_rules(role, everything.as_array().unwrap_or(&[])).is_err()
        {
            return Err(self.refuse(role, "must have cluster-admin privileges to use the aggregationRule"));
        }
        Ok(())
    }

    async fn check_binding(&self, binding: &Value) -> ApiResult<()> {
        let role = binding.at(&["roleRef"]);
        if self.may_bind(role).await {
            return Ok(());
        }
        match self.rules_of(role) {
            Ok(rules) => {
                let rules: Vec<Value> = rules.iter().map(rbac::Rule::to_value).collect();
                self.check_rules(binding, &rules)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the rules of a role. Errors have the wording of the reference's storage.
    fn rules_of(&self, role: &Value) -> ApiResult<Arc<[rbac::Rule]>> {
        let (role, namespace) = (RoleRef::read(role), self.target.namespace);
        let missing = |what| ApiError::bad_request(format!("{what} parameter required."));
        match &role {
            RoleRef::Role(_) if namespace.is_empty() => return Err(missing("Namespace")),
            RoleRef::Role(name) | RoleRef::ClusterRole(name) if name.is_empty() => return Err(missing("Name")),
            _ => {}
        }
        self.registry.tables.authorizer.rbac.rules_of(&role, namespace).map_err(|unresolved| match unresolved {
            Unresolved::NotFound { name, .. } => self.target.served.not_found(&name),
            unsupported => ApiError::unknown(unsupported.to_string()),
        })
    }

    fn check_rules(&self, object: &Value, wanted: &[Value]) -> ApiResult<()> {
        let (held, missing) = self.registry.tables.authorizer.rbac.resolved(self.user, self.target.namespace);
        let held: Vec<Value> = held.iter().map(rbac::Rule::to_value).collect();
        let lacking = uncovered(&held, wanted);
        if lacking.is_empty() {
            return Ok(());
        }
        let groups: Vec<String> = self.user.groups.iter().map(|group| quote(group)).collect();
        let mut why = format!(
            "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            quote(&self.user.name),
            groups.join(" "),
            described(&lacking).join("\n")
        );
        let missing = joined(missing.iter().map(|unresolved| unresolved.in_store()).collect());
        if !missing.is_empty() {
            why.push_str(&format!("; resolution errors: [{missing}]"));
        }
        Err(self.refuse(object, &why))
    }

    fn refuse(&self, object: &Value, why: &str) -> ApiError {
        let name = object.str_at(&["metadata", "name"]);
        ApiError::forbidden(rbac::GROUP, &self.target.served.resource.name, name, why)
    }
}

/// Returns whether a change alters only the fields that the garbage collector changes before it deletes an object.
fn only_for_collector(object: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return false };
    let mut rest = object.clone();
    for field in COLLECTOR_FIELDS {
        let path = ["metadata", field];
        match old.at(&path) {
            Value::Null => {
                rest.remove_at(&path);
            }
            value => rest.set_at(&path, value.clone()),
        }
    }
    rest == *old
}

/// Formats the permissions that a user lacks, as refusals show them: sorted, with the verbs on one resource together.
fn described(lacking: &[Value]) -> Vec<String> {
    let list = |grant: &Value, field: &str| -> String {
        let words = grant.list_at(&[field]).iter().filter_map(Value::as_str).map(quote);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut verbs_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = Vec::new();
    for grant in lacking {
        let mut what = String::new();
        for (field, shown) in [
            ("apiGroups", "APIGroups"),
            ("resources", "Resources"),
            ("nonResourceURLs", "NonResourceURLs"),
            ("resourceNames", "ResourceNames"),
        ] {
            if !grant.list_at(&[field]).is_empty() {
                what.push_str(&format!("{shown}:[{}], ", list(grant, field)));
            }
        }
        if grant.list_at(&["nonResourceURLs"]).is_empty() {
            verbs_of.entry(what).or_default().push(list(grant, "verbs"));
        } else {
            lines.push(format!("{{{what}Verbs:[{}]}}", list(grant, "verbs")));
        }
    }
    lines.extend(verbs_of.into_iter().map(|(what, verbs)| format!("{{{what}Verbs:[{}]}}", verbs.join(" "))));
    lines.sort_unstable();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rules_are_listed() {
        let wanted = value!([
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes"], "resourceNames": ["a"]},
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            {"verbs": ["create"], "apiGroups": ["apps"], "resources": ["deployments"]},
        ]);
        assert_eq!(
            described(&uncovered(&[], wanted.as_array().unwrap())),
            [
                "{APIGroups:[\"\"], Resources:[\"nodes\"], ResourceNames:[\"a\"], Verbs:[\"get\" \"list\"]}",
                "{APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"create\"]}",
                "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}",
            ]
        );
    }

    #[test]
    fn collectors_change_what_grants_nothing() {
        let old = value!({"metadata": {"name": "r", "finalizers": ["x"]}, "rules": []});
        let mut new = old.clone();
        new.remove_at(&["metadata", "finalizers"]);
        assert!(only_for_collector(&new, Some(&old)) && !only_for_collector(&new, None));
        new.set_at(&["metadata", "labels"], value!({"a": "b"}));
        assert!(!only_for_collector(&new, Some(&old)));
    }
}
