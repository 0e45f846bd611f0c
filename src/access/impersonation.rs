//! Requests on behalf of somebody else: the headers `Impersonate-*`.

use std::fmt::Write as _;

use super::attributes::{Attributes, forbidden};
use super::authorizer::Authorizer;
use super::tokens::{GROUP, USER_PREFIX};
use super::user::{ANONYMOUS, AUTHENTICATED, Extra, UNAUTHENTICATED, User};
use crate::field::quote;
use crate::status::{ApiError, ApiResult};

/// API group of what may be impersonated besides users, groups and service accounts.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whom a request wants to act for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: Extra,
}

impl Impersonation {
    /// Reads the headers of a request, names in any case. `None` when it acts for itself.
    ///
    /// # Errors
    /// 400 when groups, a UID or extra facts come without a user.
    pub fn parse<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> ApiResult<Option<Self>> {
        let mut wanted = Self::default();
        for (name, value) in headers {
            let Some(what) = strip_prefix_any_case(name, "impersonate-") else { continue };
            if what.eq_ignore_ascii_case("user") {
                wanted.user = value.to_owned();
            } else if what.eq_ignore_ascii_case("uid") {
                wanted.uid = value.to_owned();
            } else if what.eq_ignore_ascii_case("group") {
                wanted.groups.push(value.to_owned());
            } else if let Some(key) = strip_prefix_any_case(what, "extra-") {
                wanted.extra.entry(percent_decoded(&key.to_lowercase())).or_default().push(value.to_owned());
            }
        }
        if !wanted.user.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted == Self::default() {
            return Ok(None);
        }
        Err(ApiError::bad_request(format!("requested {} without impersonating a user name", wanted.as_go())))
    }

    /// The user to act for, if the one who asks may. `attributes` are those of the request.
    ///
    /// # Errors
    /// 403 when some part of it is not allowed.
    pub fn authorize(&self, authorizer: &Authorizer, by: &User, attributes: &Attributes<'_>) -> ApiResult<User> {
        let allowed = self.parts().iter().all(|part| authorizer.decide(by, &part.attributes()).is_allowed());
        if allowed {
            return Ok(self.target());
        }
        // Who may impersonate nobody at all is told about the newest way to be allowed it (KEP-5284).
        let verb = format!("impersonate-on:user-info:{}", attributes.verb());
        Err(forbidden(by, &attributes.with_verb(&verb), ""))
    }

    /// What the rules must allow, one by one.
    fn parts(&self) -> Vec<Part<'_>> {
        let part = |group, resource, name| Part { group, resource, subresource: "", namespace: "", name };
        let mut parts = vec![match self.service_account() {
            Some((namespace, name)) => Part { namespace, ..part("", "serviceaccounts", name) },
            None => part("", "users", &self.user),
        }];
        parts.extend(self.groups.iter().map(|group| part("", "groups", group)));
        parts.extend((!self.uid.is_empty()).then(|| part(AUTHENTICATION, "uids", &self.uid)));
        parts.extend(self.extra.iter().flat_map(|(key, values)| {
            let subresource = key.as_str();
            values.iter().map(move |value| Part { subresource, ..part(AUTHENTICATION, "userextras", value) })
        }));
        parts
    }

    fn service_account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix(USER_PREFIX)?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
    }

    /// The user to act for. Service accounts belong to their groups unless others are named; everybody is
    /// authenticated or is not.
    fn target(&self) -> User {
        let mut groups = self.groups.clone();
        if let (true, Some((namespace, _))) = (groups.is_empty(), self.service_account()) {
            groups = vec![GROUP.to_owned(), format!("{GROUP}:{namespace}")];
        }
        if !groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED) {
            let standing = if self.user == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
            groups.push(standing.to_owned());
        }
        User {
            name: self.user.as_str().into(),
            uid: self.uid.as_str().into(),
            groups: groups.into_iter().map(Into::into).collect(),
            extra: self.extra.clone(),
        }
    }

    /// As the message of the reference shows it: a Go value.
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

/// One thing that the rules must allow.
struct Part<'a> {
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Part<'a> {
    const fn attributes(&self) -> Attributes<'a> {
        let Self { group, resource, subresource, namespace, name } = *self;
        Attributes::Resource { verb: "impersonate", group, version: "v1", resource, subresource, namespace, name }
    }
}

fn strip_prefix_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

/// Percent-decodes a key (RFC 3986); one that is malformed stays as it is.
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
    use super::*;
    use crate::pki::MASTERS;

    fn parse(headers: &[(&str, &str)]) -> ApiResult<Option<Impersonation>> {
        Impersonation::parse(headers.iter().copied())
    }

    fn target(headers: &[(&str, &str)]) -> User {
        let master = User { groups: vec![MASTERS.into()], ..User::default() };
        let request = Attributes::Path { verb: "get", path: "/x" };
        parse(headers).unwrap().unwrap().authorize(&Authorizer::new(), &master, &request).unwrap()
    }

    #[test]
    fn whom_to_act_for() {
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
    fn nobody_to_act_for() {
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
    fn without_permission() {
        let pods = Attributes::Resource {
            verb: "list",
            group: "",
            version: "v1",
            resource: "pods",
            subresource: "",
            namespace: "ns",
            name: "",
        };
        let wanted = parse(&[("Impersonate-User", "admin")]).unwrap().unwrap();
        assert_eq!(
            wanted.authorize(&Authorizer::new(), &User::anonymous(), &pods).unwrap_err().message,
            "pods is forbidden: User \"system:anonymous\" cannot impersonate-on:user-info:list resource \"pods\" \
             in API group \"\" in the namespace \"ns\""
        );
    }
}
