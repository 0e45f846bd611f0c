//! The tree that the parser builds: nodes are alternatives of the grammar, and parts are missing where the text is
//! wrong.

use super::rule::{Label, Role, Rule};

/// The index of a node in its tree.
pub type NodeId = u32;
/// The index that stands for no link.
const NONE: u32 = u32::MAX;

/// The tree of a text.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<TreeNode>,
    links: Vec<TreeLink>,
}

#[derive(Debug)]
struct TreeNode {
    label: Label,
    /// The first visible token in it.
    start: u32,
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct TreeLink {
    role: Role,
    child: Child,
    next: u32,
}

/// A part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A visible token.
    Token(u32),
    /// A missing token; the parser continued as if it were present.
    Missing(super::token::TokenKind, u32),
    /// A node.
    Node(NodeId),
}

impl Tree {
    /// Adds a node without parts.
    pub fn add(&mut self, label: Label, start: u32) -> NodeId {
        self.nodes.push(TreeNode { label, start, first: NONE, last: NONE });
        (self.nodes.len() - 1) as NodeId
    }

    /// Adds a part to a node.
    pub fn link(&mut self, node: NodeId, role: Role, child: Child) {
        let at = self.links.len() as u32;
        self.links.push(TreeLink { role, child, next: NONE });
        let node = &mut self.nodes[node as usize];
        if node.first == NONE {
            node.first = at;
        } else {
            self.links[node.last as usize].next = at;
        }
        node.last = at;
    }

    /// Sets the alternative of a node.
    pub fn relabel(&mut self, node: NodeId, label: Label) {
        self.nodes[node as usize].label = label;
    }

    /// Returns the alternative of a node.
    pub fn label(&self, node: NodeId) -> Label {
        self.nodes[node as usize].label
    }

    /// Returns the first token of a node.
    pub fn start(&self, node: NodeId) -> u32 {
        self.nodes[node as usize].start
    }

    /// Returns the parts of a role, in order.
    pub fn all(&self, node: NodeId, role: Role) -> impl Iterator<Item = Child> {
        let mut at = self.nodes[node as usize].first;
        std::iter::from_fn(move || {
            while at != NONE {
                let link = &self.links[at as usize];
                at = link.next;
                if link.role == role {
                    return Some(link.child);
                }
            }
            None
        })
    }

    /// Returns the first part of a role.
    pub fn get(&self, node: NodeId, role: Role) -> Option<Child> {
        self.all(node, role).next()
    }

    /// Returns the node that is the first part of a role.
    pub fn node(&self, node: NodeId, role: Role) -> Option<NodeId> {
        match self.get(node, role)? {
            Child::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the node itself, or the only operand of a node that adds nothing to it. `None` if that operand is
    /// missing.
    pub fn unwrapped(&self, node: NodeId) -> Option<NodeId> {
        let mut node = node;
        loop {
            let adds_nothing = match self.label(node) {
                Label::Pass => true,
                Label::Of(Rule::Expr | Rule::Or | Rule::And | Rule::Relation | Rule::Calc | Rule::Member) => {
                    self.get(node, Role::Operator).is_none()
                }
                _ => false,
            };
            if !adds_nothing {
                return Some(node);
            }
            node = self.node(node, Role::First)?;
        }
    }
}
