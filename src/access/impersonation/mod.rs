//! Impersonation: lets clients act as other users by the headers `Impersonate-*`.

mod modes;

use std::fmt::Write as _;

use self::modes::{Attempt, Mode};
use super::attributes::Attributes;
use super::authorizer::Authorizer;
use super::inquiry::Inquiry;
use super::nodes;
use super::tokens::GROUP;
use super::user::{ANONYMOUS, AUTHENTICATED, Extra, UNAUTHENTICATED, User, account};
use crate::field::quote;
use crate::rules::names;
use crate::status::{ApiError, ApiResult};

pub(super) use modes::Impersonators;

/// The user whom a request impersonates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: Extra,
}

impl Impersonation {
    /// Parses the headers of a request. Header names may have any case. Invalid UTF-8 in values becomes U+FFFD, so that
    /// an invalid name never counts as absent. Of several users or UIDs the first counts. `None` if the request does
    /// not impersonate.
    ///
    /// # Errors
    /// 400 when groups, a UID or extra values come without a user.
    pub fn parse<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> ApiResult<Option<Self>> {
        let mut wanted = Self::default();
        let (mut user, mut uid) = (None, None);
        for (name, value) in headers {
            let Some(what) = strip_prefix_any_case(name, "impersonate-") else { continue };
            let value = String::from_utf8_lossy(value).into_owned();
            if what.eq_ignore_ascii_case("user") {
                user.get_or_insert(value);
            } else if what.eq_ignore_ascii_case("uid") {
                uid.get_or_insert(value);
            } else if what.eq_ignore_ascii_case("group") {
                wanted.groups.push(value);
            } else if let Some(key) = strip_prefix_any_case(what, "extra-") {
                wanted.extra.entry(percent_decoded(&key.to_lowercase())).or_default().push(value);
            }
        }
        (wanted.user, wanted.uid) = (user.unwrap_or_default(), uid.unwrap_or_default());
        if !wanted.user.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted == Self::default() {
            return Ok(None);
        }
        Err(ApiError::bad_request(format!("requested {} without impersonating a user name", wanted.as_go())))
    }

    /// Returns the impersonated user if `by` may impersonate it (KEP-5284). A constrained mode allows certain requests
    /// for certain kinds of users; the classic permission allows all requests for all users. The mode that `by` used
    /// last is tried first. `attributes` are those of the request. Also returns the verb of the constrained mode, or an
    /// empty text for the classic mode.
    ///
    /// # Errors
    /// 403 when no mode allows it, with the refusal of the first mode that was tried.
    pub fn authorize(
        &self,
        authorizer: &Authorizer,
        by: &User,
        attributes: &Attributes<'_>,
        inquiry: &Inquiry,
    ) -> ApiResult<(User, String)> {
        let last = authorizer.impersonators.last(&by.name);
        let mut refusal = None;
        for mode in last.into_iter().chain(Mode::ALL.into_iter().filter(|mode| Some(*mode) != last)) {
            if !self.fits(mode, by) {
                continue;
            }
            let attempt = Attempt { authorizer, by, mode, inquiry };
            let allowed = attempt.request(attributes).and_then(|()| attempt.user(self));
            if inquiry.is_open() {
                break; // a webhook must be asked first
            }
            match allowed {
                Ok(user) => {
                    authorizer.impersonators.served(&by.name, mode);
                    return Ok((user, if mode == Mode::Classic { String::new() } else { attempt.verb() }));
                }
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        // The classic mode applies to every user, so a refusal exists unless a webhook must be asked. In that case the
        // caller ignores this error.
        Err(refusal.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
    }

    fn fits(&self, mode: Mode, by: &User) -> bool {
        let bare = self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty();
        match mode {
            Mode::AssociatedNode => bare && self.node().is_some() && self.node() == by.node(),
            Mode::ArbitraryNode => bare && self.node().is_some(),
            Mode::ServiceAccount => bare && account(&self.user).is_some(),
            Mode::UserInfo => self.node().is_none() && account(&self.user).is_none(),
            Mode::Classic => true,
        }
    }

    /// Returns the name of the node to act as. `None` if the user is not a node.
    fn node(&self) -> Option<&str> {
        let name = self.user.strip_prefix(nodes::USER_PREFIX)?;
        names::dns1123_subdomain(name).is_empty().then_some(name)
    }

    /// Returns the impersonated user. Service accounts, and nodes in constrained modes, get their groups unless the
    /// request names others. Adds the group of authenticated or unauthenticated users.
    fn target(&self, mode: Mode) -> User {
        let mut groups = self.groups.clone();
        if groups.is_empty() {
            if let Some((namespace, _)) = account(&self.user) {
                groups = vec![GROUP.to_owned(), format!("{GROUP}:{namespace}")];
            } else if mode.is_constrained() && self.node().is_some() {
                groups = vec![nodes::GROUP.to_owned()];
            }
        }
        let has = |group: &str| groups.iter().any(|own| own == group);
        let standing = match &*self.user {
            ANONYMOUS => Some(UNAUTHENTICATED),
            _ if has(UNAUTHENTICATED) => None,
            _ => Some(AUTHENTICATED),
        };
        if let Some(standing) = standing.filter(|standing| !has(standing)) {
            groups.push(standing.to_owned());
        }
        User {
            name: self.user.as_str().into(),
            uid: self.uid.as_str().into(),
            groups: groups.into_iter().map(Into::into).collect(),
            extra: self.extra.clone(),
        }
    }

    /// Formats the user as the reference's messages do: as a Go value.
    fn as_go(&self) -> String {
        let list = |texts: &[String]| texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ");
        let mut text = format!("&user.DefaultInfo{{Name:{}, UID:{}, Groups:", quote(&self.user), quote(&self.uid));
        text += &if self.groups.is_empty() {
            "[]string(nil)".to_owned()
        } else {
            format!("[]string{{{}}}", list(&self.groups))
        };
        text += ", Extra:map[string][]string";
        let facts: Vec<String> =
            self.extra.iter().map(|(key, values)| format!("{}:[]string{{{}}}", quote(key), list(values))).collect();
        // Writing to a string does not fail.
        let _ = if facts.is_empty() { write!(text, "(nil)}}") } else { write!(text, "{{{}}}}}", facts.join(", ")) };
        text
    }
}

fn strip_prefix_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

/// Decodes a percent-encoded key (RFC 3986). Returns a malformed key unchanged.
fn percent_decoded(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit =
            |at: usize| tail.get(at).and_then(|c| char::from(*c).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return key.to_owned() };
        bytes.push(high << 4 | low);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::attributes::ResourceAttributes;
    use super::*;
    use crate::rules::names::MASTERS;

    fn parse(headers: &[(&str, &str)]) -> ApiResult<Option<Impersonation>> {
        Impersonation::parse(headers.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    fn target(headers: &[(&str, &str)]) -> User {
        let master = User { groups: vec![MASTERS.into()], ..User::default() };
        let request = Attributes::Path { verb: "get", path: "/x" };
        parse(headers)
            .unwrap()
            .unwrap()
            .authorize(&Authorizer::default(), &master, &request, &Inquiry::default())
            .unwrap()
            .0
    }

    #[test]
    fn impersonation_headers_name_the_user() {
        let user = target(&[
            ("Impersonate-User", "ann"),
            ("impersonate-group", "devs"),
            ("Impersonate-Uid", "u-1"),
            ("Impersonate-Extra-Team%2fName", "blue"),
        ]);
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "u-1"));
        assert_eq!(user.groups, ["devs", "system:authenticated"]);
        assert_eq!(user.extra["team/name"], ["blue"]);
        let account = "system:serviceaccount:ns:default";
        assert_eq!(
            target(&[("Impersonate-User", account)]).groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        assert_eq!(
            target(&[("Impersonate-User", account), ("Impersonate-Group", "devs")]).groups,
            ["devs", "system:authenticated"]
        );
        assert_eq!(target(&[("Impersonate-User", "system:serviceaccount:x")]).groups, ["system:authenticated"]);
        assert_eq!(target(&[("Impersonate-User", "system:anonymous")]).groups, ["system:unauthenticated"]);
    }

    #[test]
    fn the_first_of_several_users_or_uids_counts() {
        let headers = [("Impersonate-User", "ann"), ("impersonate-user", "bob"), ("Impersonate-Uid", "1")];
        let user = target(&[&headers[..], &[("Impersonate-Uid", "2")]].concat());
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "1"));
        assert_eq!(parse(&[("Impersonate-User", ""), ("Impersonate-User", "bob")]), Ok(None));
    }

    #[test]
    fn names_may_be_beyond_ascii() {
        assert_eq!(target(&[("Impersonate-User", "ren\u{e9}e")]).name, "ren\u{e9}e");
        let latin = Impersonation::parse([("Impersonate-User", &b"ren\xe9e"[..])].into_iter()).unwrap().unwrap();
        assert_eq!(latin.user, "ren\u{fffd}e");
    }

    #[test]
    fn groups_uid_or_extra_without_a_user_are_refused() {
        assert_eq!(parse(&[("Accept", "x"), ("Impersonate-User", "")]), Ok(None));
        let headers = [("Impersonate-Group", "g"), ("Impersonate-Group", "h"), ("Impersonate-Extra-Scopes", "a")];
        assert_eq!(
            parse(&headers).unwrap_err().message,
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\", \"h\"}, \
             Extra:map[string][]string{\"scopes\":[]string{\"a\"}}} without impersonating a user name"
        );
        let message = parse(&[("Impersonate-Uid", "u")]).unwrap_err().message;
        assert!(message.contains("Groups:[]string(nil), Extra:map[string][]string(nil)}"), "{message}");
    }

    #[test]
    fn impersonation_without_permission_is_refused() {
        let pods = Attributes::Resource(ResourceAttributes {
            verb: "list",
            resource: "pods",
            namespace: "ns",
            ..ResourceAttributes::default()
        });
        let wanted = parse(&[("Impersonate-User", "admin")]).unwrap().unwrap();
        assert_eq!(
            wanted
                .authorize(&Authorizer::default(), &User::anonymous(), &pods, &Inquiry::default())
                .unwrap_err()
                .message,
            "pods is forbidden: User \"system:anonymous\" cannot impersonate-on:user-info:list resource \"pods\" \
             in API group \"\" in the namespace \"ns\""
        );
    }
}
