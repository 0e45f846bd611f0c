//! The types of the API: the shape that every codec, default, merge and validation reads.
//!
//! Built-in types are static tables generated from the catalogue; types of custom resources are built at run time
//! from their structural schema and shared by reference count. Both are used through `&Type`.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use crate::limits::FIELDS_SEARCHED_MAX;

/// A name or text that is static for built-in types and owned for custom ones.
pub type Text = Cow<'static, str>;

/// A reference to a part of a schema: static for built-in types, counted for custom resources.
#[derive(Debug, Clone)]
pub enum Ref<T: 'static> {
    /// Part of the built-in catalogue.
    Static(&'static T),
    /// Part of a schema made at run time.
    Shared(Arc<T>),
    /// Part of a schema that is made on first use: of many definitions, most are never used.
    Late(Arc<Late<T>>),
}

/// A value that is made on first use.
pub type Late<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

impl<T> Deref for Ref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Static(value) => value,
            Self::Shared(value) => value,
            Self::Late(value) => value,
        }
    }
}

impl<T> Ref<T> {
    /// Returns a reference to a value that `make` makes on first use.
    pub fn late(make: impl FnOnce() -> T + Send + 'static) -> Self {
        Self::Late(Arc::new(LazyLock::new(Box::new(make))))
    }
}

/// A structured type: an ordered set of fields.
#[derive(Debug, Clone)]
pub struct Type {
    /// Go-style type name without package: `PodSpec`.
    pub name: Text,
    /// The last element of the type's package, as in error messages: `v1`.
    pub package: Text,
    /// The name under which OpenAPI publishes the type: `io.k8s.api.core.v1.PodSpec`.
    pub openapi: Text,
    /// Name of the protobuf message with its package, without a leading dot: `k8s.io.api.core.v1.PodSpec`.
    pub message: Text,
    /// A short sentence that explains the type.
    pub description: Text,
    /// All fields, in the order in which they are encoded as JSON.
    pub fields: Cow<'static, [Field]>,
    /// Whether server-side apply treats the whole struct as one value (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Whether objects may have members besides the fields (`x-kubernetes-preserve-unknown-fields`): of any type, each
    /// with an owner of its own. Never true for built-in types.
    pub open: bool,
    /// Fields of which at most one may be set and whose discriminator apply maintains (`x-kubernetes-unions`).
    pub unions: Cow<'static, [Union]>,
    /// The parts of the protobuf message by ascending number; empty for custom resources, which have no protobuf form.
    pub wire: &'static [Wire],
}

/// A part of a protobuf message.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    /// Field number.
    pub number: u32,
    /// The content under that number.
    pub part: WirePart,
}

/// The content under a field number of a protobuf message.
#[derive(Debug, Clone, Copy)]
pub enum WirePart {
    /// The field with this index in [`Type::fields`].
    Field(usize),
    /// A nested message whose fields JSON has inline, as fields of the outer type (Go's embedded structs), with the
    /// name of its type.
    Embedded(&'static str, &'static [Wire]),
}

impl Type {
    /// Returns the names of the embedded structs that contain a field, the outermost first.
    pub fn embedding(&self, field: usize) -> Vec<&'static str> {
        fn find(parts: &[Wire], field: usize, names: &mut Vec<&'static str>) -> bool {
            parts.iter().any(|wire| match wire.part {
                WirePart::Field(index) => index == field,
                WirePart::Embedded(name, inner) => {
                    names.push(name);
                    let found = find(inner, field, names);
                    if !found {
                        names.pop();
                    }
                    found
                }
            })
        }
        let mut names = Vec::new();
        find(self.wire, field, &mut names);
        names
    }

    /// Returns the position of a field. Searches from `next`, where the field is if members are in the order of the
    /// catalogue.
    pub(crate) fn position(&self, name: &str, next: usize) -> Option<usize> {
        let fields = &self.fields;
        let from = next.min(fields.len());
        fields[from..]
            .iter()
            .position(|field| field.name == name)
            .map(|at| from + at)
            .or_else(|| fields[..from].iter().position(|field| field.name == name))
    }

    /// Returns the field with this JSON name and its position in encoding order. Returns `None` if there is none.
    pub fn field(&self, name: &str) -> Option<(usize, &Field)> {
        let few = self.fields.len().min(FIELDS_SEARCHED_MAX);
        if let Some(found) = self.fields[..few].iter().enumerate().find(|(_, field)| field.name == name) {
            return Some(found);
        }
        let rest = &self.fields[few..];
        let at = rest.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some((few + at, &rest[at]))
    }
}

/// One field of a [`Type`].
#[derive(Debug, Clone)]
pub struct Field {
    /// JSON name.
    pub name: Text,
    /// Protobuf field number in the innermost message that holds the field (see [`Type::wire`]); 0 where there is none.
    pub number: u32,
    /// The values that the field takes.
    pub shape: Shape,
    /// How absence and the zero value are told apart and encoded.
    pub presence: Presence,
    /// Whether OpenAPI lists the field as required.
    pub required: bool,
    /// The static default, as JSON text, that the server writes into objects (not merely OpenAPI's zero default).
    pub default: Option<Text>,
    /// The allowed values of a string enum, or of the items of a list or map of them, as OpenAPI publishes them; empty
    /// when any string is allowed.
    pub enumeration: Cow<'static, [Text]>,
    /// Strategic merge patch: merge key and strategies.
    pub patch: Patch,
    /// Whether the field states `x-kubernetes-map-type: granular`: apply looks into it, even if its type is atomic.
    pub granular: bool,
    /// A short sentence that explains the field; may be empty for nested fields.
    pub description: Text,
}

/// How a field is held and encoded, following Go's JSON rules that clients observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A plain value with `omitempty`: the zero value, `null` and absence are the same, and not encoded.
    OmitEmpty,
    /// A plain value without `omitempty`: always encoded, zero when absent (`null` for nil lists, maps, times and
    /// free-form values, the empty struct for structs).
    Always,
    /// A pointer with `omitempty`: absence and zero differ; encoded when set.
    Pointer,
    /// A pointer without `omitempty`: `null` when not set.
    AlwaysPointer,
}

/// Strategic merge patch facts of a field (`patchStrategy`, `patchMergeKey`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Patch {
    /// Lists are merged by key, or as a set of scalars where there is no key.
    pub merge: bool,
    /// Keys of the current value that the patch does not name may be cleared (`retainKeys`).
    pub retain_keys: bool,
    /// A struct is replaced as a whole (`replace`).
    pub replace: bool,
    /// The field that identifies a list's item.
    pub merge_key: Option<&'static str>,
}

/// The values that a field, list item or map value takes.
#[derive(Debug, Clone)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A 32-bit signed integer.
    Int32,
    /// A 64-bit signed integer.
    Int64,
    /// An unsigned byte, 16-, 32- or 64-bit integer, as Go names it (`uint32`).
    Uint(u8),
    /// A 64-bit float.
    Double,
    /// A string; `named` is the Go type (`v1.PullPolicy`) or empty for a plain string.
    String {
        /// Go type name for error messages; empty for `string`.
        named: Text,
    },
    /// Bytes, base64 in JSON.
    Bytes,
    /// `resource.Quantity`: a decimal with a suffix; a string in canonical form.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrString,
    /// RFC 3339 in whole seconds.
    Time,
    /// RFC 3339 with exactly six decimals.
    MicroTime,
    /// A Go duration as a string (`metav1.Duration`).
    Duration,
    /// A free-form value, such as `runtime.RawExtension`, `FieldsV1` or `apiextensions.JSON`.
    Any(AnyKind),
    /// A struct.
    Struct(Ref<Type>),
    /// A list.
    List(Ref<List>),
    /// A map from strings; keys sort in encoding.
    Map(Ref<Map>),
}

/// The free-form type of a field. These types differ in protobuf and in the JSON that they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyKind {
    /// `runtime.RawExtension`: an object, in protobuf `raw` bytes (field 1).
    RawExtension,
    /// `metav1.FieldsV1`: the object's JSON, in protobuf `Raw` bytes (field 1).
    FieldsV1,
    /// `apiextensions.JSON`: any JSON value, in protobuf `raw` bytes (field 1).
    Json,
    /// `JSONSchemaPropsOrBool`: an object or a boolean.
    SchemaOrBool,
    /// `JSONSchemaPropsOrArray`: an object or a list of objects.
    SchemaOrArray,
    /// `JSONSchemaPropsOrStringArray`: an object or a list of strings.
    SchemaOrStrings,
}

impl AnyKind {
    /// Returns whether the value is a JSON schema, or something else in its place.
    pub const fn holds_schemas(self) -> bool {
        matches!(self, Self::SchemaOrBool | Self::SchemaOrArray | Self::SchemaOrStrings)
    }
}

/// The items of a list, and how apply identifies them.
#[derive(Debug, Clone)]
pub struct List {
    /// The shape of each item.
    pub item: Shape,
    /// Whether items are pointers in Go (`null` items survive).
    pub pointer_items: bool,
    /// Go type of the list for error messages where it is named (`v1.Verbs`); empty otherwise.
    pub named: Text,
    /// Whether protobuf wraps the list into a message with the items as field 1.
    pub boxed: bool,
    /// Identity of items for apply.
    pub topology: Topology,
    /// Whether OpenAPI states the topology; lists that state none are atomic.
    pub stated: bool,
}

/// How apply identifies the items of a list (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// The list is one value.
    Atomic,
    /// Scalars, each its own key.
    Set,
    /// Structs, keyed by these fields.
    Map(Cow<'static, [Text]>),
}

/// A map's values.
#[derive(Debug, Clone)]
pub struct Map {
    /// The shape of each value.
    pub value: Shape,
    /// Go type of the map for error messages where it or its key is named (`v1.ResourceList`,
    /// `map[v1.QualifiedName]v1.DeviceCapacity`); empty otherwise.
    pub named: Text,
    /// Whether apply treats the map as one value.
    pub atomic: bool,
}

/// A union of a struct (`x-kubernetes-unions`).
#[derive(Debug, Clone)]
pub struct Union {
    /// The field that names the chosen member; empty when there is none.
    pub discriminator: Text,
    /// Member fields with the discriminator's value for each.
    pub members: Cow<'static, [(Text, Text)]>,
}

/// A kind as one group version serves it.
#[derive(Debug, Clone)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: Text,
    /// API version.
    pub version: Text,
    /// Kind name.
    pub name: Text,
    /// The object's type.
    pub of: Ref<Type>,
}

impl Kind {
    /// Returns the `apiVersion` as objects state it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// A resource as one group version serves it.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: Text,
    /// API version.
    pub version: Text,
    /// Plural name, as in paths.
    pub name: Text,
    /// Singular name.
    pub singular: Text,
    /// The kind that the resource holds.
    pub kind: Ref<Kind>,
    /// The kind of its lists, as `PodList`; empty when it cannot be listed.
    pub list_kind: Text,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Verbs in discovery's order.
    pub verbs: Cow<'static, [Text]>,
    /// Short names for kubectl.
    pub short_names: Cow<'static, [Text]>,
    /// Categories such as `all`.
    pub categories: Cow<'static, [Text]>,
    /// Hash of the stored form as discovery states it; empty when it states none.
    pub storage_hash: Text,
    /// Subresources, in discovery's order.
    pub subresources: Cow<'static, [Subresource]>,
    /// Table columns.
    pub columns: Cow<'static, [Column]>,
}

/// A subresource of a [`Resource`].
#[derive(Debug, Clone)]
pub struct Subresource {
    /// Name after the object's: `status`, `scale`.
    pub name: Text,
    /// Group, version and kind of its bodies.
    pub response_kind: (Text, Text, Text),
    /// Verbs in discovery's order.
    pub verbs: Cow<'static, [Text]>,
    /// Whether its bodies can be requested as Tables.
    pub tables: bool,
}

/// A column of the Table representation.
#[derive(Debug, Clone)]
pub struct Column {
    /// Header.
    pub name: Text,
    /// OpenAPI type of the cells.
    pub kind: Text,
    /// OpenAPI format; `name` marks the name column.
    pub format: Text,
    /// 0 for a column that is always shown, more for one that only wide output shows.
    pub priority: i32,
    /// A sentence that explains the column.
    pub description: Text,
}
