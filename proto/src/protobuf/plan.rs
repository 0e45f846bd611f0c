//! How the members of a type's JSON become its message, worked out once per type.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use super::encode::absent;
use super::wire;
use crate::schema::{Field, Part, Shape, Type, Wire};

/// A type whose members can be written as they are met.
///
/// Messages ascend by number, so a message is a row of slots, one for each field; those of an embedded struct follow
/// each other and make a group, which is a message of its own.
#[derive(Debug)]
pub(super) struct Plan {
    /// The fields in the order of JSON.
    pub(super) steps: Vec<Step>,
    /// Embedded structs, in the order of their slots.
    pub(super) groups: Vec<Group>,
    /// Whether the order of JSON is also that of slots.
    pub(super) is_ordered: bool,
    /// How many bytes the length of a message probably takes.
    pub(super) length_size: usize,
    /// What all slots hold when their fields are absent, and where each begins in it.
    zeros: Vec<u8>,
    offsets: Vec<usize>,
}

/// What becomes of a member.
#[derive(Debug)]
pub(super) struct Step {
    /// The member's key as it stands in JSON, with quotes and colon.
    key: Vec<u8>,
    /// The first bytes of the key, and which of them count.
    head: u64,
    mask: u64,
    /// Where it stands in the message; `None` where it does not.
    pub(super) slot: Option<usize>,
    /// The number of its field.
    pub(super) number: u32,
    /// What its value is.
    pub(super) shape: &'static Shape,
    /// The plan of the struct that it is, or that its items or values are.
    nested: OnceLock<Option<Arc<Plan>>>,
}

/// The slots of an embedded struct.
#[derive(Debug)]
pub(super) struct Group {
    /// The number of the message that they make.
    pub(super) number: u32,
    /// The first slot and the one behind the last.
    pub(super) first: usize,
    pub(super) end: usize,
    /// The message with tag and length when all are absent.
    pub(super) zero: Vec<u8>,
}

/// The plans of a type's fields and message parts, by where those lie. Only built-in types have messages, so that there
/// are no more than these.
type Plans = HashMap<(usize, usize), Option<Arc<Plan>>>;

static PLANS: LazyLock<RwLock<Plans>> = LazyLock::new(RwLock::default);

impl Plan {
    /// The plan of a type; `None` where its members cannot be written as they are met.
    pub(super) fn of(of: &Type) -> Option<Arc<Self>> {
        let Cow::Borrowed(fields) = of.fields else { return None };
        let key = (fields.as_ptr() as usize, of.wire.as_ptr() as usize);
        if let Some(known) = PLANS.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let plan = Self::make(of, fields).map(Arc::new);
        PLANS.write().unwrap_or_else(PoisonError::into_inner).insert(key, plan.clone());
        plan
    }

    fn make(of: &Type, fields: &'static [Field]) -> Option<Self> {
        if of.message.is_empty() {
            return None;
        }
        let mut plan = Self {
            steps: fields.iter().map(Step::of).collect(),
            groups: Vec::new(),
            is_ordered: true,
            length_size: if fields.iter().all(|field| is_short(&field.shape)) { 1 } else { 2 },
            zeros: Vec::new(),
            offsets: vec![0],
        };
        for Wire { number, part } in of.wire {
            match *part {
                Part::Field(field) => plan.slot(of, *number, field)?,
                Part::Embedded(_, parts) => {
                    let (first, from) = (plan.slots(), plan.zeros.len());
                    for Wire { number, part } in parts {
                        // An embedded struct that embeds another one would need a stack of groups.
                        let Part::Field(field) = *part else { return None };
                        plan.slot(of, *number, field)?;
                    }
                    let mut zero = Vec::new();
                    wire::push_head(*number, plan.zeros.len() - from, &mut zero);
                    zero.extend_from_slice(&plan.zeros[from..]);
                    plan.groups.push(Group { number: *number, first, end: plan.slots(), zero });
                }
            }
        }
        let slots = || plan.steps.iter().filter_map(|step| step.slot);
        plan.is_ordered = slots().is_sorted();
        Some(plan)
    }

    /// Gives a field the next slot.
    fn slot(&mut self, of: &Type, number: u32, field: usize) -> Option<()> {
        let slot = self.slots();
        let step = self.steps.get_mut(field)?;
        (step.slot, step.number) = (Some(slot), number);
        absent(&of.fields[field], number, &mut self.zeros);
        self.offsets.push(self.zeros.len());
        Some(())
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.offsets.len() - 1
    }

    /// What these slots hold when their fields are absent.
    pub(super) fn zeros(&self, first: usize, end: usize) -> &[u8] {
        &self.zeros[self.offsets[first]..self.offsets[end]]
    }

    /// The same, unless the first slot stands behind the end.
    pub(super) fn zeros_between(&self, first: usize, end: usize) -> Option<&[u8]> {
        (first <= end).then(|| self.zeros(first, end))
    }

    /// The field whose key stands at the start of a text, looked for first where it is expected.
    pub(super) fn find(&self, text: &[u8], expected: usize) -> Option<usize> {
        let head = text.first_chunk().map(|head| u64::from_le_bytes(*head))?;
        let is_it = |step: &Step| (head ^ step.head) & step.mask == 0 && step.is_at(text);
        let (before, after) = self.steps.split_at(expected);
        after.iter().position(is_it).map(|at| expected + at).or_else(|| before.iter().position(is_it))
    }
}

impl Step {
    fn of(field: &'static Field) -> Self {
        let key = format!("\"{}\":", field.name).into_bytes();
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for ((head, mask), byte) in head.iter_mut().zip(&mut mask).zip(&key) {
            (*head, *mask) = (*byte, 0xff);
        }
        let (head, mask) = (u64::from_le_bytes(head), u64::from_le_bytes(mask));
        Self { key, head, mask, slot: None, number: 0, shape: &field.shape, nested: OnceLock::new() }
    }

    /// Whether the key stands at the start of a text whose head is the key's.
    fn is_at(&self, text: &[u8]) -> bool {
        self.key.len() <= size_of_val(&self.head) || text.starts_with(&self.key)
    }

    /// How long the key is.
    pub(super) fn key_length(&self) -> usize {
        self.key.len()
    }

    /// The plan of the struct that the member is, or that its items or values are.
    pub(super) fn nested(&self) -> Option<&Plan> {
        self.nested.get_or_init(|| Plan::of(struct_of(self.shape)?)).as_deref()
    }
}

fn struct_of(shape: &'static Shape) -> Option<&'static Type> {
    match shape {
        Shape::Struct(of) => Some(of),
        Shape::List(list) => struct_of(&list.item),
        Shape::Map(map) => struct_of(&map.value),
        _ => None,
    }
}

/// Whether values of a shape are mostly a few bytes.
fn is_short(shape: &Shape) -> bool {
    !matches!(shape, Shape::Struct(_) | Shape::List(_) | Shape::Map(_) | Shape::Any(_) | Shape::Bytes)
}
