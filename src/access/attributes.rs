//! Describes requests for authorization.

use super::user::User;
use crate::field::quote;
use crate::status::{ApiError, Details};

/// A request as authorization sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attributes<'a> {
    /// An operation on objects.
    Resource(ResourceAttributes<'a>),
    /// Any other request, identified by its path.
    Path {
        /// The HTTP method in lower case.
        verb: &'a str,
        /// The path, decoded, without the query.
        path: &'a str,
    },
}

/// An operation on objects, as authorization sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceAttributes<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or a special verb.
    pub verb: &'a str,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Version of the group; `*` for any version, empty if it is not stated.
    pub version: &'a str,
    /// Resource, as `pods`.
    pub resource: &'a str,
    /// Subresource, as `log`; may be empty.
    pub subresource: &'a str,
    /// Namespace; empty at the cluster scope.
    pub namespace: &'a str,
    /// Name of the object; may be empty.
    pub name: &'a str,
    /// The request's field selector, as text; may be empty or invalid.
    pub fields: &'a str,
    /// The request's label selector, as text; may be empty or invalid.
    pub labels: &'a str,
}

impl<'a> Attributes<'a> {
    /// Returns the same attributes with another verb.
    #[must_use]
    pub const fn with_verb<'b>(self, verb: &'b str) -> Attributes<'b>
    where
        'a: 'b,
    {
        match self {
            Self::Path { path, .. } => Attributes::Path { verb, path },
            Self::Resource(of) => Attributes::Resource(ResourceAttributes { verb, ..of }),
        }
    }

    /// Returns the verb.
    pub const fn verb(&self) -> &'a str {
        match self {
            Self::Resource(ResourceAttributes { verb, .. }) | Self::Path { verb, .. } => verb,
        }
    }

    /// Returns the namespace; empty at the cluster scope, and for paths.
    pub const fn namespace(&self) -> &'a str {
        match self {
            Self::Resource(of) => of.namespace,
            Self::Path { .. } => "",
        }
    }
}

/// Returns the error 403 of a user who lacks the permission. `reason` may be empty.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let mut why = format!("User {} cannot {} ", quote(&user.name), attributes.verb());
    match attributes {
        Attributes::Path { path, .. } => {
            why.push_str("path ");
            why.push_str(&quote(path));
            let message = with_reason(&why, reason);
            let details = Some(Box::new(Details::default()));
            ApiError { details, ..ApiError::new(403, "Forbidden", format!("forbidden: {message}")) }
        }
        Attributes::Resource(ResourceAttributes { group, resource, subresource, namespace, name, .. }) => {
            let slash = if subresource.is_empty() { "" } else { "/" };
            let target = quote(&format!("{resource}{slash}{subresource}"));
            why.push_str(&format!("resource {target} in API group {} ", quote(group)));
            if namespace.is_empty() {
                why.push_str("at the cluster scope");
            } else {
                why.push_str(&format!("in the namespace {}", quote(namespace)));
            }
            ApiError::forbidden(group, resource, name, &with_reason(&why, reason))
        }
    }
}

/// Escapes text from the request, since clients may show messages as HTML, and appends the reason. The reference does
/// both.
fn with_reason(why: &str, reason: &str) -> String {
    let mut message = String::with_capacity(why.len() + reason.len() + 2);
    for c in why.chars() {
        match c {
            '&' => message.push_str("&amp;"),
            '<' => message.push_str("&lt;"),
            '>' => message.push_str("&gt;"),
            c => message.push(c),
        }
    }
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(reason);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_user_verb_and_target() {
        let user = User::anonymous();
        let scale = Attributes::Resource(ResourceAttributes {
            verb: "get",
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            namespace: "ns",
            name: "d",
            ..ResourceAttributes::default()
        });
        assert_eq!(
            forbidden(&user, &scale, "").message,
            "deployments.apps \"d\" is forbidden: User \"system:anonymous\" cannot get resource \"deployments/scale\" \
             in API group \"apps\" in the namespace \"ns\""
        );
        let path = Attributes::Path { verb: "get", path: "/a<b>&c\"x" };
        assert_eq!(
            forbidden(&user, &path, "").message,
            "forbidden: User \"system:anonymous\" cannot get path \"/a&lt;b&gt;&amp;c\\\"x\""
        );
        let nodes = Attributes::Resource(ResourceAttributes {
            verb: "list",
            resource: "nodes",
            ..ResourceAttributes::default()
        });
        assert_eq!(
            forbidden(&user, &nodes, "no rule").message,
            "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" \
             at the cluster scope: no rule"
        );
    }
}
