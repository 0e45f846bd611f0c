//! The rules of one kind, as a table of pure functions.

use flotilla_proto::value::Value;

use crate::field::Errors;

/// How names of a kind are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 bytes: most kinds.
    Subdomain,
    /// RFC 1123 label, at most 63 bytes: namespaces.
    Label,
    /// Anything that can be a segment of a path: RBAC.
    PathSegment,
    /// RFC 1035 label.
    Label1035,
    /// RFC 1123 label, as services have it since 1.34.
    Service,
    /// A rule that the kind's own `validate` checks.
    Own,
}

/// What `metadata.generation` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation; whatever the client sends is kept.
    ClientOwned,
    /// The kind has no generation; what the client sends is dropped.
    None,
    /// Starts at 1 and rises with every change of `spec`.
    Spec,
    /// Starts at 1; `prepare_update` of the kind decides when it rises.
    Own,
}

/// What becomes of the dependents of a deleted object when the client does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependents {
    /// They are deleted.
    Delete,
    /// They lose their owner.
    Orphan,
    /// The kind has no dependents: policies are ignored.
    Unsupported,
}

/// Seconds that a deleted object is given, from the object and what the client asks for.
pub type GraceSeconds = fn(object: &Value, asked: Option<i64>) -> i64;

/// The rules of one kind. Objects are in the kind's stored version and conform to its type.
#[derive(Debug, Clone, Copy)]
pub struct Strategy {
    /// How names are checked.
    pub name: NameRule,
    /// Whether finalizers without a domain must be ones that the server knows: most kinds, but not those of some
    /// younger groups.
    pub known_finalizers: bool,
    /// Whether the kind's rules of creation leave metadata to the general ones, which take any name that fits into a
    /// path and are asked only once the kind's own hold.
    pub metadata_last: bool,
    /// Whether the rules of updates state once more what is wrong with metadata, as those of most kinds do.
    pub repeats_metadata: bool,
    /// What the generation counts.
    pub generation: Generation,
    /// Whether `status` is reset on create and kept on update of the object itself.
    pub status: bool,
    /// Whether PUT on a name that does not exist creates the object.
    pub create_on_update: bool,
    /// Whether PUT without a resourceVersion is allowed.
    pub unconditional_update: bool,
    /// Whether a deletion answers with the object rather than a `Status`.
    pub returns_deleted: bool,
    /// The kind's default for dependents.
    pub dependents: Dependents,
    /// The grace period of deletions; `None` where objects go at once.
    pub grace_seconds: Option<GraceSeconds>,
    /// The message for a field that `fieldSelector` may not name; `None` for the general one.
    pub unknown_field: Option<fn(&str) -> String>,
    /// Writes the defaults of the kind into a decoded object. Runs on every body and on every result of a patch, before
    /// validation; must be idempotent.
    pub default: fn(object: &mut Value),
    /// The same for objects that come in another version than the stored one, where that is not the same: they have
    /// been converted. What it leaves out is written once the object was found to be valid.
    pub default_converted: Option<fn(object: &mut Value)>,
    /// Whether the defaults of each member of the object follow from that member alone.
    pub defaults_by_member: bool,
    /// Clears and sets what a client may not choose at creation.
    pub prepare_create: fn(object: &mut Value),
    /// Clears and restores what a client may not change; the generic rules (status, generation) have run before.
    pub prepare_update: fn(object: &mut Value, old: &Value),
    /// As `prepare_update`, for writes of `/status`; the generic rule (only status changes) has run before.
    pub prepare_status: fn(object: &mut Value, old: &Value),
    /// Checks a whole object at creation; metadata has been checked before.
    pub validate: fn(object: &Value, errors: &mut Errors),
    /// Checks an update against the old object; usually calls `validate` as well.
    pub validate_update: fn(object: &Value, old: &Value, errors: &mut Errors),
    /// Checks a write of `/status`.
    pub validate_status: fn(object: &Value, old: &Value, errors: &mut Errors),
    /// Warnings of a create (`old` is `None`) or update.
    pub warnings: fn(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>),
    /// Warnings of a write of `/status`.
    pub status_warnings: fn(object: &Value, warnings: &mut Vec<String>),
    /// What is warned of when an object is deleted and the client does not say what becomes of its dependents.
    pub dependents_warning: Option<&'static str>,
    /// Subresources that write the object by rules of their own, by name.
    pub subresources: &'static [(&'static str, Subresource)],
    /// The values of fields that `fieldSelector` may name besides `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [Selectable],
    /// For resources whose stored version calls fields otherwise: what `fieldSelector` may name instead, and which
    /// selectable field that is.
    pub selectors: &'static [(&'static str, &'static str)],
    /// Former names of selectable fields that `fieldSelector` still takes, and what they are called now.
    pub aliases: &'static [(&'static str, &'static str)],
}

/// The rules of a subresource that changes the object itself, as `resize` of pods does.
#[derive(Debug, Clone, Copy)]
pub struct Subresource {
    /// Restores everything that cannot change through this door; keeps the generation's books.
    pub prepare: fn(object: &mut Value, old: &Value),
    /// Checks the write; the generic rules of metadata have run before.
    pub validate: fn(object: &Value, old: &Value, errors: &mut Errors),
}

/// A field that `fieldSelector` may name: its name, and its value in an object.
pub type Selectable = (&'static str, fn(&Value) -> String);

#[cfg(test)]
impl Strategy {
    /// What is wrong with a new object, defaults filled in.
    pub(crate) fn judge(&self, mut object: Value) -> Errors {
        (self.default)(&mut object);
        let mut errors = Errors::default();
        (self.validate)(&object, &mut errors);
        errors
    }

    /// The fields that are wrong in a new object.
    pub(crate) fn broken_fields(&self, object: Value) -> Vec<String> {
        self.judge(object).0.iter().map(|error| error.field.clone()).collect()
    }

    /// What a client is told that is wrong with a new object.
    pub(crate) fn complaints(&self, object: Value) -> Vec<String> {
        self.judge(object).0.iter().map(ToString::to_string).collect()
    }
}

impl Strategy {
    /// The rules of a subresource that changes the object itself.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|(known, _)| *known == name).map(|(_, rules)| rules)
    }

    /// Rules of a kind that has none of its own.
    pub const DEFAULT: Self = Self {
        name: NameRule::Subdomain,
        known_finalizers: true,
        metadata_last: false,
        repeats_metadata: true,
        generation: Generation::None,
        status: false,
        create_on_update: false,
        unconditional_update: true,
        returns_deleted: false,
        dependents: Dependents::Delete,
        grace_seconds: None,
        unknown_field: None,
        default: |_| {},
        default_converted: None,
        defaults_by_member: false,
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        prepare_status: |_, _| {},
        validate: |_, _| {},
        validate_update: |_, _, _| {},
        validate_status: |_, _, _| {},
        warnings: |_, _, _| {},
        status_warnings: |_, _| {},
        dependents_warning: None,
        subresources: &[],
        selectable: &[],
        selectors: &[],
        aliases: &[],
    };

    /// What 400 says of a field that selects nothing of this kind.
    pub fn unknown_field(&self, field: &str) -> String {
        match self.unknown_field {
            Some(message) => message(field),
            None if self.selectable.is_empty() => {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            None => format!("field label not supported: {field}"),
        }
    }
}
