//! All FlowSchemas, in the order in which they match.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use actix_web::http::header::HeaderValue;
use compact_str::CompactString;
use flotilla_proto::value::Value;

use super::flow::{Distinguisher, Flow};
use super::queues::Queuing;
use super::rules::FlowRule;
use super::shares::Share;
use crate::access::{Attributes, User};
use crate::rules::names::MASTERS;

/// The name of the FlowSchema and of the level whose requests need not wait. Both exist even if they are not stored.
pub const EXEMPT: &str = "exempt";
/// The name of the FlowSchema and of the level for requests that no other FlowSchema matches. Both exist even if they
/// are not stored.
pub const CATCH_ALL: &str = "catch-all";

/// A FlowSchema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSchema {
    pub(super) uid: CompactString,
    /// Of the FlowSchemas that match a request, the one with the lowest precedence decides.
    precedence: i64,
    pub(super) level: CompactString,
    pub(super) distinguisher: Distinguisher,
    pub(super) rules: Box<[FlowRule]>,
}

impl FlowSchema {
    /// Reads an object.
    pub fn read(schema: &Value) -> Self {
        Self {
            uid: schema.str_at(&["metadata", "uid"]).into(),
            precedence: schema.int_at(&["spec", "matchingPrecedence"]).unwrap_or_default(),
            level: schema.str_at(&["spec", "priorityLevelConfiguration", "name"]).into(),
            distinguisher: match schema.str_at(&["spec", "distinguisherMethod", "type"]) {
                "ByUser" => Distinguisher::User,
                "ByNamespace" => Distinguisher::Namespace,
                _ => Distinguisher::Nothing,
            },
            rules: FlowRule::list(schema),
        }
    }

    /// Returns the FlowSchemas that exist even if they are not stored, with their names.
    pub fn mandatory() -> [(&'static str, Self); 2] {
        let all = |name: &str, precedence, distinguisher, groups: &[&str]| Self {
            uid: CompactString::default(),
            precedence,
            level: name.into(),
            distinguisher,
            rules: [FlowRule::everything_of(groups)].into(),
        };
        let everybody = ["system:unauthenticated", "system:authenticated"];
        [
            (EXEMPT, all(EXEMPT, 1, Distinguisher::Nothing, &[MASTERS])),
            (CATCH_ALL, all(CATCH_ALL, 10_000, Distinguisher::User, &everybody)),
        ]
    }
}

/// A priority level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityLevel {
    pub(super) uid: CompactString,
    pub(super) share: Share,
    /// `None` if its requests do not wait.
    pub(super) queuing: Option<Queuing>,
}

impl PriorityLevel {
    /// Reads an object.
    pub fn read(level: &Value) -> Self {
        let spec = |path: &[&str]| level.get("spec").and_then(|spec| spec.int_at(path));
        let kind = if level.str_at(&["spec", "type"]) == "Exempt" { EXEMPT } else { "limited" };
        let number = |field| spec(&[kind, field]).and_then(|number| u32::try_from(number).ok());
        let queuing = |field| spec(&["limited", "limitResponse", "queuing", field]);
        let size = |field| queuing(field).and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
        let queues = queuing("queues").and_then(|number| u32::try_from(number).ok()).and_then(NonZeroU32::new);
        Self {
            uid: level.str_at(&["metadata", "uid"]).into(),
            share: Share {
                shares: number("nominalConcurrencyShares").unwrap_or_default(),
                lendable_percent: number("lendablePercent").unwrap_or_default(),
                borrowing_percent: number("borrowingLimitPercent"),
            },
            queuing: queues.map(|queues| Queuing { queues, hand: size("handSize"), length: size("queueLengthLimit") }),
        }
    }

    /// Returns the levels that exist even if they are not stored, with their names.
    pub fn mandatory() -> [(&'static str, Self); 2] {
        let of = |shares| Self {
            uid: CompactString::default(),
            share: Share { shares, lendable_percent: 0, borrowing_percent: None },
            queuing: None,
        };
        [(EXEMPT, of(0)), (CATCH_ALL, of(5))]
    }
}

/// FlowSchemas and levels as they are stored, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Objects {
    /// FlowSchemas.
    pub schemas: BTreeMap<CompactString, FlowSchema>,
    /// Levels.
    pub levels: BTreeMap<CompactString, PriorityLevel>,
}

impl Objects {
    /// Adds the FlowSchemas and levels that exist even if they are not stored, and removes FlowSchemas whose level does
    /// not exist.
    pub(super) fn completed(mut self) -> Self {
        for (name, level) in PriorityLevel::mandatory() {
            self.levels.entry(name.into()).or_insert(level);
        }
        self.schemas.retain(|_, schema| self.levels.contains_key(&schema.level));
        for (name, schema) in FlowSchema::mandatory() {
            self.schemas.entry(name.into()).or_insert(schema);
        }
        self
    }

    /// Returns the FlowSchemas in the order in which they match.
    pub(super) fn in_order(&self) -> Vec<(&CompactString, &FlowSchema)> {
        let mut all: Vec<_> = self.schemas.iter().collect();
        all.sort_by_key(|(name, schema)| (schema.precedence, *name));
        all
    }
}

/// All FlowSchemas, compiled for comparison with requests.
#[derive(Debug)]
pub struct Schemas {
    all: Vec<(Box<[FlowRule]>, Arc<Flow>)>,
    catch_all: Arc<Flow>,
}

impl Schemas {
    /// Creates the table from the rules and flow of each FlowSchema, in the order in which FlowSchemas match.
    pub(super) fn new(all: Vec<(Box<[FlowRule]>, Arc<Flow>)>, catch_all: Arc<Flow>) -> Self {
        Self { all, catch_all }
    }

    /// Returns the flow of a request of a user.
    pub fn of(&self, user: &User, attributes: &Attributes<'_>) -> &Arc<Flow> {
        let is_for = |(rules, _): &&(Box<[FlowRule]>, _)| rules.iter().any(|rule| rule.is_for(user, attributes));
        self.all.iter().find(is_for).map_or(&self.catch_all, |(_, flow)| flow)
    }

    /// Returns all flows.
    pub fn flows(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.all.iter().map(|(_, flow)| flow)
    }
}

/// Returns a uid as the value of a header.
pub(super) fn header(uid: &str) -> HeaderValue {
    HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
#[path = "schemas_tests.rs"]
mod tests;
