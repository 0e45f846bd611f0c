//! A CustomResourceDefinition in the form that requests use.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flotilla_proto::schema::{Kind, Ref, Text};
use flotilla_proto::structural::{SchemaReader, Structural, object_type, prune};
use flotilla_proto::value::{ObjectText, Value};
use ring::digest::{Context, Digest, SHA256};

use super::GracePeriod;
use crate::api_version;
use crate::field::Errors;
use crate::printing::CustomTable;
use crate::rules::conditions::is_true;
use crate::schemas::rules::CelRules;
use crate::webhooks::conversion::Conversion;

/// A definition that is established, with all of its versions.
#[derive(Debug)]
pub struct Definition {
    /// Group of the resource.
    pub group: Text,
    /// Plural name, as in paths.
    pub plural: Text,
    /// Singular name.
    pub singular: Text,
    /// Name of the kind.
    pub kind: Text,
    /// Name of the kind of its lists.
    pub list_kind: Text,
    /// Short names for kubectl.
    pub short_names: Vec<Text>,
    /// Categories such as `all`.
    pub categories: Vec<Text>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Whether the definition is being deleted, and its objects with it.
    pub terminating: bool,
    /// Every version, served or not, in the order of the definition.
    pub versions: Vec<Version>,
    /// The index of the version in which objects are stored.
    pub storage: usize,
    /// A number that no other definition of this process has. A changed definition gets a new one.
    pub serial: NonZeroU32,
    /// Signals watches to end once the definition has changed.
    pub grace: GracePeriod,
    /// The webhook that converts objects between versions. `None` when the server converts them.
    pub conversion: Option<Conversion>,
    /// A digest of the parts of the stored definition that decide how objects are read and shown.
    source: Digest,
}

/// One version of a custom resource.
#[derive(Debug)]
pub struct Version {
    /// Its name.
    pub name: Text,
    /// Whether it is served.
    pub served: bool,
    /// The warning that clients of a deprecated version get. `None` when the version is not deprecated.
    pub deprecation: Option<String>,
    /// The schema of its objects.
    pub schema: Arc<Structural>,
    /// The CEL rules of the schema.
    pub rules: CelRules,
    /// The schema as the definition states it. It shares its text with the stored definition, because a tree would
    /// take three times as much memory. `None` if the version has no schema.
    pub published: Option<ObjectText>,
    /// The kind, with its type for server-side apply, which is made on first use.
    pub kind: Ref<Kind>,
    /// The columns of its tables.
    pub table: CustomTable,
    /// Whether it has the subresource `status`.
    pub status: bool,
    /// The paths at which objects keep the values of their Scale. `None` without the subresource `scale`.
    pub scale: Option<ScalePaths>,
    /// The fields that `fieldSelector` may name, as paths of names.
    pub selectable: Vec<Vec<String>>,
}

/// The paths at which a custom object keeps the values of its Scale, as lists of names.
#[derive(Debug)]
pub struct ScalePaths {
    /// The desired replicas.
    pub replicas: Vec<String>,
    /// The observed replicas.
    pub observed: Vec<String>,
    /// The label selector in its text form, if the definition names one.
    pub selector: Option<Vec<String>>,
}

impl Definition {
    /// Reads a stored definition. Returns `None` if it is not established, or has no storage version.
    pub fn of(object: &Value) -> Option<Self> {
        if !is_true(object, "Established") {
            return None;
        }
        let (spec, names) = (object.at(&["spec"]), object.at(&["status", "acceptedNames"]));
        let text = |field: &str| Text::from(names.str_at(&[field]).to_owned());
        let texts = |field: &str| {
            let list = names.list_at(&[field]).iter();
            list.filter_map(Value::as_str).map(|name| Text::from(name.to_owned())).collect()
        };
        let (group, kind) = (Text::from(spec.str_at(&["group"]).to_owned()), text("kind"));
        let (versions, mut reader) = (spec.list_at(&["versions"]), SchemaReader::default());
        Some(Self {
            plural: text("plural"),
            singular: text("singular"),
            list_kind: text("listKind"),
            short_names: texts("shortNames"),
            categories: texts("categories"),
            namespaced: spec.str_at(&["scope"]) == "Namespaced",
            terminating: !object.at(&["metadata", "deletionTimestamp"]).is_null(),
            serial: next_serial(),
            grace: GracePeriod::default(),
            conversion: Conversion::of(spec),
            source: digest(object.str_at(&["metadata", "uid"]), [spec, names]),
            storage: versions.iter().position(|version| version.is_true_at(&["storage"]))?,
            versions: versions
                .iter()
                .map(|version| Version::of(&group, &kind, version, versions, &mut reader))
                .collect(),
            group,
            kind,
        })
    }

    /// Takes over the serial, the signal and the compiled rules of the previous definition if both describe objects in
    /// the same way. Returns whether they do.
    pub fn continues(&mut self, before: &Self) -> bool {
        let is_same = self.source.as_ref() == before.source.as_ref();
        if is_same {
            (self.serial, self.grace) = (before.serial, before.grace.clone());
            for (version, before) in self.versions.iter_mut().zip(&before.versions) {
                version.rules = before.rules.clone();
            }
        }
        is_same
    }

    /// Compiles the CEL rules of all versions ahead. Requests then need not wait.
    pub fn compile(&self) {
        self.versions.iter().for_each(Version::compile);
    }

    /// Returns the version in which objects are stored.
    pub fn stored(&self) -> &Version {
        &self.versions[self.storage]
    }

    /// Returns the version of this name, served or not. Returns `None` if the definition has no such version.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns the version of this name. Returns `None` if it is not served.
    pub fn served(&self, name: &str) -> Option<&Version> {
        self.version(name).filter(|version| version.served)
    }

    /// Drops the fields that the schema does not have. The object's own `apiVersion` selects the schema.
    pub fn prune(&self, object: &mut Value) {
        if let Some(version) = self.of_api_version(object.str_at(&["apiVersion"])) {
            prune(&version.schema, object, true);
        }
    }

    /// Returns the version that an `apiVersion` names, served or not. Returns `None` for other groups and unknown
    /// versions.
    pub fn of_api_version(&self, api_version: &str) -> Option<&Version> {
        let (group, version) = api_version.split_once('/')?;
        self.version(version).filter(|_| group == self.group)
    }
}

impl Version {
    fn of(group: &Text, kind: &Text, version: &Value, all: &[Value], reader: &mut SchemaReader) -> Self {
        let name = Text::from(version.str_at(&["name"]).to_owned());
        let published = ObjectText::of(version.at(&["schema", "openAPIV3Schema"]));
        let schema = Arc::new(published.as_ref().map_or_else(Structural::default, |text| reader.read(&text.parse())));
        let of = Kind {
            group: group.clone(),
            version: name.clone(),
            name: kind.clone(),
            of: Ref::late({
                let (schema, kind, name) = (Arc::clone(&schema), kind.clone(), name.clone());
                move || object_type(&schema, &kind, &name)
            }),
        };
        let scale = version.at(&["subresources", "scale"]);
        let fields = version.list_at(&["selectableFields"]).iter();
        Self {
            served: version.is_true_at(&["served"]),
            deprecation: deprecation(group, kind, version, all),
            published,
            table: CustomTable::new(version.list_at(&["additionalPrinterColumns"])),
            status: version.map_at(&["subresources", "status"]).is_some(),
            scale: Some(scale).filter(|scale| !scale.is_null()).map(ScalePaths::of),
            selectable: fields.map(|field| path(field.str_at(&["jsonPath"]))).collect(),
            kind: Ref::Shared(Arc::new(of)),
            rules: CelRules::default(),
            schema,
            name,
        }
    }

    fn compile(&self) {
        if let Some(published) = &self.published {
            self.rules.compiled(published);
        }
    }

    /// Reports the CEL rules that an object breaks. `old` is the stored object, and `errors` has the errors of other
    /// checks.
    pub fn judge(&self, object: &Value, old: Option<&Value>, errors: &mut Errors, warnings: &mut Vec<String>) {
        if let Some(published) = &self.published {
            self.rules.validate(published, &self.schema, (object, old), errors, warnings);
        }
    }

    /// Returns the `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        self.kind.api_version()
    }
}

impl ScalePaths {
    fn of(scale: &Value) -> Self {
        let selector = scale.str_at(&["labelSelectorPath"]);
        Self {
            replicas: path(scale.str_at(&["specReplicasPath"])),
            observed: path(scale.str_at(&["statusReplicasPath"])),
            selector: Some(selector).filter(|text| !text.is_empty()).map(path),
        }
    }
}

/// Returns a digest of the identifier and the parts of a definition.
fn digest(uid: &str, parts: [&Value; 2]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(uid.as_bytes());
    for text in parts.into_iter().filter_map(ObjectText::of) {
        context.update(text.as_bytes());
    }
    context.finish()
}

fn next_serial() -> NonZeroU32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    loop {
        // The counter wraps around after four billion definitions. Zero is no serial.
        if let Some(serial) = NonZeroU32::new(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)) {
            return serial;
        }
    }
}

/// Returns the names in a simple path such as `.spec.replicas`.
fn path(text: &str) -> Vec<String> {
    text.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the warning about a deprecated version. Without a text of its own, the version gets the general one, which
/// names the best newer version that is served and not deprecated. Returns `None` if the version is not deprecated.
fn deprecation(group: &str, kind: &str, version: &Value, all: &[Value]) -> Option<String> {
    if !version.is_true_at(&["deprecated"]) {
        return None;
    }
    if let Some(own) = version.at(&["deprecationWarning"]).as_str() {
        return Some(own.to_owned());
    }
    let name = version.str_at(&["name"]);
    let stays = |other: &&Value| other.is_true_at(&["served"]) && !other.is_true_at(&["deprecated"]);
    let newer = all.iter().filter(stays).map(|other| other.str_at(&["name"]));
    let newer =
        newer.filter(|other| api_version::compare(other, name).is_lt()).min_by(|a, b| api_version::compare(a, b));
    let instead = newer.map_or(String::new(), |newer| format!("; use {group}/{newer} {kind}"));
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn deprecated_versions_name_the_best_newer_version() {
        let all = value!([
            {"name": "v1", "served": true},
            {"name": "v2", "served": true},
            {"name": "v3", "served": false},
            {"name": "v2beta1", "served": true, "deprecated": true},
            {"name": "v1alpha1", "served": true, "deprecated": true, "deprecationWarning": "mine"}
        ]);
        let all = all.as_array().unwrap();
        let warning = |version: &Value, all: &[Value]| deprecation("g.example", "Kind", version, all);
        assert_eq!(warning(&all[0], all), None);
        let general = "g.example/v2beta1 Kind is deprecated";
        assert_eq!(warning(&all[3], all), Some(format!("{general}; use g.example/v2 Kind")));
        assert_eq!(warning(&all[3], &all[2..]), Some(general.to_owned()));
        assert_eq!(warning(&all[4], all), Some("mine".to_owned()));
        let newest = value!({"name": "v4", "served": true, "deprecated": true});
        assert_eq!(warning(&newest, all), Some("g.example/v4 Kind is deprecated".to_owned()));
    }
}
