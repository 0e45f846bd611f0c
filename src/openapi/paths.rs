//! The paths of a resource: collections, objects, subresources and the older watch paths.

use flotilla_proto::schema::{Resource, Subresource, Text};

use super::operations::{
    ANY, Answered, CUSTOM, CUSTOM_PATCH, LIST, LOG, OBJECT, Operation, PATCH, PathItem, RequestBody, title, version_id,
    version_tag,
};
use super::parameters::{Parameter, name_of, named, namespace, of_options, patch_manager, proxied_path};
use super::{META, definition_name};

const LIST_PARAMETERS: [&str; 11] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
const DELETE_PARAMETERS: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const WRITE_PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

/// Describes the paths of one resource.
pub(super) struct Paths<'a> {
    of: &'a Resource,
    custom: bool,
    /// Schema of the objects.
    schema: String,
    tag: String,
    id: String,
}

impl<'a> Paths<'a> {
    pub fn new(of: &'a Resource, custom: bool) -> Self {
        let kind = (of.group.clone(), of.version.clone(), of.kind.name.clone());
        Self {
            of,
            custom,
            schema: definition_name(&kind),
            tag: version_tag(&of.group, &of.version),
            id: version_id(&of.group, &of.version),
        }
    }

    fn has(&self, verb: &str) -> bool {
        self.of.verbs.iter().any(|own| own == verb)
    }

    fn base(&self, watch: bool) -> String {
        let root = if self.of.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.of.group) };
        format!("{root}/{}{}", self.of.version, if watch { "/watch" } else { "" })
    }

    fn collection(&self, watch: bool) -> String {
        let namespace = if self.of.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{namespace}/{}", self.base(watch), self.of.name)
    }

    fn scope(&self) -> &'static str {
        if self.of.namespaced { "Namespaced" } else { "" }
    }

    fn collection_parameters(&self) -> Vec<Parameter> {
        let mut parameters = named(&["pretty"]);
        if self.of.namespaced {
            parameters.push(namespace());
        }
        parameters
    }

    fn object_parameters(&self) -> Vec<Parameter> {
        let mut parameters = self.collection_parameters();
        parameters.push(name_of(&self.of.kind.name));
        parameters
    }

    /// Returns all paths of the resource.
    pub fn items(&self) -> Vec<PathItem> {
        let mut items = Vec::new();
        if self.of.namespaced && self.has("list") {
            let path = format!("{}/{}", self.base(false), self.of.name);
            let id = format!("list{}{}ForAllNamespaces", self.id, self.of.kind.name);
            items.push(PathItem { path, parameters: named(&["pretty"]), operations: vec![self.list(id)] });
        }
        let parameters = self.collection_parameters();
        items.push(PathItem { path: self.collection(false), parameters, operations: self.on_collection() });
        let path = format!("{}/{{name}}", self.collection(false));
        items.push(PathItem { path, parameters: self.object_parameters(), operations: self.on_object() });
        for part in self.of.subresources.iter() {
            items.extend(self.subresource(part));
        }
        if self.has("watch") && !self.custom {
            items.extend(self.watches());
        }
        items.retain(|item| !item.operations.is_empty());
        items.into_iter().map(PathItem::settled).collect()
    }

    /// Returns an operation that answers with the object. The caller fills in the rest.
    fn operation(&self, method: &'static str, action: &'static str, id: String, description: String) -> Operation {
        Operation {
            method,
            id,
            tag: self.tag.clone(),
            description,
            action,
            kind: Some((self.of.group.clone(), self.of.version.clone(), self.of.kind.name.clone())),
            parameters: Vec::new(),
            body: None,
            consumes: if self.custom { CUSTOM } else { ANY },
            produces: if self.custom { CUSTOM } else { OBJECT },
            codes: &[200],
            answer: Answered::Object(self.schema.clone()),
        }
    }

    fn list(&self, id: String) -> Operation {
        let kind = (self.of.group.clone(), self.of.version.clone(), self.of.list_kind.clone());
        Operation {
            parameters: named(&LIST_PARAMETERS),
            produces: if self.custom { CUSTOM } else { LIST },
            answer: Answered::Object(definition_name(&kind)),
            ..self.operation("get", "list", id, format!("List or watch objects of the kind {}.", self.of.kind.name))
        }
    }

    fn on_collection(&self) -> Vec<Operation> {
        let kind = &*self.of.kind.name;
        let mut operations = Vec::new();
        if self.has("list") {
            operations.push(self.list(format!("list{}{}{kind}", self.id, self.scope())));
        }
        if self.has("create") {
            operations.push(self.create(format!("create{}{}{kind}", self.id, self.scope()), &self.schema));
        }
        if self.has("deletecollection") {
            let id = format!("delete{}Collection{}{kind}", self.id, self.scope());
            let delete =
                self.operation("delete", "deletecollection", id, format!("Delete objects of the kind {kind}."));
            let mut parameters = named(&LIST_PARAMETERS);
            if !self.custom {
                parameters.retain(|parameter| !matches!(&*parameter.name, "allowWatchBookmarks" | "watch"));
                parameters.extend(named(&DELETE_PARAMETERS));
            }
            operations.push(Operation {
                parameters,
                body: (!self.custom).then(options_body),
                answer: Answered::Object(format!("{META}Status")),
                ..delete
            });
        }
        operations
    }

    fn create(&self, id: String, schema: &str) -> Operation {
        Operation {
            parameters: named(&WRITE_PARAMETERS),
            body: Some(RequestBody { of: schema.to_owned(), required: true, shared: "" }),
            codes: &[200, 201, 202],
            answer: Answered::Object(schema.to_owned()),
            ..self.operation("post", "post", id, format!("Create an object of the kind {}.", self.of.kind.name))
        }
    }

    fn on_object(&self) -> Vec<Operation> {
        let kind = &*self.of.kind.name;
        let suffix = format!("{}{}{kind}", self.id, self.scope());
        let mut operations = self.read_and_write(&self.of.verbs, &suffix, &self.schema, kind);
        if self.has("delete") {
            let delete = self.operation("delete", "delete", format!("delete{suffix}"), format!("Delete one {kind}."));
            let returned = !self.custom && crate::kinds::strategy(&self.of.group, &self.of.name).returns_deleted;
            let answer = if returned { self.schema.clone() } else { format!("{META}Status") };
            operations.push(Operation {
                parameters: named(&DELETE_PARAMETERS),
                body: Some(options_body()),
                codes: &[200, 202],
                answer: Answered::Object(answer),
                ..delete
            });
        }
        operations
    }

    /// Returns the operations get, replace and patch, as far as the verbs include them.
    fn read_and_write(&self, verbs: &[Text], suffix: &str, schema: &str, what: &str) -> Vec<Operation> {
        let has = |verb: &str| verbs.iter().any(|own| own == verb);
        let answer = || Answered::Object(schema.to_owned());
        let mut operations = Vec::new();
        if has("get") {
            let parameters = if self.custom { named(&["resourceVersion"]) } else { Vec::new() };
            let read = self.operation("get", "get", format!("read{suffix}"), format!("Read one {what}."));
            operations.push(Operation { parameters, answer: answer(), ..read });
        }
        if has("update") {
            let put = self.operation("put", "put", format!("replace{suffix}"), format!("Replace one {what}."));
            operations.push(Operation {
                parameters: named(&WRITE_PARAMETERS),
                body: Some(RequestBody { of: schema.to_owned(), required: true, shared: "" }),
                codes: &[200, 201],
                answer: answer(),
                ..put
            });
        }
        if has("patch") {
            let patch =
                self.operation("patch", "patch", format!("patch{suffix}"), format!("Change parts of one {what}."));
            let mut parameters = named(&["dryRun", "fieldValidation", "force"]);
            parameters.push(patch_manager());
            operations.push(Operation {
                parameters,
                body: Some(RequestBody { of: format!("{META}Patch"), required: true, shared: "body-78PwaGsr" }),
                consumes: if self.custom { CUSTOM_PATCH } else { PATCH },
                codes: if self.custom { &[200] } else { &[200, 201] },
                answer: answer(),
                ..patch
            });
        }
        operations
    }

    fn subresource(&self, part: &Subresource) -> Vec<PathItem> {
        let (group, version, kind) = &part.response_kind;
        if group.is_empty() && kind.ends_with("Options") {
            return self.connect(part);
        }
        let path = format!("{}/{{name}}/{}", self.collection(false), part.name);
        let suffix = format!("{}{}{}{}", self.id, self.scope(), self.of.kind.name, title(&part.name));
        let schema = definition_name(&part.response_kind);
        let what = format!("{} of a {}", part.name, self.of.kind.name);
        let mut parameters = self.object_parameters();
        let mut operations = self.read_and_write(&part.verbs, &suffix, &schema, &what);
        if part.verbs.iter().any(|verb| verb == "create") {
            let description = format!("Create the {what}.");
            operations.push(Operation { description, ..self.create(format!("create{suffix}"), &schema) });
        }
        if !self.custom {
            for operation in &mut operations {
                operation.kind = Some(part.response_kind.clone());
            }
        }
        if part.name == "log" {
            for operation in &mut operations {
                operation.produces = LOG;
                operation.answer = Answered::Text;
            }
            parameters.extend(of_options(version, "PodLogOptions"));
        }
        vec![PathItem { path, parameters, operations }]
    }

    /// Returns the paths of a subresource that forwards connections: each of its verbs is a connection.
    fn connect(&self, part: &Subresource) -> Vec<PathItem> {
        let (_, version, kind) = &part.response_kind;
        let mut parameters = self.object_parameters();
        parameters.retain(|parameter| parameter.name != "pretty");
        parameters.extend(of_options(version, kind));
        let mut methods = vec!["get", "post"];
        let proxy = part.verbs.len() > 2;
        if proxy {
            methods.extend(["put", "delete", "options", "head", "patch"]);
        }
        let operations = |suffix: &str| {
            let each = methods.iter().map(|method| {
                let id = format!(
                    "connect{}{}{}{}{}{suffix}",
                    self.id,
                    title(method),
                    self.scope(),
                    self.of.kind.name,
                    title(&part.name)
                );
                let description =
                    format!("Connect {} requests to {} of a {}.", method.to_uppercase(), part.name, self.of.kind.name);
                Operation {
                    kind: Some(part.response_kind.clone()),
                    produces: ANY,
                    answer: Answered::Text,
                    ..self.operation(method, "connect", id, description)
                }
            });
            each.collect::<Vec<_>>()
        };
        let path = format!("{}/{{name}}/{}", self.collection(false), part.name);
        let mut items =
            vec![PathItem { path: path.clone(), parameters: parameters.clone(), operations: operations("") }];
        if proxy {
            parameters.push(proxied_path());
            let path = format!("{path}/{{path}}");
            items.push(PathItem { path, parameters, operations: operations("WithPath") });
        }
        items
    }

    /// Returns the deprecated paths below `watch/`.
    fn watches(&self) -> Vec<PathItem> {
        let kind = &*self.of.kind.name;
        let watch = |action, id, what: &str| Operation {
            parameters: named(&LIST_PARAMETERS),
            produces: LIST,
            answer: Answered::Object(format!("{META}WatchEvent")),
            ..self.operation("get", action, id, format!("Watch {what}. Deprecated: list with the parameter watch."))
        };
        let mut items = Vec::new();
        if self.of.namespaced {
            let path = format!("{}/{}", self.base(true), self.of.name);
            let id = format!("watch{}{kind}ListForAllNamespaces", self.id);
            let operations = vec![watch("watchlist", id, &format!("objects of the kind {kind}"))];
            items.push(PathItem { path, parameters: named(&["pretty"]), operations });
        }
        let id = format!("watch{}{}{kind}List", self.id, self.scope());
        let operations = vec![watch("watchlist", id, &format!("objects of the kind {kind}"))];
        items.push(PathItem { path: self.collection(true), parameters: self.collection_parameters(), operations });
        let id = format!("watch{}{}{kind}", self.id, self.scope());
        let operations = vec![watch("watch", id, &format!("one {kind}"))];
        let path = format!("{}/{{name}}", self.collection(true));
        items.push(PathItem { path, parameters: self.object_parameters(), operations });
        items
    }
}

fn options_body() -> RequestBody {
    RequestBody { of: format!("{META}DeleteOptions"), required: false, shared: "body-2Y1dVQaQ" }
}
