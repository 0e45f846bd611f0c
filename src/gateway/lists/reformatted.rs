//! Lists in YAML and in indented JSON, item by item.
//!
//! The writer of compact JSON provides the items; each is parsed and written again. The text around them is parsed
//! once, at the beginning, as the list without its items.

use flotilla_cluster::Object;
use flotilla_proto::value::{Map, Value};
use flotilla_proto::{json, yaml};

use super::items::{Common, ItemWriter};
use crate::registry::Page;
use crate::status::{ApiError, ApiResult};
use crate::unsent::Pieces;

/// The layout of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// YAML in block style, with the members of maps sorted.
    Yaml,
    /// JSON, with one member or item on each line.
    Indented,
}

/// A member of the list: its name and value.
type ListMember = (String, Value);

/// Writes a list in another layout than compact JSON.
pub(super) struct Reformatted {
    compact: Box<dyn ItemWriter>,
    layout: Layout,
    /// The members of the list, in the order in which they are written.
    members: Vec<ListMember>,
    has_items: bool,
}

impl Reformatted {
    pub(super) fn new(compact: Box<dyn ItemWriter>, layout: Layout) -> Self {
        Self { compact, layout, members: Vec::new(), has_items: false }
    }

    /// Returns the members before the one with the items, that member, and the members after it.
    fn parts(&self) -> (&[ListMember], &[ListMember], &[ListMember]) {
        let at = self.members.iter().position(|(name, _)| name == self.compact.member()).unwrap_or(self.members.len());
        let (before, rest) = self.members.split_at(at);
        let (items, after) = rest.split_at(rest.len().min(1));
        (before, items, after)
    }

    /// Appends members of the list. In YAML they are a document of their own, since nothing is indented.
    fn write(&self, members: &[ListMember], out: &mut Vec<u8>) {
        if members.is_empty() {
            return;
        }
        match self.layout {
            Layout::Yaml => {
                let members = members.iter().map(|(name, value)| (name.as_str().into(), value.clone()));
                yaml::write(&Value::Object(Map::from_unique(members.collect())), out);
            }
            Layout::Indented => {
                for (name, value) in members {
                    self.begin_member(name, out);
                    json::write_indented(value, 1, out);
                }
            }
        }
    }

    /// Appends the name of a member in indented JSON.
    fn begin_member(&self, name: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(if out.last() == Some(&b'{') { b"\n  " } else { b",\n  " });
        json::write_str(name, out);
        out.extend_from_slice(b": ");
    }

    /// Appends the text before an item.
    fn begin_item(&mut self, out: &mut Vec<u8>) {
        let is_first = !std::mem::replace(&mut self.has_items, true);
        match (self.layout, is_first) {
            (Layout::Yaml, true) => out.extend_from_slice(format!("{}:\n", self.compact.member()).as_bytes()),
            (Layout::Yaml, false) => {}
            (Layout::Indented, true) => {
                self.begin_member(self.compact.member(), out);
                out.extend_from_slice(b"[\n    ");
            }
            (Layout::Indented, false) => out.extend_from_slice(b",\n    "),
        }
    }
}

impl ItemWriter for Reformatted {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) -> ApiResult<()> {
        let mut empty = Vec::new();
        self.compact.begin(page, &mut empty)?;
        self.compact.end(&mut empty);
        if let Value::Object(list) = json::parse(&empty).map_err(ApiError::internal)? {
            self.members = list.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        }
        if self.layout == Layout::Yaml {
            self.members.sort_by(|(one, _), (other, _)| one.cmp(other));
        } else {
            out.push(b'{');
        }
        self.write(self.parts().0, out);
        Ok(())
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        let mut compact = Pieces::default();
        self.compact.item(object, &mut compact)?;
        let compact = compact.whole();
        // A comma or a bracket stands before the item.
        let text = compact.iter().position(|byte| *byte == b'{').map_or(&compact[..], |from| &compact[from..]);
        let item = json::parse(text).map_err(ApiError::internal)?;
        let out = out.text();
        self.begin_item(out);
        match self.layout {
            Layout::Yaml => yaml::write(&Value::Array(vec![item]), out),
            Layout::Indented => json::write_indented(&item, 2, out),
        }
        Ok(())
    }

    fn copies(&self, _object: &Object) -> bool {
        false
    }

    fn end(&self, out: &mut Vec<u8>) {
        let (_, items, after) = self.parts();
        if !self.has_items {
            self.write(items, out);
        } else if self.layout == Layout::Indented {
            out.extend_from_slice(b"\n  ]");
        }
        self.write(after, out);
        if self.layout == Layout::Indented {
            out.extend_from_slice(b"\n}");
        }
    }

    fn common(&self) -> &Common {
        self.compact.common()
    }
}
