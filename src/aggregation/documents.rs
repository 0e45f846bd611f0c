//! Fetches the discovery and OpenAPI documents of aggregated servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use tokio::time::Instant;

use super::{Aggregation, Remote, availability};
use crate::limits;
use crate::openapi::{self, Swagger};
use crate::outbound::{self, Error};

/// The header `Accept` for aggregated discovery: all resources of a server in one document.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// A group version of an aggregated server, as discovery and OpenAPI show it.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupVersionDocuments {
    /// The server that serves it.
    pub remote: Arc<Remote>,
    /// Its resources, in the form of aggregated discovery.
    pub resources: Vec<Value>,
    /// Whether the last request for its resources failed.
    pub stale: bool,
    /// Its OpenAPI v3 documents: that of the version, and if there is one, that of the group. Each is a path in the
    /// index and a URL relative to this server.
    pub openapi: Vec<(String, String)>,
    /// Its part of the OpenAPI v2 document.
    pub swagger: Option<Arc<Swagger>>,
    /// The OpenAPI v3 document of the version, converted from v2. `None` if the server has documents of v3.
    pub converted: Option<Arc<Value>>,
}

/// Keeps the listed group versions up to date, for ever. Calls `publish` with all of them after each change.
pub async fn keep(aggregation: Arc<Aggregation>, publish: impl Fn(&[GroupVersionDocuments])) {
    let mut changes = aggregation.changes();
    let mut known: BTreeMap<String, GroupVersionDocuments> = BTreeMap::new();
    let mut all_due = Instant::now() + limits::AGGREGATED_DISCOVERY_INTERVAL;
    loop {
        changes.borrow_and_update();
        let before = known.clone();
        let remotes = aggregation.all();
        known.retain(|name, _| remotes.iter().any(|remote| remote.name == *name));
        let is_due = Instant::now() >= all_due;
        let mut asked = Vec::new();
        for remote in remotes {
            let own = known.get(&remote.name);
            if is_due || own.is_none_or(|own| own.remote != remote || own.stale) {
                // A new server is listed at once, without resources. They follow when it has answered.
                known.entry(remote.name.clone()).or_insert_with(|| stale(&remote));
                asked.push(remote);
            }
        }
        if is_due {
            all_due = Instant::now() + limits::AGGREGATED_DISCOVERY_INTERVAL;
        }
        tell(&aggregation, &before, &known, &publish);
        let before = known.clone();
        let mut answers = stream::iter(asked.into_iter().map(|remote| ask(&aggregation, remote)))
            .buffer_unordered(limits::AGGREGATED_DISCOVERY_ASKED);
        while let Some(listed) = answers.next().await {
            known.insert(listed.remote.name.clone(), listed);
        }
        drop(answers);
        tell(&aggregation, &before, &known, &publish);
        let retries = known.values().any(|listed| listed.stale && listed.remote.is_available);
        let again = if retries { all_due.min(Instant::now() + limits::AGGREGATED_RETRY_INTERVAL) } else { all_due };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep_until(again), if !known.is_empty() => {}
        }
    }
}

fn tell(
    aggregation: &Aggregation,
    before: &BTreeMap<String, GroupVersionDocuments>,
    known: &BTreeMap<String, GroupVersionDocuments>,
    publish: &impl Fn(&[GroupVersionDocuments]),
) {
    if before != known {
        let all: Vec<GroupVersionDocuments> = known.values().cloned().collect();
        aggregation.known.set_documents(&all);
        publish(&all);
    }
}

fn stale(remote: &Arc<Remote>) -> GroupVersionDocuments {
    GroupVersionDocuments {
        remote: Arc::clone(remote),
        resources: Vec::new(),
        stale: true,
        openapi: Vec::new(),
        swagger: None,
        converted: None,
    }
}

/// Asks a server for its documents.
async fn ask(aggregation: &Aggregation, remote: Arc<Remote>) -> GroupVersionDocuments {
    if !remote.is_available {
        return stale(&remote);
    }
    match resources(aggregation, &remote).await {
        Ok(resources) => {
            let openapi = openapi(aggregation, &remote).await;
            let (swagger, document) = swagger(aggregation, &remote).await.unzip();
            let converted = match (&openapi, &swagger, document) {
                (OpenApiV3::Absent, Some(part), Some(document)) => Some(Arc::new(openapi::convert(&document, part))),
                _ => None,
            };
            let openapi = if let OpenApiV3::Listed(documents) = openapi { documents } else { Vec::new() };
            GroupVersionDocuments {
                resources,
                stale: false,
                openapi,
                swagger: swagger.map(Arc::new),
                converted,
                remote,
            }
        }
        Err(why) => {
            tracing::debug!(api_service = %remote.name, why, "cannot fetch the resources of an aggregated server");
            stale(&remote)
        }
    }
}

/// Fetches a document of a server. Returns code, media type and document.
async fn fetch(
    aggregation: &Aggregation,
    remote: &Remote,
    path: &str,
    accept: &str,
) -> Result<(u16, String, Value), String> {
    let peer = remote.peer(&aggregation.registry, aggregation.identity())?;
    let request = availability::ask_as_checker(&format!("https://{}{path}", peer.address()), accept);
    let request = request.map_err(|error| error.message)?;
    let deadline = Instant::now() + limits::AGGREGATED_CHECK_TIMEOUT;
    let fetching = async {
        let answer = aggregation.registry.tables.outbound.send(&peer, request, deadline).await?;
        let code = answer.status().as_u16();
        let media = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
        let body = outbound::read(answer.into_body(), limits::AGGREGATED_DISCOVERY_BYTES).await?;
        Ok((code, media, body))
    };
    let (code, media, body) = tokio::time::timeout_at(deadline, fetching)
        .await
        .unwrap_or(Err(Error::Deadline))
        .map_err(|error| error.to_string())?;
    let document = if code == 200 { json::parse(&body).map_err(|error| error.to_string())? } else { Value::Null };
    Ok((code, media, document))
}

/// Fetches the resources of a group version, from aggregated discovery, or else from the document of the version.
async fn resources(aggregation: &Aggregation, remote: &Remote) -> Result<Vec<Value>, String> {
    let (code, media, document) = fetch(aggregation, remote, "/apis", ACCEPT).await.or_else(|why| {
        match why.starts_with("invalid character") {
            true => Ok((200, String::new(), Value::Null)),
            false => Err(why),
        }
    })?;
    match code {
        200 if media.contains("g=apidiscovery.k8s.io") && media.contains("as=APIGroupDiscoveryList") => {
            return Ok(of_aggregated(&document, remote));
        }
        503 => return Err("503".into()),
        _ => {}
    }
    let (code, _, document) = fetch(aggregation, remote, &remote.path(), "application/json").await?;
    if code != 200 || document.str_at(&["kind"]) != "APIResourceList" {
        return Err(format!("the answer is not an APIResourceList: {code}"));
    }
    Ok(of_legacy(&document))
}

fn of_aggregated(document: &Value, remote: &Remote) -> Vec<Value> {
    let mut groups = document.list_at(&["items"]).iter();
    let group = groups.find(|group| group.str_at(&["metadata", "name"]) == remote.group);
    let mut versions = group.map_or(&[][..], |group| group.list_at(&["versions"])).iter();
    let version = versions.find(|version| version.str_at(&["version"]) == remote.version);
    version.map_or_else(Vec::new, |version| version.list_at(&["resources"]).iter().map(resource).collect())
}

/// Copies a resource from another server's document. Unknown fields are dropped.
fn resource(listed: &Value) -> Value {
    let mut entry = value!({
        "resource": (listed.str_at(&["resource"])),
        "responseKind": (kind(listed.at(&["responseKind"]))),
        "scope": (listed.str_at(&["scope"])),
        "singularResource": (listed.str_at(&["singularResource"])),
        "verbs": (texts(listed, "verbs"))
    });
    for list in ["shortNames", "categories"] {
        let texts = texts(listed, list);
        if !texts.is_empty() {
            entry.set_at(&[list], texts);
        }
    }
    let parts = listed.list_at(&["subresources"]).iter().map(|part| {
        value!({
            "subresource": (part.str_at(&["subresource"])),
            "responseKind": (kind(part.at(&["responseKind"]))),
            "verbs": (texts(part, "verbs"))
        })
    });
    let parts: Vec<Value> = parts.collect();
    if !parts.is_empty() {
        entry.set_at(&["subresources"], parts);
    }
    entry
}

fn kind(listed: &Value) -> Value {
    let of = |field: &str| listed.str_at(&[field]).to_owned();
    value!({"group": (of("group")), "version": (of("version")), "kind": (of("kind"))})
}

fn texts(listed: &Value, list: &str) -> Vec<Value> {
    listed.list_at(&[list]).iter().filter_map(Value::as_str).map(Value::from).collect()
}

/// Converts an `APIResourceList`, which lists subresources beside the resources.
fn of_legacy(document: &Value) -> Vec<Value> {
    let listed = document.list_at(&["resources"]);
    let is_part = |of: &&Value| of.str_at(&["name"]).contains('/');
    let resources = listed.iter().filter(|of| !is_part(of)).map(|of| {
        let name = of.str_at(&["name"]);
        let own = format!("{name}/");
        let parts = listed.iter().filter_map(|part| {
            let subresource = part.str_at(&["name"]).strip_prefix(&own)?;
            Some(value!({"subresource": subresource, "responseKind": (part.clone()), "verbs": (texts(part, "verbs"))}))
        });
        let mut listed = of.clone();
        listed.set_at(&["resource"], name);
        listed.set_at(&["responseKind"], of.clone());
        listed.set_at(&["scope"], if of.is_true_at(&["namespaced"]) { "Namespaced" } else { "Cluster" });
        listed.set_at(&["singularResource"], of.str_at(&["singularName"]));
        listed.set_at(&["subresources"], parts.collect::<Vec<_>>());
        resource(&listed)
    });
    resources.collect()
}

/// The answer of a server to a request for the index of its OpenAPI v3 documents.
enum OpenApiV3 {
    /// The documents of the group version and of its group, as in [`GroupVersionDocuments`].
    Listed(Vec<(String, String)>),
    /// It has none: 404.
    Absent,
    /// It did not answer.
    Unknown,
}

/// Finds the OpenAPI v3 documents of a group version and of its group.
async fn openapi(aggregation: &Aggregation, remote: &Remote) -> OpenApiV3 {
    let index = match fetch(aggregation, remote, "/openapi/v3", "application/json").await {
        Ok((404, ..)) => return OpenApiV3::Absent,
        Ok((_, _, index)) => index,
        Err(_) => return OpenApiV3::Unknown,
    };
    let of_group = format!("/apis/{}", remote.group);
    let of_group = catalogue::group(&remote.group).is_none().then_some(of_group); // built-in groups have their own
    let found = std::iter::once(remote.path()).chain(of_group).filter_map(|path| {
        let url = index.at(&["paths", &path[1..], "serverRelativeURL"]).as_str()?;
        // The URL must lead to that document and nowhere else.
        let rest = url.strip_prefix("/openapi/v3")?.strip_prefix(&path)?;
        (rest.is_empty() || rest.starts_with('?')).then(|| (path[1..].to_owned(), url.to_owned()))
    });
    OpenApiV3::Listed(found.collect())
}

/// Fetches a server's OpenAPI v2 document. Returns its part of this server's document, and the whole.
async fn swagger(aggregation: &Aggregation, remote: &Remote) -> Option<(Swagger, Value)> {
    let (code, _, document) = fetch(aggregation, remote, "/openapi/v2", "application/json").await.ok()?;
    (code == 200).then(|| (Swagger::below(&document, &format!("{}/", remote.path())), document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_lists_are_converted_to_the_same_resources() {
        let list = value!({"resources": [
            {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"],
                "shortNames": ["th"]},
            {"name": "things/status", "kind": "Thing", "verbs": ["patch"], "namespaced": true}
        ]});
        let [things] = &of_legacy(&list)[..] else { panic!("one resource") };
        assert_eq!((things.str_at(&["resource"]), things.str_at(&["scope"])), ("things", "Namespaced"));
        assert_eq!(things.str_at(&["responseKind", "kind"]), "Thing");
        assert_eq!(things.list_at(&["subresources"])[0].str_at(&["subresource"]), "status");
        assert_eq!(things.list_at(&["shortNames"]).len(), 1);
    }

    #[test]
    fn unknown_fields_of_aggregated_resources_are_dropped() {
        let listed = resource(&value!({"resource": "things", "scope": 1, "verbs": "get", "evil": {"a": "b"}}));
        assert!(listed.at(&["evil"]).is_null());
        assert_eq!((listed.str_at(&["scope"]), listed.list_at(&["verbs"]).len()), ("", 0));
    }
}
