//! Discovery and OpenAPI, rebuilt whenever definitions of custom resources or the documents of other servers change.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use flotilla_proto::catalogue;
use flotilla_proto::schema::{Ref, Resource, Text};
use parking_lot::Mutex;

use crate::aggregation::Aggregation;
use crate::aggregation::documents::{self, GroupVersionDocuments};
use crate::custom::{self, Definitions};
use crate::discovery::{self, Documents};
use crate::embedded::TextError;
use crate::enablement::Enablement;
use crate::openapi::{Custom, OpenApi, Remote};
use crate::registry::Registry;
use crate::served::Served;
use crate::tasks::{self, Task};

/// The current discovery and OpenAPI.
#[derive(Debug)]
pub struct Published {
    /// `HOST:PORT` at which clients reach this server.
    address: String,
    built_in: Vec<discovery::Served>,
    /// The group versions of custom resources, and those of other servers.
    further: Mutex<[Vec<discovery::Served>; 2]>,
    /// Discovery, encoded when it is first read after a change: while many definitions are written, few clients read
    /// it.
    documents: ArcSwap<OnceLock<Arc<Documents>>>,
    openapi: ArcSwap<OpenApi>,
}

impl Published {
    /// Returns the documents about the built-in resources that are switched on, for clients that reach this server at
    /// `HOST:PORT`.
    ///
    /// # Errors
    /// The embedded tables of discovery do not parse, which tests rule out.
    pub fn new(address: String, enablement: &Arc<Enablement>) -> Result<Arc<Self>, TextError> {
        let built_in = discovery::built_in(enablement)?;
        Ok(Arc::new(Self {
            documents: ArcSwap::default(),
            openapi: ArcSwap::from_pointee(OpenApi::new(enablement)),
            further: Mutex::default(),
            built_in,
            address,
        }))
    }

    /// Returns discovery.
    pub fn documents(&self) -> Arc<Documents> {
        Arc::clone(self.documents.load().get_or_init(|| Arc::new(self.encoded())))
    }

    /// Returns OpenAPI.
    pub fn openapi(&self) -> Guard<Arc<OpenApi>> {
        self.openapi.load()
    }

    /// Serves the stored definitions, and follows their changes, for ever.
    pub fn follow(self: &Arc<Self>, registry: &Arc<Registry>) -> Task {
        let (published, registry) = (Arc::clone(self), Arc::clone(registry));
        tasks::service("custom resources", async move || {
            let Some(served) = registry.tables.resources.of_resource(custom::GROUP, custom::RESOURCE) else { return };
            custom::follow(&registry.tables.table(&served), |definitions| published.publish(&registry, definitions))
                .await;
        })
    }

    fn publish(&self, registry: &Registry, definitions: &Definitions) {
        let served = registry.tables.resources.define(definitions.all());
        self.rebuild(|further| further[0] = listed(&served));
        self.openapi.store(Arc::new(self.openapi.load().with_custom(served.iter().filter_map(described).collect())));
    }

    /// Publishes the resources of other servers, and follows their changes, for ever.
    pub fn follow_remotes(self: &Arc<Self>, aggregation: &Arc<Aggregation>) -> Task {
        let (published, aggregation) = (Arc::clone(self), Arc::clone(aggregation));
        let publish = move |remotes: &[GroupVersionDocuments]| {
            published.rebuild(|further| further[1] = remotes.iter().map(elsewhere).collect());
            published.openapi.store(Arc::new(published.openapi.load().with_remote(said(remotes))));
        };
        tasks::owned("documents of servers", documents::keep(aggregation, publish))
    }

    fn rebuild(&self, change: impl FnOnce(&mut [Vec<discovery::Served>; 2])) {
        change(&mut self.further.lock());
        self.documents.store(Arc::default());
    }

    /// Encodes discovery of all resources.
    fn encoded(&self) -> Documents {
        let [custom, remote] = &*self.further.lock();
        let is_elsewhere = |of: &&discovery::Served| {
            remote.iter().any(|other| (&other.group, &other.version) == (&of.group, &of.version))
        };
        let own = self.built_in.iter().chain(custom).filter(|of| !is_elsewhere(of));
        let all: Vec<_> = own.chain(remote).cloned().collect();
        Documents::build(&all, &self.address)
    }
}

/// Returns the group versions of custom resources. Those of built-in resources never change.
fn listed(served: &[Arc<Served>]) -> Vec<discovery::Served> {
    let mut versions: Vec<discovery::Served> = Vec::new();
    let is_built_in = |of: &Served| {
        let group = catalogue::group(of.group());
        group.is_some_and(|group| group.versions.iter().any(|version| version.name == of.resource.version))
    };
    for of in served.iter().filter(|of| !is_built_in(of)) {
        let resource = listed_resource(of);
        let (group, version): (&Text, &Text) = (&of.resource.group, &of.resource.version);
        match versions.iter_mut().find(|own| own.group == *group && own.version == *version) {
            Some(own) => own.resources.push(resource),
            None => versions.push(discovery::Served {
                group: group.clone(),
                version: version.clone(),
                group_priority: discovery::CUSTOM_GROUP_PRIORITY,
                version_priority: discovery::CUSTOM_VERSION_PRIORITY,
                custom: true,
                stale: false,
                reported: None,
                resources: vec![resource],
            }),
        }
    }
    versions
}

/// Returns the OpenAPI of other servers.
fn said(remotes: &[GroupVersionDocuments]) -> Remote {
    let mut all = Remote::default();
    for listed in remotes {
        all.index.extend(listed.openapi.iter().cloned());
        if !listed.swagger.as_ref().is_none_or(|swagger| all.swagger.add(swagger)) {
            tracing::warn!(api_service = listed.remote.name, "no room for the server's part of /openapi/v2");
            continue;
        }
        let path = listed.remote.path();
        all.converted.extend(listed.converted.iter().map(|document| (path[1..].to_owned(), Arc::clone(document))));
    }
    all
}

/// Returns a group version of another server, as discovery lists it.
fn elsewhere(listed: &GroupVersionDocuments) -> discovery::Served {
    let remote = &listed.remote;
    discovery::Served {
        group: remote.group.clone().into(),
        version: remote.version.clone().into(),
        group_priority: remote.group_priority,
        version_priority: remote.version_priority,
        custom: false,
        stale: listed.stale,
        reported: Some(Arc::new(listed.resources.clone())),
        resources: Vec::new(),
    }
}

/// Returns a resource as discovery lists it.
fn listed_resource(of: &Served) -> Ref<Resource> {
    match of.custom.as_ref().is_some_and(|custom| custom.definition().terminating) {
        true => Ref::Shared(Arc::new(Resource { verbs: custom::LAST_VERBS.into(), ..(*of.resource).clone() })),
        false => of.resource.clone(),
    }
}

/// Returns a custom resource as OpenAPI describes it.
fn described(of: &Arc<Served>) -> Option<Custom> {
    let version = of.custom.as_ref()?.version();
    let selectable = version.selectable.iter().map(|path| path.join(".")).collect();
    Some(Custom { resource: of.resource.clone(), schema: version.published.clone(), selectable })
}
