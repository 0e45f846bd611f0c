//! Reads the objects of a running API server page by page, and converts each to the form in which the store keeps it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use flotilla_cluster::{Drafts, RestoreError, Revision, TableId};
use flotilla_objects::api_version;
use flotilla_proto::json;
use flotilla_proto::value::Value;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::aside::Aside;
use super::key_meaning::KeyMeanings;
use super::report::Report;
use super::{older, stored};
use crate::administration::{Client, ClientError, Kubeconfig};
use crate::custom::{self, Definition};
use crate::limits;
use crate::pki::KubeconfigError;
use crate::served::{Resources, Served};

/// Resources that are computed, or whose objects another resource has as well: group, plural name.
const NOT_KEPT: [(&str, &str); 2] = [("", "componentstatuses"), ("events.k8s.io", "events")];

/// The reason why the objects of a server cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server does not answer, or refuses the request.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server refuses the request for one path.
    #[error("{path}")]
    Path {
        /// The path.
        path: String,
        /// The reason.
        source: ClientError,
    },
    /// The answer cannot be parsed.
    #[error("cannot parse the server's answer to {path}: {why}")]
    Answer {
        /// The path.
        path: String,
        /// The reason.
        why: String,
    },
    /// The aside file cannot be written.
    #[error("cannot write {path}")]
    Aside {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl From<LiveError> for RestoreError {
    fn from(error: LiveError) -> Self {
        Self::Source(Box::new(error))
    }
}

impl LiveError {
    /// Returns the code with which the server refused. `None` if it did not refuse.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Client(ClientError::Refused { code, .. })
            | Self::Path { source: ClientError::Refused { code, .. }, .. } => Some(*code),
            _ => None,
        }
    }
}

/// A resource to list.
#[derive(Clone, Debug)]
pub(super) struct SourceResource {
    /// The path of its objects.
    pub(super) path: String,
    /// The version and kind of its objects, which items of lists do not state.
    api_version: String,
    kind: String,
    served: Arc<Served>,
}

impl SourceResource {
    /// Returns the table of its objects.
    pub(super) fn table(&self) -> &str {
        self.served.table.as_str()
    }

    /// Adds version and kind to an object of a list.
    pub(super) fn stated(&self, mut object: Value) -> Value {
        object.set_at(&["apiVersion"], self.api_version.as_str());
        object.set_at(&["kind"], self.kind.as_str());
        object
    }
}

#[cfg(test)]
impl SourceResource {
    /// Returns the config maps of a server.
    pub(super) fn of_config_maps() -> Self {
        let served = Resources::builtin().stored().into_iter().find(|served| served.table.as_str() == "configmaps");
        let (path, api_version, kind) = ("/api/v1/configmaps".into(), "v1".into(), "ConfigMap".into());
        Self { path, api_version, kind, served: served.expect("config maps are built in") }
    }
}

/// Reads the objects of a server.
pub(super) struct Live {
    client: Arc<Client>,
    /// The revision of the server's list of definitions. Zero if the server's revisions are not numbers.
    revision: Revision,
    waiting: VecDeque<SourceResource>,
    /// Groups of which some version did not answer.
    unanswered: BTreeSet<String>,
    /// The numbers of imported and of refused objects.
    pub(super) report: Report,
    aside: Option<Aside>,
    /// The path of the complete aside file, and its number of keys.
    pub(super) put_aside: Option<(PathBuf, u64)>,
}

impl Live {
    /// Discovers the resources of a server. Refused objects will be written to `aside`.
    pub(super) fn open(kubeconfig: &Path, aside: Option<Aside>) -> Result<Self, LiveError> {
        let client = Arc::new(Client::new(Kubeconfig::read(kubeconfig)?)?);
        let (waiting, unanswered, report) = (VecDeque::new(), BTreeSet::new(), Report::default());
        let mut live = Self { client, revision: Revision::ZERO, waiting, unanswered, report, aside, put_aside: None };
        live.discover()?;
        Ok(live)
    }

    /// Returns a revision that the server has assigned.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the client of the server.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the resources to import, definitions first.
    pub(super) fn resources(&self) -> Vec<SourceResource> {
        self.waiting.iter().cloned().collect()
    }

    /// Returns whether some version of a table's group did not answer. The table may then exist although it was not
    /// found.
    pub(super) fn is_unanswered(&self, table: &str) -> bool {
        self.unanswered.contains(table.split_once('/').map_or("", |(group, _)| group))
    }

    /// Requests the document at a path.
    pub(super) fn get(&self, path: &str) -> Result<Value, LiveError> {
        self.get_as(path, "application/json")
    }

    /// Requests the document at a path, with an `Accept` header.
    pub(super) fn get_as(&self, path: &str, accept: &str) -> Result<Value, LiveError> {
        let answer = |why: String| LiveError::Answer { path: path.to_owned(), why };
        let failed = |source| LiveError::Path { path: path.to_owned(), source };
        let mut body = Vec::new();
        let reader = self.client.download_as(path, accept).map_err(failed)?;
        reader.take(limits::MOVING_PAGE_BYTES).read_to_end(&mut body).map_err(|error| answer(error.to_string()))?;
        json::parse(&body).map_err(|error| answer(error.to_string()))
    }

    /// Discovers the resources, and chooses the version in which to read each.
    pub(super) fn discover(&mut self) -> Result<(), LiveError> {
        (self.waiting, self.unanswered, self.report) = Default::default();
        let mut meanings = KeyMeanings::builtin();
        self.define(&mut meanings)?;
        let mut found = BTreeMap::<(String, String), Vec<(String, String)>>::new();
        for group_version in self.group_versions()? {
            let (group, version) = api_version::split(&group_version);
            let root = if group.is_empty() { "/api" } else { "/apis" };
            let resources = match self.get(&format!("{root}/{group_version}")) {
                Ok(resources) => resources,
                Err(error) => {
                    // An aggregated server for this version is unavailable.
                    let why = error.source().map_or_else(|| error.to_string(), |source| source.to_string());
                    self.report.refused(&group_version, &group_version, &why);
                    self.unanswered.insert(group.to_owned());
                    continue;
                }
            };
            for resource in resources.list_at(&["resources"]) {
                let (name, kind) = (resource.str_at(&["name"]), resource.str_at(&["kind"]));
                let can_list = resource.list_at(&["verbs"]).iter().any(|verb| verb.as_str() == Some("list"));
                if can_list && !name.contains('/') && !NOT_KEPT.contains(&(group, name)) {
                    let versions = found.entry((group.to_owned(), name.to_owned())).or_default();
                    versions.push((version.to_owned(), kind.to_owned()));
                }
            }
        }
        found.into_iter().for_each(|(of, versions)| self.add(&meanings, of, &versions));
        let is_first = |resource: &SourceResource| resource.path.contains(custom::RESOURCE);
        self.waiting.make_contiguous().sort_by_key(|resource| !is_first(resource));
        Ok(())
    }

    fn group_versions(&self) -> Result<Vec<String>, LiveError> {
        let mut found = vec!["v1".to_owned()];
        for group in self.get("/apis")?.list_at(&["groups"]) {
            found.extend(group.list_at(&["versions"]).iter().map(|of| of.str_at(&["groupVersion"]).to_owned()));
        }
        Ok(found)
    }

    /// Adds custom resources.
    fn define(&mut self, meanings: &mut KeyMeanings) -> Result<(), LiveError> {
        let resources = Resources::builtin();
        let definitions = self.get(&format!("/apis/{}/v1/{}", custom::GROUP, custom::RESOURCE))?;
        let last = definitions.str_at(&["metadata", "resourceVersion"]).parse().unwrap_or_default();
        self.revision = Revision::new(last).min(Revision::LAST);
        let read = definitions.list_at(&["items"]).iter().filter_map(Definition::of);
        read.filter_map(|definition| resources.defined_by(definition)).for_each(|served| meanings.add(served));
        Ok(())
    }

    /// Adds a resource, in the version that the store keeps if the server has it.
    fn add(&mut self, meanings: &KeyMeanings, (group, name): (String, String), versions: &[(String, String)]) {
        let table = if group.is_empty() { name.clone() } else { format!("{group}/{name}") };
        let readable = |served: &Served, version: &str, kind: &str| match &served.custom {
            Some(custom) => custom.definition().version(version).is_some(),
            None => older::kind(&group, version, kind).is_some(),
        };
        let served = meanings.of_table(&TableId::new(&table));
        let chosen = served.and_then(|served| {
            let stored = versions.iter().find(|(version, _)| *version == served.stored.version);
            let other = || versions.iter().find(|(version, kind)| readable(served, version, kind));
            stored.or_else(other).map(|(version, kind)| (served, version, kind))
        });
        let Some((served, version, kind)) = chosen else {
            self.report.refused(&table, &table, "this server does not store it, or knows none of its versions");
            return;
        };
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        let root = if group.is_empty() { "/api" } else { "/apis" };
        let (path, kind, served) = (format!("{root}/{api_version}/{name}"), kind.clone(), Arc::clone(served));
        self.waiting.push_back(SourceResource { path, api_version, kind, served });
    }

    /// Returns all objects in pages, definitions first.
    pub(super) fn drafts(&mut self) -> impl Iterator<Item = Result<Drafts, LiveError>> + '_ {
        Paging { live: self, token: String::new(), reported: Instant::now(), ended: false }
    }

    /// Converts an object to a draft, or writes it to the aside file.
    pub(super) fn draft(
        &mut self,
        resource: &SourceResource,
        (namespace, name): (&str, &str),
        original: &[u8],
        drafts: &mut Drafts,
    ) -> Result<(), LiveError> {
        let table = &resource.served.table;
        let why = match stored::draft(&resource.served, namespace, name, original) {
            Ok(draft) => {
                self.report.taken(table.as_str(), draft.bytes.len());
                drafts.push((table.clone(), resource.served.key(namespace, name), draft));
                return Ok(());
            }
            Err(why) => why.to_string(),
        };
        let key = format!("{}/{namespace}/{name}", resource.path);
        self.report.refused(table.as_str(), &key, &why);
        if let Some(aside) = &mut self.aside {
            let added = aside.add(&key, 0, &why, original);
            added.map_err(|source| LiveError::Aside { path: aside.path().into(), source })?;
        }
        Ok(())
    }

    /// Makes the aside file durable. Called after the last object, before the store is complete.
    pub(super) fn end(&mut self) -> Result<(), LiveError> {
        if let Some(aside) = &mut self.aside {
            let finished = aside.finish();
            self.put_aside = finished.map_err(|source| LiveError::Aside { path: aside.path().into(), source })?;
        }
        Ok(())
    }

    /// Keeps the aside file, because the import is complete.
    pub(super) fn complete(&mut self) {
        self.aside.iter_mut().for_each(Aside::complete);
    }
}

struct Paging<'a> {
    live: &'a mut Live,
    /// The continue token of the first waiting resource. Empty at the beginning of its list.
    token: String,
    reported: Instant,
    ended: bool,
}

impl Paging<'_> {
    /// Reads the next page of the first waiting resource.
    fn page(&mut self, resource: &SourceResource) -> Result<Drafts, LiveError> {
        let token = utf8_percent_encode(&self.token, NON_ALPHANUMERIC);
        let path = format!("{}?limit={}&continue={token}", resource.path, limits::MOVING_PAGE_OBJECTS);
        let mut page = self.live.get(&path)?;
        self.token = page.str_at(&["metadata", "continue"]).to_owned();
        let mut drafts = Vec::new();
        let items = page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
        for object in items.into_iter().flatten() {
            let object = resource.stated(object);
            let of = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
            self.live.draft(resource, of, &json::to_vec(&object), &mut drafts)?;
        }
        if self.reported.elapsed() >= limits::MOVING_PROGRESS_INTERVAL {
            self.reported = Instant::now();
            let (count, left) = (self.live.report.taken_count(), self.live.waiting.len() + 1);
            eprintln!("flotilla: {count} objects were read, {left} resources are left");
        }
        Ok(drafts)
    }
}

impl Iterator for Paging<'_> {
    type Item = Result<Drafts, LiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(resource) = self.live.waiting.pop_front() {
            let page = self.page(&resource);
            if !self.token.is_empty() {
                self.live.waiting.push_front(resource);
            }
            match page {
                Ok(drafts) if drafts.is_empty() => {}
                page => return Some(page),
            }
        }
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        self.live.end().err().map(Err)
    }
}
