//! Paths that belong to no resource: versions, groups, the server's own version and its token issuer.

use super::operations::{Answered, OBJECT, Operation, PathItem, group_id, group_tag, version_id, version_tag};
use super::{META, VERSION_INFO};

const JSON: &[&str] = &["application/json"];

fn get(path: String, id: String, tag: String, description: &str, answer: Answered) -> PathItem {
    let operation = Operation {
        method: "get",
        id,
        tag,
        description: description.to_owned(),
        action: "",
        kind: None,
        parameters: Vec::new(),
        body: None,
        consumes: OBJECT,
        produces: OBJECT,
        codes: &[200],
        answer,
    };
    PathItem { path, parameters: Vec::new(), operations: vec![operation] }
}

fn only(mut item: PathItem, consumes: &'static [&'static str], produces: &'static [&'static str]) -> PathItem {
    for operation in &mut item.operations {
        operation.consumes = consumes;
        operation.produces = produces;
    }
    item
}

/// Describes `/api/`.
pub(super) fn core() -> PathItem {
    let answer = Answered::Object(format!("{META}APIVersions"));
    get("/api/".into(), "getCoreAPIVersions".into(), "core".into(), "List the versions of the core group.", answer)
}

/// Describes `/apis/`.
pub(super) fn groups() -> PathItem {
    let answer = Answered::Object(format!("{META}APIGroupList"));
    get("/apis/".into(), "getAPIVersions".into(), "apis".into(), "List the groups and their versions.", answer)
}

/// Describes `/apis/GROUP/`.
pub(super) fn group(group: &str) -> PathItem {
    let answer = Answered::Object(format!("{META}APIGroup"));
    let id = format!("get{}APIGroup", group_id(group));
    get(format!("/apis/{group}/"), id, group_tag(group), "Tell the versions of a group.", answer)
}

/// Describes `/api/VERSION/` or `/apis/GROUP/VERSION/`.
pub(super) fn version(group: &str, version: &str) -> PathItem {
    let path = if group.is_empty() { format!("/api/{version}/") } else { format!("/apis/{group}/{version}/") };
    let answer = Answered::Object(format!("{META}APIResourceList"));
    let id = format!("get{}APIResources", version_id(group, version));
    get(path, id, version_tag(group, version), "List the resources of a group version.", answer)
}

/// Describes `/version/`.
pub(super) fn server_version() -> PathItem {
    let answer = Answered::Object(VERSION_INFO.to_owned());
    let description = "Tell the server's version.";
    only(get("/version/".into(), "getCodeVersion".into(), "version".into(), description, answer), JSON, JSON)
}

/// Describes `/.well-known/openid-configuration/`.
pub(super) fn issuer_configuration() -> PathItem {
    let path = "/.well-known/openid-configuration/".to_owned();
    let id = "getServiceAccountIssuerOpenIDConfiguration".to_owned();
    let description = "Tell how tokens of service accounts are verified.";
    only(get(path, id, "WellKnown".into(), description, Answered::Text), &[], JSON)
}

/// Describes `/openid/v1/jwks/`.
pub(super) fn issuer_keys() -> PathItem {
    let id = "getServiceAccountIssuerOpenIDKeyset".to_owned();
    let description = "Tell the keys that sign tokens of service accounts.";
    let item = get("/openid/v1/jwks/".into(), id, "openid".into(), description, Answered::Text);
    only(item, &[], &["application/jwk-set+json"])
}
