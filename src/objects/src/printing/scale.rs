//! The columns of a `Scale`.

use std::borrow::Cow;

use flotilla_proto::schema::Column;

/// The columns of a `Scale`, which belongs to no resource of its own.
pub static SCALE_COLUMNS: &[Column] = &[
    column("Name", "string", "Name of the scaled object."),
    column("Desired", "integer", "Replicas asked for."),
    column("Available", "integer", "Replicas observed."),
    column("Age", "string", "Time since the object was created."),
];

/// The columns of the Scale of any custom resource.
pub static CUSTOM_SCALE_COLUMNS: &[Column] = &[
    formatted("Name", "string", "name", "Name of the scaled object."),
    column("Desired", "integer", "Replicas asked for."),
    column("Available", "integer", "Replicas observed."),
    column("Age", "date", "When the object was created."),
];

const fn column(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    formatted(name, kind, "", description)
}

const fn formatted(name: &'static str, kind: &'static str, format: &'static str, description: &'static str) -> Column {
    Column {
        name: Cow::Borrowed(name),
        kind: Cow::Borrowed(kind),
        format: Cow::Borrowed(format),
        priority: 0,
        description: Cow::Borrowed(description),
    }
}
