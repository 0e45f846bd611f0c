//! Discovery documents, encoded ahead of requests.

use std::cmp::Reverse;
use std::collections::HashMap;

use bytes::Bytes;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, json};
use ring::digest::{SHA512, digest};

use super::answer::{Answer, Body, Request, aggregated_media};
use super::{Served, aggregated, legacy};
use crate::api_version;
use crate::request::negotiate::{Form, Media, Offer, Representation, negotiate};
use crate::status::{ApiError, ApiResult};

/// The encoded documents of one set of served resources.
#[derive(Debug)]
pub struct Documents {
    legacy: HashMap<String, Document>,
    core: Aggregated,
    groups: Aggregated,
    /// Paths of the documents, sorted.
    paths: Vec<String>,
}

#[derive(Debug)]
struct Document {
    /// JSON without indentation, ending in a newline.
    json: Bytes,
    /// Kind, for the forms that need its type.
    kind: &'static str,
    /// Whether the document answers every method, not only GET. Those of the aggregator and of custom resources do.
    any_method: bool,
}

#[derive(Debug)]
struct Aggregated {
    json: Bytes,
    /// Quoted entity tag.
    tag: String,
}

impl Aggregated {
    fn new(groups: &[Vec<&Served>]) -> Self {
        let json = encode(&aggregated::list(groups));
        Self { tag: format!("\"{}\"", hash(&json)), json }
    }
}

/// Returns the SHA-512 of bytes in upper-case hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    digest(&SHA512, bytes).as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
}

fn encode(value: &Value) -> Bytes {
    let mut bytes = json::to_vec(value);
    bytes.push(b'\n');
    bytes.into()
}

/// Returns the versions of each group: groups ordered by rank, then name; versions by rank, then by version order.
fn rank(served: &[Served]) -> Vec<Vec<&Served>> {
    let mut groups: Vec<Vec<&Served>> = Vec::new();
    for of in served {
        match groups.iter_mut().find(|versions| versions[0].group == of.group) {
            Some(versions) => versions.push(of),
            None => groups.push(vec![of]),
        }
    }
    for versions in &mut groups {
        versions.sort_by(|a, b| {
            b.version_priority.cmp(&a.version_priority).then_with(|| api_version::compare(&a.version, &b.version))
        });
    }
    groups.sort_by_key(|versions| (Reverse(versions.iter().map(|of| of.group_priority).max()), &*versions[0].group));
    groups
}

impl Documents {
    /// Encodes all documents. `server_address` is the `HOST:PORT` at which clients reach this server. Takes about a
    /// millisecond; call it when the set of resources changes.
    pub fn build(served: &[Served], server_address: &str) -> Self {
        let (core, groups): (Vec<_>, Vec<_>) =
            rank(served).into_iter().partition(|versions| versions[0].group.is_empty());
        let mut legacy = HashMap::new();
        let mut add = |path: String, value: Value, kind, any_method| {
            legacy.insert(path, Document { json: encode(&value), kind, any_method });
        };
        for versions in &core {
            add("/api".into(), legacy::api_versions(versions, server_address), "APIVersions", false);
            for of in versions {
                add(format!("/api/{}", of.version), legacy::resource_list(of), "APIResourceList", false);
            }
        }
        add("/apis".into(), legacy::group_list(&groups), "APIGroupList", true);
        for versions in &groups {
            add(format!("/apis/{}", versions[0].group), legacy::api_group(versions), "APIGroup", true);
            // Other servers answer for the details of their own versions.
            for of in versions.iter().filter(|of| of.reported.is_none()) {
                let path = format!("/apis/{}/{}", of.group, of.version);
                add(path, legacy::resource_list(of), "APIResourceList", of.custom);
            }
        }
        let mut paths: Vec<String> = legacy.keys().cloned().chain(["/apis/".to_owned()]).collect();
        paths.sort_unstable();
        Self { legacy, core: Aggregated::new(&core), groups: Aggregated::new(&groups), paths }
    }

    /// Returns the paths of all documents, sorted.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Returns whether this group has any document.
    pub fn has_group(&self, group: &str) -> bool {
        if group.is_empty() {
            self.legacy.contains_key("/api")
        } else {
            self.legacy.contains_key(&format!("/apis/{group}"))
        }
    }

    /// Returns whether a path lies below the path of a built-in group that has documents.
    fn is_within_group(&self, path: &str) -> bool {
        match path.strip_prefix("/apis/").and_then(|path| path.split_once('/')) {
            Some((group, _)) => catalogue::group(group).is_some() && self.has_group(group),
            None => path.starts_with("/api/"),
        }
    }

    /// Returns the answer to a request for a discovery document. The answer is 404 for an unknown version of a built-in
    /// group that is served. Returns `None` if no document has the path.
    pub fn answer(&self, request: &Request<'_>) -> Option<ApiResult<Answer>> {
        let path = match request.path {
            "/" => return None,
            path => path.strip_suffix('/').unwrap_or(path),
        };
        let Some(document) = self.legacy.get(path) else {
            return self.is_within_group(path).then(|| Err(ApiError::no_such_path()));
        };
        if request.method != "GET" && !document.any_method {
            let details = Some(Box::default());
            let message = "the server does not allow this method on the requested resource";
            return Some(Err(ApiError { details, ..ApiError::new(405, "MethodNotAllowed", message) }));
        }
        let aggregated = match request.path {
            "/api" | "/api/" => Some(&self.core),
            "/apis" => Some(&self.groups),
            _ => None,
        };
        if let Some((aggregated, media)) = aggregated.zip(aggregated_media(request.accept)) {
            return Some(Ok(aggregated.answer(request, media)));
        }
        Some(document.answer(request))
    }
}

impl Aggregated {
    fn answer(&self, request: &Request<'_>, media: Media) -> Answer {
        let headers =
            vec![("cache-control", "public".into()), ("vary", "Accept".into()), ("etag", self.tag.clone().into())];
        if request.if_none_match == Some(self.tag.as_str()) {
            return Answer { status: 304, content_type: "".into(), headers, body: Body::Encoded(Bytes::new()) };
        }
        let content_type = match media {
            Media::Json => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Media::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Media::Protobuf => {
                "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
        };
        let representation = Representation { media, form: Form::Object, pretty: request.pretty };
        let body = Body::of(&self.json, ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"), representation);
        Answer { status: 200, content_type: content_type.into(), headers, body }
    }
}

impl Document {
    fn answer(&self, request: &Request<'_>) -> ApiResult<Answer> {
        let offer = if self.any_method { Offer::Unrouted } else { Offer::Plain };
        let representation = negotiate(request.accept, offer, request.pretty)?;
        let body = Body::of(&self.json, ("", "v1", self.kind), representation);
        let content_type = representation.media.name().into();
        Ok(Answer { status: 200, content_type, headers: Vec::new(), body })
    }
}
