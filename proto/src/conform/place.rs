//! The position of the walk in a value, and its names in errors.

use crate::schema::Type;

/// The position of the walk: the field's struct and its path, as links on the stack.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) parent: Option<&'a Place<'a>>,
    pub(super) step: Step<'a>,
}

/// One step of a path.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Root,
    Field(&'a Type, &'a str),
    Index(usize),
    Key(&'a str),
    /// From here on, a decoder of the field's own type reads the value.
    Decoder,
}

impl Place<'_> {
    /// Appends the path with indexes and keys, as strict decoding reports it.
    pub(super) fn path(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.path(out);
        }
        match self.step {
            Step::Root | Step::Decoder => {}
            Step::Field(_, name) | Step::Key(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(index) => {
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
        if let Step::Field(owner, name) = self.step {
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
        let (mut owner, mut place) = (None, Some(self));
        while let Some(here) = place {
            match here.step {
                Step::Decoder => owner = None,
                Step::Field(of, _) => owner = owner.or(Some(&*of.name)),
                _ => {}
            }
            place = here.parent;
        }
        owner
    }

    /// Returns the name of the place in type errors.
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
