//! Every bound of reading and writing values, in one place.

/// The number of complaints that are kept. The reference keeps no more either.
pub const COMPLAINTS_MAX: usize = 100;

/// The number of bytes of complaints, repeated ones included, after which no more are kept.
pub const COMPLAINTS_BYTES_MAX: usize = 1 << 20;

/// The number of bytes of paths that are examined for complaints, at most: the same complaint may occur again and
/// again.
pub const COMPLAINT_PATHS_BYTES_MAX: usize = 8 << 20;

/// How deep objects and lists of a body may nest, since trees are walked by recursion.
pub const JSON_DEPTH_MAX: usize = 512;

/// How deep objects and lists may nest in a text that was made from objects: the record of a field's owner lies
/// slightly deeper than the field, and an object in a list or an event lies deeper than alone. Everything that was
/// written can be read.
pub const JSON_READ_DEPTH_MAX: usize = JSON_DEPTH_MAX + 128;

/// How deep objects and lists of a text may nest before it is refused, as in Go's `encoding/json`. Values deeper than
/// [`JSON_DEPTH_MAX`] are checked, but not kept.
pub const JSON_NESTING_MAX: usize = 10_000;

/// The depth down to which objects are read on first use. To skip an object, its content is scanned, so content is
/// scanned once for each level above it. Deeper objects are read at once.
pub const READ_ON_USE_DEPTH_MAX: u8 = 24;

/// A map with more members than this is kept sorted, so that finding one never takes time linear in the size of a
/// client's body. No struct of the API has more fields, so conformed structs always keep the order of their schema.
pub const ORDERED_MEMBERS_MAX: usize = 64;

/// A vector with more members than this becomes a tree when one is inserted or removed in the middle: moving all
/// members after it, each time, would take time quadratic in the size of a client's body.
pub const LINE_MEMBERS_MAX: usize = 1_024;

/// The number of levels of a schema that are read. Values below are accepted as they are.
pub const SCHEMA_DEPTH_MAX: usize = 256;

/// The largest number of patterns of schemas that are remembered.
pub const PATTERNS_KNOWN_MAX: usize = 1_000;

/// The largest size of a pattern that is remembered, in bytes.
pub const PATTERN_KNOWN_BYTES_MAX: usize = 256;

/// The most bytes of paths of pruned fields that are returned: a body can cause paths with far more bytes than it has
/// itself.
pub const PRUNED_PATHS_BYTES_MAX: usize = 1 << 20;

/// The most bytes that defaults may add to an object; an object of that size would not be stored anyway.
pub const DEFAULTS_BYTES_MAX: usize = 4 << 20;

/// The number of values of an enumeration up to which they are compared one by one.
pub const COMPARED_VALUES_MAX: usize = 16;

/// How many fields of a type are searched one by one; no built-in type has more. Types of custom resources may have any
/// number; the fields after those that every object has are then sorted by name.
pub const FIELDS_SEARCHED_MAX: usize = 128;

/// The largest number of levels of a YAML text that is read as JSON.
pub const YAML_JSON_DEPTH_MAX: usize = 100;

/// The largest number of bytes of the keys of a YAML text that is read as JSON. YAML has a limit of 1,024 characters,
/// counted in another way.
pub const YAML_JSON_KEY_BYTES_MAX: usize = 1_000;

/// The number of characters that a key of YAML without `?` may have.
pub const YAML_KEY_CHARACTERS_MAX: usize = 1024;

/// How deep collections of YAML may nest, as in go-yaml.
pub const YAML_NESTING_MAX: usize = 10_000;

/// The number of nodes that the aliases of YAML may add to a body, since the nodes that they refer to are copied.
pub const YAML_ALIASED_NODES_MAX: usize = 100_000;

/// The largest number of bytes that the anchors and aliases of a YAML text may copy: a node with an anchor is stored
/// once more, and copied for every alias.
pub const YAML_COPIED_BYTES_MAX: usize = 16 << 20;

/// The number of bytes of reports about repeated keys of a YAML text, at most.
pub const YAML_COMPLAINTS_BYTES_MAX: usize = 1 << 20;

/// From this number of members on, the keys of a map in YAML are looked up in a set.
pub const YAML_SEARCHED_MEMBERS_MAX: usize = 16;

/// The longest key that is written before a colon on the same line of YAML, in bytes, as in go-yaml.
pub const YAML_SIMPLE_KEY_BYTES_MAX: usize = 128;

/// How deep messages of protobuf that are read may nest, since trees are walked by recursion. In JSON, where lists and
/// maps are levels as well, they nest at most twice as deep, and a few levels more.
pub const PROTOBUF_DEPTH_MAX: usize = 256;

/// How deep messages of protobuf that are written may nest: as deep as the objects from which they are made.
pub const PROTOBUF_WRITE_DEPTH_MAX: usize = JSON_DEPTH_MAX;

/// Fields of a type whose members are put into order before a message is written. No type of the catalogue has more.
pub const PROTOBUF_FIELDS_MAX: usize = 64;

/// The number of values for which an index over a JSON text keeps memory between texts. The memory of a larger object
/// is freed.
pub const INDEX_KEPT_VALUES_MAX: usize = 32 * 1024;

/// The largest number of digits of a sum of quantities.
pub const QUANTITY_SUM_DIGITS_MAX: u64 = 10_000;
