//! The modes of impersonation, and the permissions that each needs ("User impersonation", KEP-5284).

use std::collections::HashMap;

use compact_str::CompactString;
use parking_lot::Mutex;

use super::Impersonation;
use crate::access::attributes::{Attributes, ResourceAttributes, forbidden};
use crate::access::authorizer::Authorizer;
use crate::access::inquiry::Inquiry;
use crate::access::user::{User, account};
use crate::field::{Errors, Path};
use crate::limits::IMPERSONATORS;
use crate::rules::names;
use crate::rules::names::MASTERS;
use crate::status::ApiResult;

/// API group of the resources that stand for impersonated users. In the classic mode, users and groups are in the core
/// group.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// The version of these resources.
const VERSION: &str = "v1";
/// From this number of groups or extra values on, the permission for all of them is checked first.
const MANY: usize = 4;

/// A mode of impersonation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Acts as the node on which the service account's own pod runs.
    AssociatedNode,
    /// Acts as any node.
    ArbitraryNode,
    /// Acts as a service account.
    ServiceAccount,
    /// Acts as any other user, with its groups, UID and extra values.
    UserInfo,
    /// Acts as anybody, for every request: needs only the verb `impersonate`.
    Classic,
}

impl Mode {
    /// All modes, in the order in which they are tried.
    pub(super) const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Classic];

    pub(super) const fn is_constrained(self) -> bool {
        !matches!(self, Self::Classic)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Classic => "",
        }
    }
}

/// The mode that each user used last, by user name. It affects only the order in which modes are tried.
#[derive(Debug, Default)]
pub struct Impersonators(Mutex<HashMap<CompactString, Mode>>);

impl Impersonators {
    pub(super) fn last(&self, user: &str) -> Option<Mode> {
        self.0.lock().get(user).copied()
    }

    pub(super) fn served(&self, user: &str, mode: Mode) {
        let mut modes = self.0.lock();
        if modes.len() >= IMPERSONATORS && !modes.contains_key(user) {
            modes.clear();
        }
        modes.insert(user.into(), mode);
    }
}

/// An attempt of a user to impersonate in one mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) authorizer: &'a Authorizer,
    pub(super) by: &'a User,
    pub(super) mode: Mode,
    pub(super) inquiry: &'a Inquiry,
}

impl Attempt<'_> {
    /// Returns `Ok` if the mode allows this kind of request to be made as another user.
    pub(super) fn request(self, attributes: &Attributes<'_>) -> ApiResult<()> {
        if !self.mode.is_constrained() {
            return Ok(());
        }
        let verb = format!("impersonate-on:{}:{}", self.mode.name(), attributes.verb());
        self.check(&attributes.with_verb(&verb))
    }

    /// Returns the impersonated user if the name, UID, groups and extra values are all allowed.
    pub(super) fn user(self, wanted: &Impersonation) -> ApiResult<User> {
        self.name(wanted)?;
        if !wanted.uid.is_empty() {
            self.part(AUTHENTICATION, "uids", "", &wanted.uid)?;
        }
        self.groups(&wanted.groups)?;
        self.extra(wanted)?;
        Ok(wanted.target(self.mode))
    }

    fn name(self, wanted: &Impersonation) -> ApiResult<()> {
        let mut of = ResourceAttributes {
            verb: &self.verb(),
            group: self.group(),
            version: VERSION,
            resource: "users",
            name: &wanted.user,
            ..ResourceAttributes::default()
        };
        if let Some((namespace, name)) = account(&wanted.user) {
            of = ResourceAttributes { resource: "serviceaccounts", namespace, name, ..of };
        } else if let Some(node) = wanted.node().filter(|_| self.mode.is_constrained()) {
            // The caller has already checked the node of the service account's pod.
            let name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            of = ResourceAttributes { resource: "nodes", name, ..of };
        }
        self.check(&Attributes::Resource(of))
    }

    fn groups(self, groups: &[String]) -> ApiResult<()> {
        if groups.is_empty() {
            return Ok(());
        }
        if self.mode.is_constrained() {
            if groups.iter().any(String::is_empty) {
                return self.refuse("groups", "", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                return self.refuse("groups", MASTERS, "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY && self.part(self.group(), "groups", "", "*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.part(self.group(), "groups", "", group))
    }

    fn extra(self, wanted: &Impersonation) -> ApiResult<()> {
        if wanted.extra.is_empty() {
            return Ok(());
        }
        if self.mode.is_constrained() {
            if let Some(why) = wanted.extra.iter().find_map(|(key, values)| invalid_extra(key, values)) {
                return self.refuse("userextras", "", &why);
            }
            let many = wanted.extra.len() >= MANY || wanted.extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.part(AUTHENTICATION, "userextras", "*", "*").is_ok() {
                return Ok(());
            }
        }
        let values = wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        values.into_iter().try_for_each(|(key, value)| self.part(AUTHENTICATION, "userextras", key, value))
    }

    pub(super) fn verb(self) -> String {
        if self.mode.is_constrained() { format!("impersonate:{}", self.mode.name()) } else { "impersonate".to_owned() }
    }

    const fn group(self) -> &'static str {
        if self.mode.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn part(self, group: &str, resource: &str, subresource: &str, name: &str) -> ApiResult<()> {
        let verb = &*self.verb();
        let version = VERSION;
        let of =
            ResourceAttributes { verb, group, version, resource, subresource, name, ..ResourceAttributes::default() };
        self.check(&Attributes::Resource(of))
    }

    fn check(self, attributes: &Attributes<'_>) -> ApiResult<()> {
        let decision = self.authorizer.decide(self.by, attributes, self.inquiry);
        if decision.is_allowed() { Ok(()) } else { Err(forbidden(self.by, attributes, &decision.reason)) }
    }

    fn refuse(self, resource: &str, name: &str, why: &str) -> ApiResult<()> {
        let verb = &*self.verb();
        let group = if resource == "groups" { self.group() } else { AUTHENTICATION };
        let of = ResourceAttributes { verb, group, resource, name, ..ResourceAttributes::default() };
        Err(forbidden(self.by, &Attributes::Resource(of), why))
    }
}

/// Returns the reason why constrained modes refuse an extra value. `None` if they allow it. Keys are in lower case
/// already.
fn invalid_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let mut errors = Errors::default();
    names::check_domain_path(&Path::root("extra.key"), key, &mut errors);
    if let Some(error) = errors.0.first() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {error}"));
    }
    let empty = values.iter().any(String::is_empty);
    empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}
