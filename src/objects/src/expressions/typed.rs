//! The fields of objects of a known kind, for checking expressions against the kinds that they match.

use std::sync::Arc;

use flotilla_cel::environment::Provider;
use flotilla_cel::types::Type;
use flotilla_cel::value::escape;
use flotilla_proto::schema::{self, Kind, Ref, Shape};

/// Path steps to the items of a list and to the entries of a map.
const ITEM: &str = "@idx";
const ENTRY: &str = "@elem";

/// Object types of a kind. Each is named by its path from the root.
#[derive(Debug)]
pub struct Typed {
    root: String,
    of: Ref<schema::Type>,
}

/// The schema at a path.
enum PathSchema<'s> {
    Struct(&'s schema::Type),
    Shape(&'s Shape),
}

impl Typed {
    /// Describes a kind. `root` distinguishes its objects from those of other kinds in the same environment.
    pub fn new(kind: &Kind, root: &str) -> Arc<Self> {
        Arc::new(Self { root: format!("{}{root}", kind.name), of: kind.of.clone() })
    }

    /// Returns the type of the objects.
    pub fn object(&self) -> Type {
        Type::object(&self.root)
    }

    /// Returns the struct with this type name.
    fn find(&self, object: &str) -> Option<&schema::Type> {
        let way = object.strip_prefix(self.root.as_str())?;
        let mut reached = PathSchema::Struct(&self.of);
        for step in way.split('.').skip(1) {
            reached = match (reached, step) {
                (PathSchema::Shape(Shape::List(list)), ITEM) => PathSchema::Shape(&list.item),
                (PathSchema::Shape(Shape::Map(map)), ENTRY) => PathSchema::Shape(&map.value),
                (PathSchema::Struct(of), name) => PathSchema::Shape(&of.field(name)?.1.shape),
                (PathSchema::Shape(Shape::Struct(of)), name) => PathSchema::Shape(&of.field(name)?.1.shape),
                _ => return None,
            };
        }
        match reached {
            PathSchema::Struct(of) => Some(of),
            PathSchema::Shape(Shape::Struct(of)) => Some(of),
            PathSchema::Shape(_) => None,
        }
    }
}

impl Provider for Typed {
    fn has_object(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn field(&self, object: &str, field: &str) -> Option<Type> {
        let of = self.find(object)?;
        let is_it = |known: &&schema::Field| escape(&known.name).as_deref() == Some(field);
        match of.fields.iter().find(is_it) {
            Some(known) => Some(declared(&known.shape, &format!("{object}.{}", known.name))),
            None => of.open.then_some(Type::Dyn),
        }
    }
}

/// Returns the type of a value of a shape. Object types are named by their path.
fn declared(shape: &Shape, way: &str) -> Type {
    match shape {
        Shape::Bool => Type::Bool,
        Shape::Int32 | Shape::Int64 | Shape::Uint(_) => Type::Int,
        Shape::Double => Type::Double,
        Shape::String { .. } | Shape::Duration => Type::String,
        Shape::Bytes => Type::Bytes,
        Shape::Time | Shape::MicroTime => Type::Timestamp,
        Shape::Quantity | Shape::IntOrString | Shape::Any(_) => Type::Dyn,
        Shape::Struct(of) if of.open && of.fields.is_empty() => Type::Dyn,
        Shape::Struct(_) => Type::object(way),
        Shape::List(list) => Type::list(declared(&list.item, &format!("{way}.{ITEM}"))),
        Shape::Map(map) => Type::map(Type::String, declared(&map.value, &format!("{way}.{ENTRY}"))),
    }
}
