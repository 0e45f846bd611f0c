//! The plan by which the members of a type's JSON become its message; made once per type.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::RwLock;

use super::encode::absent;
use super::wire;
use crate::schema::{Field, Shape, Type, Wire, WirePart};

/// A type whose members can be written in the order in which they are met.
///
/// Messages ascend by field number, so a message is a row of slots, one for each field. The slots of an embedded struct
/// are consecutive and form a group, which is a message of its own.
#[derive(Debug)]
pub(super) struct Plan {
    /// The fields in the order of JSON.
    pub(super) member_plans: Vec<MemberPlan>,
    /// Embedded structs, in the order of their slots.
    pub(super) groups: Vec<SlotGroup>,
    /// The first field of the last object, which is likely the first of the next.
    first: AtomicU16,
    /// The number of bytes that the length of a message probably takes: as many as that of the last one.
    length_size: AtomicU8,
    /// The encoding of all slots when their fields are absent, and the offset of each slot in it.
    zeros: Vec<u8>,
    offsets: Vec<usize>,
}

/// How a member is written.
#[derive(Debug)]
pub(super) struct MemberPlan {
    /// The member's key as it is written in JSON, with quotes and colon.
    key: Vec<u8>,
    /// The first eight bytes of the key, and the eight after them, each with a mask of the bytes that count.
    head: Word,
    next: Word,
    /// Its slot in the message. `None` if it has none.
    pub(super) slot: Option<usize>,
    /// The number of its field.
    pub(super) number: u32,
    /// The shape of its value.
    pub(super) shape: &'static Shape,
    /// Whether a later member has an earlier slot, so that this one must wait for it.
    pub(super) waits: bool,
    /// The field that followed in the last object.
    next_field: AtomicU16,
    /// The plan of the member's struct, or of the structs that are its items or values.
    nested: OnceLock<Option<Arc<Plan>>>,
}

/// The slots of an embedded struct.
#[derive(Debug)]
pub(super) struct SlotGroup {
    /// The field number of the message that they form.
    pub(super) number: u32,
    /// The first slot, and the slot after the last one.
    pub(super) first: usize,
    pub(super) end: usize,
    /// The message with tag and length when all fields are absent.
    pub(super) zero: Vec<u8>,
}

/// The plans of types, by the addresses of their fields and of their message's parts. Only built-in types have
/// messages, so the number of plans is bounded.
type Plans = HashMap<(usize, usize), Option<Arc<Plan>>>;

static PLANS: LazyLock<RwLock<Plans>> = LazyLock::new(RwLock::default);

impl Plan {
    /// Returns the plan of a type. Returns `None` when its members cannot be written in the order in which they are
    /// met.
    pub(super) fn of(of: &Type) -> Option<Arc<Self>> {
        let Cow::Borrowed(fields) = of.fields else { return None };
        let key = (fields.as_ptr() as usize, of.wire.as_ptr() as usize);
        if let Some(known) = PLANS.read().get(&key) {
            return known.clone();
        }
        let plan = Self::make(of, fields).map(Arc::new);
        PLANS.write().insert(key, plan.clone());
        plan
    }

    fn make(of: &Type, fields: &'static [Field]) -> Option<Self> {
        if of.message.is_empty() {
            return None;
        }
        let mut plan = Self {
            member_plans: fields.iter().map(MemberPlan::of).collect(),
            groups: Vec::new(),
            first: AtomicU16::new(0),
            length_size: AtomicU8::new(1),
            zeros: Vec::new(),
            offsets: vec![0],
        };
        for Wire { number, part } in of.wire {
            match *part {
                WirePart::Field(field) => plan.slot(of, *number, field)?,
                WirePart::Embedded(_, parts) => {
                    let (first, from) = (plan.slots(), plan.zeros.len());
                    for Wire { number, part } in parts {
                        // An embedded struct in an embedded struct would need a stack of groups.
                        let WirePart::Field(field) = *part else { return None };
                        plan.slot(of, *number, field)?;
                    }
                    let mut zero = Vec::new();
                    wire::push_head(*number, plan.zeros.len() - from, &mut zero);
                    zero.extend_from_slice(&plan.zeros[from..]);
                    plan.groups.push(SlotGroup { number: *number, first, end: plan.slots(), zero });
                }
            }
        }
        let mut earliest = usize::MAX;
        for member in plan.member_plans.iter_mut().rev() {
            let Some(slot) = member.slot else { continue };
            member.waits = slot > earliest;
            earliest = earliest.min(slot);
        }
        Some(plan)
    }

    /// Gives a field the next slot.
    fn slot(&mut self, of: &Type, number: u32, field: usize) -> Option<()> {
        let slot = self.slots();
        let member = self.member_plans.get_mut(field)?;
        (member.slot, member.number) = (Some(slot), number);
        absent(&of.fields[field], number, &mut self.zeros);
        self.offsets.push(self.zeros.len());
        Some(())
    }

    /// Returns the number of bytes that the length of a message probably takes.
    pub(super) fn length_size(&self) -> usize {
        self.length_size.load(Ordering::Relaxed).into()
    }

    /// Records the number of bytes that the length of a message took; at most ten.
    pub(super) fn take_length_size(&self, size: usize) {
        if size != self.length_size() {
            self.length_size.store(size as u8, Ordering::Relaxed);
        }
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the encoding of these slots when their fields are absent.
    pub(super) fn zeros(&self, first: usize, end: usize) -> &[u8] {
        &self.zeros[self.offsets[first]..self.offsets[end]]
    }

    /// The same as [`Plan::zeros`], but returns `None` when the first slot is after the end.
    pub(super) fn zeros_between(&self, first: usize, end: usize) -> Option<&[u8]> {
        (first <= end).then(|| self.zeros(first, end))
    }

    /// Returns the field whose key is at the start of a text. `before` is the field of the member before it. It is
    /// `None` for the first member. Objects mostly have the same members as the last one, so the field that followed
    /// there is tried first.
    pub(super) fn find(&self, text: &[u8], before: Option<usize>) -> Option<usize> {
        let head = text.first_chunk().map(|head| u64::from_le_bytes(*head))?;
        let is_it = |member: &MemberPlan| member.head.is(head) && member.is_at(text);
        let last = before.map_or(&self.first, |before| &self.member_plans[before].next_field);
        let guess = usize::from(last.load(Ordering::Relaxed));
        if self.member_plans.get(guess).is_some_and(is_it) {
            return Some(guess);
        }
        let (passed, ahead) = self.member_plans.split_at(before.map_or(0, |before| before + 1));
        let found = ahead.iter().position(is_it).map(|at| passed.len() + at);
        let found = found.or_else(|| passed.iter().position(is_it))?;
        last.store(u16::try_from(found).unwrap_or(u16::MAX), Ordering::Relaxed);
        Some(found)
    }
}

impl MemberPlan {
    fn of(field: &'static Field) -> Self {
        let key = format!("\"{}\":", field.name).into_bytes();
        let (head, next) = (Word::of(&key), Word::of(key.get(WORD..).unwrap_or_default()));
        Self {
            key,
            head,
            next,
            slot: None,
            number: 0,
            shape: &field.shape,
            waits: false,
            next_field: AtomicU16::new(0),
            nested: OnceLock::new(),
        }
    }

    /// Returns whether the key is at the start of a text whose head matches the key's.
    fn is_at(&self, text: &[u8]) -> bool {
        match text.get(WORD..).and_then(<[u8]>::first_chunk) {
            Some(next) if self.key.len() <= 2 * WORD => self.next.is(u64::from_le_bytes(*next)),
            _ => text.starts_with(&self.key),
        }
    }

    /// Returns the length of the key.
    pub(super) fn key_length(&self) -> usize {
        self.key.len()
    }

    /// Returns the plan of the member's struct, or of the structs that are its items or values.
    pub(super) fn nested(&self) -> Option<&Plan> {
        self.nested.get_or_init(|| Plan::of(struct_of(self.shape)?)).as_deref()
    }
}

/// The number of bytes that are compared at once.
const WORD: usize = size_of::<u64>();

/// Up to eight bytes of a key.
#[derive(Debug)]
struct Word {
    bytes: u64,
    mask: u64,
}

impl Word {
    fn of(key: &[u8]) -> Self {
        let (mut bytes, mut mask) = ([0; WORD], [0; WORD]);
        for ((byte, mask), given) in bytes.iter_mut().zip(&mut mask).zip(key) {
            (*byte, *mask) = (*given, 0xff);
        }
        Self { bytes: u64::from_le_bytes(bytes), mask: u64::from_le_bytes(mask) }
    }

    /// Returns whether eight bytes begin with these.
    fn is(&self, bytes: u64) -> bool {
        (bytes ^ self.bytes) & self.mask == 0
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
