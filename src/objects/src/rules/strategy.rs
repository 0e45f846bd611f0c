//! [`Strategy`]: the rules of one kind, as a table of pure functions.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::conversion::Conversion;
use super::protection::Protection;
use crate::field::Errors;
use crate::fieldmanager::reset;
use crate::printing::Printer;

/// The rule for the names of a kind.
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

/// The changes that `metadata.generation` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation; one that the client sends is kept.
    ClientOwned,
    /// The kind has no generation; one that the client sends is dropped.
    None,
    /// Starts at 1 and rises with every change of `spec`.
    Spec,
    /// Starts at 1; `prepare_update` of the kind decides when it rises.
    Own,
}

/// The default treatment of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependents {
    /// They are deleted.
    Delete,
    /// They lose their owner.
    Orphan,
    /// The kind has no dependents: propagation policies are ignored.
    Unsupported,
}

/// The basis of the decisions that the server makes about updates and deletions of a kind, besides those of admission.
/// The store proves decisions by the object alone: it makes a write only if the object is unchanged.
#[derive(Debug, Clone, Copy)]
pub enum UpdateBasis {
    /// The object before and after the write.
    Object,
    /// Other objects for updates for which the function returns true (its arguments are the subresource, the new and
    /// the stored object), and the object for everything else.
    TablesFor(fn(subresource: &str, object: &Value, old: &Value) -> bool),
    /// Other objects.
    Tables,
}

/// Computes the grace period of a deletion in seconds from the object and the period that the client asks for.
pub type GraceSeconds = fn(object: &Value, asked: Option<i64>) -> i64;

/// The rules of one kind. Objects are in the kind's stored version and conform to its type.
#[derive(Debug, Clone, Copy)]
pub struct Strategy {
    /// The rule for names.
    pub name: NameRule,
    /// Whether an object without a name gets a random UUID as its name, which the caller draws.
    pub random_name: bool,
    /// Whether finalizers without a domain must be known to the server. Most kinds demand it, but not those of some
    /// younger groups.
    pub known_finalizers: bool,
    /// Whether only the generic rules check the metadata of a new object, and only if the kind's own rules find no
    /// error. The generic rules accept any path segment as a name.
    pub metadata_last: bool,
    /// Whether the kind's rules of update repeat the errors about metadata, as those of most kinds do.
    pub repeats_metadata: bool,
    /// The changes that the generation counts.
    pub generation: Generation,
    /// Whether `status` is reset on create and kept on update of the object itself.
    pub status: bool,
    /// Whether PUT on a name that does not exist creates the object.
    pub create_on_update: bool,
    /// Whether PUT without a resourceVersion is allowed.
    pub unconditional_update: bool,
    /// The basis of decisions about updates and deletions.
    pub update_basis: UpdateBasis,
    /// Whether objects have addresses and ports that the server takes for them, and that other tables hold.
    pub allocates: bool,
    /// Whether the answer to a deletion is the object instead of a `Status`.
    pub returns_deleted: bool,
    /// The kind's default for dependents.
    pub dependents: Dependents,
    /// The grace period of deletions. `None` if objects are removed at once.
    pub grace_seconds: Option<GraceSeconds>,
    /// The message for a field that `fieldSelector` may not name. `None` stands for the general message.
    pub unknown_field: Option<fn(version: &str, field: &str) -> String>,
    /// Sets the defaults of the kind in a decoded object. Runs on every body and on every result of a patch, before
    /// validation; must be idempotent.
    pub default: fn(object: &mut Value),
    /// Sets missing times to the time of the write, `now`. Runs whenever `default` does, after it.
    pub default_times: fn(object: &mut Value, now: Timestamp),
    /// Replaces `default` for objects that a client sent in another version than the stored one, after conversion.
    /// `default` then runs after validation and sets the rest. `None` if `default` fits them, too.
    pub default_converted: Option<fn(object: &mut Value)>,
    /// Whether the defaults of each member of the object follow from that member alone.
    pub defaults_by_member: bool,
    /// Clears and sets fields that a client cannot choose at creation.
    pub prepare_create: fn(object: &mut Value, now: Timestamp),
    /// Writes the user who creates the object into it, in place of the user that the client sent. The user is an object
    /// of `username`, `uid`, `groups` and `extra`. `None` if the kind does not name its author.
    pub set_requester: Option<fn(object: &mut Value, user: &Value)>,
    /// Clears and restores fields that a client cannot change; the generic rules (status, generation) have run before.
    pub prepare_update: fn(object: &mut Value, old: &Value, now: Timestamp),
    /// As `prepare_update`, for writes of `/status`; the generic rule (only status changes) has run before.
    pub prepare_status: fn(object: &mut Value, old: &Value, now: Timestamp),
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
    /// The warning if an object is deleted and the client does not choose the treatment of its dependents.
    pub dependents_warning: Option<&'static str>,
    /// Subresources that write the object by rules of their own, by name.
    pub subresources: &'static [(&'static str, Subresource)],
    /// The values of fields that `fieldSelector` may name besides `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [Selectable],
    /// For resources whose stored version has other names for fields: pairs of the name in a `fieldSelector` and the
    /// selectable field behind it.
    pub selectors: &'static [(&'static str, &'static str)],
    /// Former names of selectable fields that `fieldSelector` still accepts, and their present names.
    pub aliases: &'static [(&'static str, &'static str)],
    /// The fields that writes leave as they are, each with everything below it, by the name of the subresource (empty
    /// for the object itself). Names only the differences from the rule of [`Strategy::reset_fields`].
    pub resets: &'static [(&'static str, reset::FieldPaths)],
    /// The protection of objects that others use. `None` if they can be removed at any time.
    pub protection: Option<&'static Protection>,
    /// Group, version and name of the kind in which objects of all versions are stored. `None` if that is the first
    /// version of the group that has the resource.
    pub stored_as: Option<(&'static str, &'static str, &'static str)>,
    /// The conversions between versions that differ by more than their names.
    pub conversions: &'static [Conversion],
    /// The rows of Tables, from the stored version. `None` if the kind has no Table of its own.
    pub printer: Option<Printer>,
}

/// The rules of a subresource that changes the object itself, as `resize` of pods does.
#[derive(Debug, Clone, Copy)]
pub struct Subresource {
    /// Restores everything that cannot change through this subresource, and sets the generation.
    pub prepare: fn(object: &mut Value, old: &Value, now: Timestamp),
    /// Checks the write; the generic rules of metadata have run before.
    pub validate: fn(object: &Value, old: &Value, errors: &mut Errors),
}

/// A field that `fieldSelector` may name: its name, and its value in an object.
pub type Selectable = (&'static str, fn(&Value) -> String);

#[cfg(test)]
impl Strategy {
    /// Returns the errors about a new object, after setting its defaults.
    pub(crate) fn judge(&self, mut object: Value) -> Errors {
        self.set_defaults(&mut object, Timestamp { seconds: 0, nanos: 0 });
        let mut errors = Errors::default();
        (self.validate)(&object, &mut errors);
        errors
    }

    /// Returns the invalid fields of a new object.
    pub(crate) fn broken_fields(&self, object: Value) -> Vec<String> {
        self.judge(object).0.iter().map(|error| error.field.clone()).collect()
    }

    /// Returns the errors about a new object as clients see them.
    pub(crate) fn complaints(&self, object: Value) -> Vec<String> {
        self.judge(object).0.iter().map(ToString::to_string).collect()
    }
}

impl Strategy {
    /// Sets the defaults of the kind, and the times that are `now` by default.
    pub fn set_defaults(&self, object: &mut Value, now: Timestamp) {
        (self.default)(object);
        (self.default_times)(object, now);
    }

    /// Returns the rules of a subresource that changes the object itself. Returns `None` if the kind has no such
    /// subresource.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|(known, _)| *known == name).map(|(_, rules)| rules)
    }

    /// Returns the fields that writes of the object, or of a subresource of it, leave as they are. If the kind's status
    /// is written through `/status` alone, the object leaves it, and `/status` leaves the spec.
    pub fn reset_fields(&self, subresource: &str) -> reset::FieldPaths {
        let own = self.resets.iter().find(|(name, _)| *name == subresource);
        match (own, subresource) {
            (Some((_, paths)), _) => paths,
            (None, "" | "finalize") if self.status => reset::STATUS,
            (None, "status") if self.status => reset::SPEC,
            _ => &[],
        }
    }

    /// The strategy of a kind without rules of its own.
    pub const DEFAULT: Self = Self {
        name: NameRule::Subdomain,
        random_name: false,
        known_finalizers: true,
        metadata_last: false,
        repeats_metadata: true,
        generation: Generation::None,
        status: false,
        create_on_update: false,
        unconditional_update: true,
        update_basis: UpdateBasis::Object,
        allocates: false,
        returns_deleted: false,
        dependents: Dependents::Delete,
        grace_seconds: None,
        unknown_field: None,
        default: |_| {},
        default_times: |_, _| {},
        default_converted: None,
        defaults_by_member: false,
        prepare_create: |_, _| {},
        set_requester: None,
        prepare_update: |_, _, _| {},
        prepare_status: |_, _, _| {},
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
        resets: &[],
        protection: None,
        stored_as: None,
        conversions: &[],
        printer: None,
    };

    /// Returns the message of 400 for a field that `fieldSelector` cannot use for this kind.
    pub fn unknown_field(&self, version: &str, field: &str) -> String {
        match self.unknown_field {
            Some(message) => message(version, field),
            None if self.selectable.is_empty() => {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            None => format!("field label not supported: {field}"),
        }
    }
}
