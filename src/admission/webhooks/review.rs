//! Builds the AdmissionReview that a webhook receives.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::access::User;
use crate::tables::{GroupVersionKind, GroupVersionResource};

/// A write in the version that a webhook asks for.
#[derive(Debug, Clone)]
pub struct ReviewRequest<'a> {
    /// Kind in the version that the webhook wants.
    pub kind: GroupVersionKind,
    /// Resource in the version that the webhook wants.
    pub resource: GroupVersionResource,
    /// Kind of the request.
    pub request_kind: GroupVersionKind,
    /// Resource of the request.
    pub request_resource: GroupVersionResource,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Name of the object; empty where there is none yet.
    pub name: &'a str,
    /// Namespace; for a Namespace, its own name.
    pub namespace: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
    /// The user of the request.
    pub user: &'a User,
    /// The object that will be stored, in the version that the webhook asks for.
    pub object: Option<&'a Value>,
    /// The stored object, in the same version.
    pub old: Option<&'a Value>,
    /// Options of the request, with their kind.
    pub options: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

impl ReviewRequest<'_> {
    /// Returns the review in a version of `admission.k8s.io`.
    pub fn review(&self, version: &str, uid: &str) -> Value {
        let object = |object: Option<&Value>| object.cloned().unwrap_or_default();
        let mut request = value!({
            "uid": uid, "kind": (self.kind.to_value()), "resource": (self.resource.to_value())
        });
        let texts = |request: &mut Value, fields: &[(&str, &str)]| {
            fields
                .iter()
                .filter(|(_, text)| !text.is_empty())
                .for_each(|(field, text)| request.set_at(&[field], *text));
        };
        texts(&mut request, &[("subResource", self.subresource)]);
        request.set_at(&["requestKind"], self.request_kind.to_value());
        request.set_at(&["requestResource"], self.request_resource.to_value());
        let named = [("requestSubResource", self.subresource), ("name", self.name), ("namespace", self.namespace)];
        texts(&mut request, &named);
        request.set_at(&["operation"], self.operation);
        request.set_at(&["userInfo"], user_info(self.user));
        request.set_at(&["object"], object(self.object));
        request.set_at(&["oldObject"], object(self.old));
        request.set_at(&["dryRun"], self.dry_run);
        request.set_at(&["options"], object(self.options));
        value!({"kind": "AdmissionReview", "apiVersion": (format!("admission.k8s.io/{version}")), "request": request})
    }
}

/// Returns the user in the form that reviews and expressions use.
pub fn user_info(user: &User) -> Value {
    let mut info = Value::object();
    if !user.name.is_empty() {
        info.set_at(&["username"], &*user.name);
    }
    if !user.uid.is_empty() {
        info.set_at(&["uid"], &*user.uid);
    }
    if !user.groups.is_empty() {
        info.set_at(&["groups"], user.groups.iter().map(|group| Value::from(&**group)).collect::<Vec<_>>());
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.as_str(), Value::Array(values.iter().map(|value| Value::from(&**value)).collect()));
        }
        info.set_at(&["extra"], Value::Object(extra));
    }
    info
}

#[cfg(test)]
mod tests {
    use flotilla_proto::json;

    use super::*;

    #[test]
    fn reviews_have_the_members_of_the_reference_in_its_order() {
        let kind = GroupVersionKind { group: String::new(), version: "v1".into(), kind: "Pod".into() };
        let resource = GroupVersionResource { group: String::new(), version: "v1".into(), resource: "pods".into() };
        let user = User { name: "u".into(), groups: vec!["g".into()], ..User::default() };
        let object = value!({"a": 1});
        let asked = ReviewRequest {
            request_kind: kind.clone(),
            request_resource: resource.clone(),
            kind,
            resource,
            subresource: "",
            name: "n",
            namespace: "ns",
            operation: "CREATE",
            user: &user,
            object: Some(&object),
            old: None,
            options: None,
            dry_run: false,
        };
        let text = String::from_utf8(json::to_vec(&asked.review("v1", "x"))).unwrap();
        let expected = concat!(
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x","#,
            r#""kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"#,
            r#""requestKind":{"group":"","version":"v1","kind":"Pod"},"#,
            r#""requestResource":{"group":"","version":"v1","resource":"pods"},"name":"n","namespace":"ns","#,
            r#""operation":"CREATE","userInfo":{"username":"u","groups":["g"]},"object":{"a":1},"oldObject":null,"#,
            r#""dryRun":false,"options":null}}"#
        );
        assert_eq!(text, expected);
    }
}
