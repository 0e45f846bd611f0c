//! ResourceQuotas: computes the usage of an object and decides whether the budget of a namespace has room for it
//! (plugin ResourceQuota).

mod limited;
mod names;
#[cfg(test)]
mod quota_tests;
mod scopes;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use flotilla_proto::quantity::Quantity;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Map, Value};

pub use self::limited::{Limited, Uncovered};
pub use self::names::{counts, resources_of};
pub use self::usage::ends_at;
use crate::kinds::core::pod::resources::quantities::is_for_pods;
use crate::rules::resources::amount;

/// Amounts by the names that quotas use for them.
pub type Usage = BTreeMap<String, Quantity>;

/// Resources that every container must state if a quota limits them.
const STATED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// A write of an object that quotas may be charged for.
#[derive(Debug, Clone, Copy)]
pub struct Charge<'a> {
    /// Group of the resource.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The object after the write.
    pub object: &'a Value,
    /// The object before, unless it is new.
    pub old: Option<&'a Value>,
    /// The present time.
    pub now: Timestamp,
}

/// Updates that can change an object's usage: group, resource and subresource.
const RECHARGED: [(&str, &str, &str); 6] = [
    ("", "persistentvolumeclaims", ""),
    ("", "persistentvolumeclaims", "status"),
    ("", "pods", ""),
    ("", "pods", "resize"),
    ("", "services", ""),
    ("resource.k8s.io", "resourceclaims", ""),
];

/// Returns whether updates of a resource through a subresource can change the usage.
pub fn is_recharged(group: &str, resource: &str, subresource: &str) -> bool {
    RECHARGED.contains(&(group, resource, subresource))
}

/// Returns whether quotas count the objects of a resource: all that are stored, except events.
pub fn is_counted(group: &str, resource: &str) -> bool {
    let is_virtual = matches!((group, resource), ("", "bindings" | "componentstatuses"))
        || matches!(group, "authentication.k8s.io" | "authorization.k8s.io");
    let is_event = resource == "events" && matches!(group, "" | "events.k8s.io");
    !is_virtual && !is_event
}

/// Returns the usage of an object.
pub fn usage(group: &str, resource: &str, object: &Value, now: Timestamp) -> Usage {
    usage::of(group, resource, object, now)
}

impl Charge<'_> {
    /// Returns whether the write can change the usage, so that quotas must be checked.
    pub fn is_due(&self) -> bool {
        let Self { group, resource, subresource, object, old, .. } = *self;
        let Some(old) = old else { return subresource.is_empty() && is_counted(group, resource) };
        match (group, resource, subresource) {
            // Of all fields of a pod's spec only its deadline can move the pod from one quota to another (scopes
            // `Terminating` and `NotTerminating`).
            ("", "pods", "") => scopes::ends(object) != scopes::ends(old),
            _ => is_recharged(group, resource, subresource),
        }
    }

    /// Returns the usage of the object after the write, and before it unless it is new.
    pub fn usages(&self) -> (Usage, Option<Usage>) {
        let of = |object| usage(self.group, self.resource, object, self.now);
        (of(self.object), self.old.map(of))
    }

    /// Returns the names of the object's amounts that a quota limits. `None` if the quota does not concern the object.
    fn limits_of<'q>(&self, quota: &'q Value) -> Option<BTreeSet<&'q str>> {
        let hard = quota.map_at(&["status", "hard"])?;
        let limited: BTreeSet<&str> = hard.keys().filter(|name| counts(name, self.group, self.resource)).collect();
        let concerns = || scopes::match_object(quota, self.group, self.resource, self.object);
        (!limited.is_empty() && concerns()).then_some(limited)
    }

    /// Checks that an object states the amounts that a quota limits, and that the usage of the quota is known.
    pub fn check_stated(&self, quota: &Value) -> Result<(), String> {
        let Some(limited) = self.limits_of(quota) else { return Ok(()) };
        let name = quota.str_at(&["metadata", "name"]);
        if (self.group, self.resource) == ("", "pods") {
            must_state(self.object, &limited).map_err(|why| format!("failed quota: {name}: {why}"))?;
        }
        let known = quota.map_at(&["status", "used"]);
        if limited.iter().any(|name| known.is_none_or(|known| known.get(name).is_none())) {
            let names = limited.into_iter().collect::<Vec<_>>().join(",");
            return Err(format!("status unknown for quota: {name}, resources: {names}"));
        }
        Ok(())
    }

    /// Checks the write against a quota. Returns the new `used` of the quota, or `None` if the write does not change
    /// it. `Err` is the reason why there is no room.
    pub fn check(&self, quota: &Value, used: &(Usage, Option<Usage>)) -> Result<Option<Usage>, String> {
        self.check_stated(quota)?;
        if self.limits_of(quota).is_none() {
            return Ok(None);
        }
        let Some(hard) = quota.map_at(&["status", "hard"]) else { return Ok(None) };
        let (name, known) = (quota.str_at(&["metadata", "name"]), quota.map_at(&["status", "used"]));
        let concerns = |object| scopes::match_object(quota, self.group, self.resource, object);
        let (now, before) = used;
        let negative: Vec<&str> = now.iter().filter(|(_, more)| more.sign() < 0).map(|(name, _)| &**name).collect();
        if !negative.is_empty() {
            return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
        }
        // An object that the quota did not select before the write is charged as a whole.
        let before = before.as_ref().filter(|_| self.old.is_some_and(concerns));
        let mut requested = now.clone();
        requested.retain(|name, amount| {
            if let Some(before) = before.and_then(|before| before.get(name)) {
                *amount = amount.minus(before);
            }
            amount.sign() > 0 && hard.get(name).is_some()
        });
        let may_exceed = self.subresource == "status"; // the limit was checked when the resize was requested
        add(name, hard, known, &requested, may_exceed).map(Some).map(|after| after.filter(|after| !after.is_empty()))
    }
}

/// Adds the requested amounts to `used`. `Err` lists the amounts that exceed the quota, unless `may_exceed`.
fn add(name: &str, hard: &Map, used: Option<&Map>, requested: &Usage, may_exceed: bool) -> Result<Usage, String> {
    let mut after = Usage::new();
    let (mut asked, mut had, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for (resource, more) in requested {
        let of = |list: Option<&Map>| list.and_then(|list| list.get(resource)).map(amount);
        let (before, Some(most)) = (of(used).unwrap_or(amount(&Value::Null)), of(Some(hard))) else { continue };
        let sum = before.plus(more);
        if sum > most && !may_exceed {
            asked.push(format!("{resource}={more}"));
            had.push(format!("{resource}={before}"));
            limits.push(format!("{resource}={most}"));
        }
        after.insert(resource.clone(), sum);
    }
    if asked.is_empty() {
        return Ok(after);
    }
    let (asked, had, limits) = (asked.join(","), had.join(","), limits.join(","));
    Err(format!("exceeded quota: {name}, requested: {asked}, used: {had}, limited: {limits}"))
}

/// Checks that every container states the limited resources, or that the pod states resources as a whole.
fn must_state(pod: &Value, limited: &BTreeSet<&str>) -> Result<(), String> {
    let own = ["requests", "limits"].into_iter().filter_map(|which| pod.map_at(&["spec", "resources", which]));
    if own.flat_map(Map::keys).any(is_for_pods) {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in ["containers", "initContainers"].iter().flat_map(|list| pod.list_at(&["spec", list])) {
        for name in STATED.iter().filter(|name| limited.contains(*name)) {
            let (which, resource) = name.split_once('.').unwrap_or(("requests", name));
            if container.at(&["resources", which, resource]).is_null() {
                missing.entry(name).or_default().insert(container.str_at(&["name"]));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let each = missing
        .iter()
        .map(|(name, containers)| format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(",")));
    Err(format!("must specify {}", each.collect::<Vec<_>>().join("; ")))
}

/// Counts the usage of all objects of one resource for a quota.
pub struct Tally<'a> {
    quota: &'a Value,
    group: &'a str,
    resource: &'a str,
    now: Timestamp,
    used: Usage,
}

impl<'a> Tally<'a> {
    /// Starts with zero for each limit of the quota that counts the resource.
    pub fn new(quota: &'a Value, group: &'a str, resource: &'a str, now: Timestamp) -> Self {
        let hard = quota.map_at(&["spec", "hard"]).into_iter().flat_map(Map::keys);
        let nothing = |name: &str| (name.to_owned(), amount(&Value::Null));
        let used = hard.filter(|name| counts(name, group, resource)).map(nothing).collect();
        Self { quota, group, resource, now, used }
    }

    /// Counts an object.
    pub fn add(&mut self, object: &Value) {
        if !scopes::match_object(self.quota, self.group, self.resource, object) {
            return;
        }
        for (name, more) in usage(self.group, self.resource, object, self.now) {
            if let Some(used) = self.used.get_mut(&name) {
                *used = used.plus(&more);
            }
        }
    }

    /// Returns the usage of all counted objects.
    pub fn used(self) -> Usage {
        self.used
    }
}

/// Returns whether `used` of a quota must be counted: its limits have changed, or an amount is missing.
pub fn is_uncounted(quota: &Value) -> bool {
    let hard = quota.map_at(&["spec", "hard"]);
    let names = || hard.into_iter().flat_map(Map::iter);
    let (stated, used) = (quota.map_at(&["status", "hard"]), quota.map_at(&["status", "used"]));
    let differs = |(name, most): (&str, &Value)| {
        stated.and_then(|stated| stated.get(name)).is_none_or(|stated| amount(stated) != amount(most))
    };
    let is_unknown =
        |(name, _): (&str, &Value)| !resources_of(name).is_empty() && used.is_none_or(|used| used.get(name).is_none());
    stated.map_or(0, Map::len) != hard.map_or(0, Map::len) || names().any(differs) || names().any(is_unknown)
}
