//! The path of the walk to a value, and its names in errors.

use crate::schema::Type;

/// The path of the walk to a value, with the structs of its fields, as links on the stack.
#[derive(Clone, Copy)]
pub(super) struct ValuePath<'a> {
    pub(super) parent: Option<&'a ValuePath<'a>>,
    pub(super) step: PathStep<'a>,
}

/// One step of a path.
#[derive(Clone, Copy)]
pub(super) enum PathStep<'a> {
    Root,
    Field(&'a Type, &'a str),
    Index(usize),
    Key(&'a str),
    /// From here on, a decoder of the field's own type reads the value.
    Decoder,
}

impl ValuePath<'_> {
    /// Appends the path with indexes and keys, as strict decoding reports it.
    pub(super) fn path(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.path(out);
        }
        match self.step {
            PathStep::Root | PathStep::Decoder => {}
            PathStep::Field(_, name) | PathStep::Key(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            PathStep::Index(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }

    /// Appends the path of field names alone, as type errors report it.
    fn fields(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.fields(out);
        }
        if let PathStep::Field(owner, name) = self.step {
            let embedding = owner.field(name).map(|(at, _)| owner.embedding(at)).unwrap_or_default();
            for name in embedding.into_iter().chain([name]) {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
        }
    }

    /// Returns the struct of the innermost field. Inside a value with a decoder of its own, that is the struct of the
    /// field that the outermost such decoder reads.
    fn owner(&self) -> Option<&str> {
        let (mut owner, mut path) = (None, Some(self));
        while let Some(here) = path {
            match here.step {
                PathStep::Decoder => owner = None,
                PathStep::Field(of, _) => owner = owner.or(Some(&*of.name)),
                _ => {}
            }
            path = here.parent;
        }
        owner
    }

    /// Returns the name of the value in type errors.
    pub(super) fn describe(&self) -> String {
        match self.owner() {
            Some(owner) => {
                let mut path = format!("struct field {owner}.");
                let mut fields = String::new();
                self.fields(&mut fields);
                path.push_str(&fields);
                path
            }
            None => "value".into(),
        }
    }
}
