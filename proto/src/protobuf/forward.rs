//! From stored JSON to a message in one pass.
//!
//! Stored JSON is canonical: no spaces, the members of an object in the order of its type, those of a map by key. So
//! the next key is nearly always that of the next field, and a value can be written where it is met; a length, which
//! precedes its content, is filled in afterwards. Anything unexpected or rare is left to [`super::tape`]: the functions
//! then return `None`.

use super::plan::{MemberPlan, Plan};
use super::wire::{WireWriter, push_head, push_part, push_varint, varint_size};
use super::{scalar, wire};
use crate::json::scan;
use crate::limits::PROTOBUF_WRITE_DEPTH_MAX;
use crate::schema::{AnyKind, Shape, Type};

/// Buffers that are reused for each object.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Members of open objects that were met before their place in the message: slot, start and end in `aside`.
    waiting: Vec<(usize, usize, usize)>,
    /// The encodings of these members.
    aside: Vec<u8>,
}

/// Appends the message of a stored object. Returns `None` and appends nothing when [`super::tape`] must do it.
pub(super) fn transcode(of: &Type, json: &[u8], room: &mut Room, out: &mut Vec<u8>) -> Option<()> {
    let plan = Plan::of(of)?;
    let start = out.len();
    room.waiting.clear();
    room.aside.clear();
    let mut forward = Forward { text: json, at: 0, out, room, depth: 0 };
    let done = forward.message(&plan).filter(|()| forward.is_at_end());
    if done.is_none() {
        out.truncate(start);
    }
    done
}

struct Forward<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
    room: &'a mut Room,
    depth: usize,
}

/// How far the message of a plan has been written.
struct MessageProgress<'p> {
    plan: &'p Plan,
    /// The next slot.
    slot: usize,
    /// The next group.
    group: usize,
    /// The position of the open group's length.
    open: Option<usize>,
}

impl<'p> MessageProgress<'p> {
    fn new(plan: &'p Plan) -> Self {
        Self { plan, slot: 0, group: 0, open: None }
    }

    /// Writes everything before a slot, which must not be written yet.
    fn advance(&mut self, to: usize, out: &mut Vec<u8>) -> Option<()> {
        self.pass_groups(to, out)?;
        if to != self.slot {
            let zeros = self.plan.zeros_between(self.slot, to)?;
            if !zeros.is_empty() {
                out.extend_from_slice(zeros);
            }
            self.slot = to;
        }
        Some(())
    }

    /// Opens and closes the groups that begin and end up to a slot.
    fn pass_groups(&mut self, to: usize, out: &mut Vec<u8>) -> Option<()> {
        while let Some(group) = self.plan.groups.get(self.group) {
            if to < group.first {
                break;
            }
            if self.open.is_none() {
                out.extend_from_slice(self.plan.zeros(self.slot, group.first));
                self.slot = group.first;
                if to < group.end {
                    push_varint(u64::from(group.number) << 3 | u64::from(wire::BYTES), out);
                    self.open = Some(reserve(1, out));
                } else {
                    out.extend_from_slice(&group.zero);
                    self.slot = group.end;
                    self.group += 1;
                    continue;
                }
            }
            if to < group.end {
                break;
            }
            out.extend_from_slice(self.plan.zeros(self.slot, group.end));
            close(self.open.take()?, 1, out);
            self.slot = group.end;
            self.group += 1;
        }
        Some(())
    }
}

/// Leaves room for a length.
fn reserve(size: usize, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.resize(at + size, 0);
    at
}

/// Fills in the length of everything after the room that was left for it. Returns how many bytes the length takes.
fn close(at: usize, reserved: usize, out: &mut Vec<u8>) -> usize {
    let (from, to) = (at + reserved, out.len());
    let mut length = (to - from) as u64;
    let size = varint_size(length);
    if size > reserved {
        out.resize(to + size - reserved, 0);
    }
    if size != reserved {
        out.copy_within(from..to, at + size);
        out.truncate(at + size + to - from);
    }
    for byte in &mut out[at..at + size - 1] {
        *byte = length as u8 | 0x80;
        length >>= 7;
    }
    out[at + size - 1] = length as u8;
    size
}

impl Forward<'_> {
    /// Passes a byte that must come next.
    fn expect(&mut self, byte: u8) -> Option<()> {
        (*self.text.get(self.at)? == byte).then(|| self.at += 1)
    }

    /// Passes the sign after a part of a container. Returns whether the part was the last one.
    fn ends(&mut self, close: u8) -> Option<bool> {
        let next = *self.text.get(self.at)?;
        self.at += 1;
        (next == b',' || next == close).then_some(next == close)
    }

    fn is_at_end(&self) -> bool {
        self.text[self.at..].iter().all(u8::is_ascii_whitespace)
    }

    /// Passes a word if it comes next. Returns whether it did.
    fn takes(&mut self, word: &[u8]) -> bool {
        // Mostly the first byte decides.
        let found = self.text.get(self.at) == word.first() && self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Writes the content of a struct's message.
    fn message(&mut self, plan: &Plan) -> Option<()> {
        if self.depth == PROTOBUF_WRITE_DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let mut progress = MessageProgress::new(plan);
        let (waiting, aside) = (self.room.waiting.len(), self.room.aside.len());
        self.members(plan, &mut progress, waiting)?;
        self.reach(plan.slots(), &mut progress, waiting)?;
        self.room.aside.truncate(aside);
        self.depth -= 1;
        Some(())
    }

    /// Writes members. The waiting members of this object are those from index `waiting` on.
    fn members(&mut self, plan: &Plan, progress: &mut MessageProgress<'_>, waiting: usize) -> Option<()> {
        self.expect(b'{')?;
        if self.takes(b"}") {
            return Some(());
        }
        let mut before = None;
        loop {
            let field = plan.find(&self.text[self.at..], before)?;
            before = Some(field);
            let member = &plan.member_plans[field];
            self.at += member.key_length();
            match member.slot {
                None => self.at = scan::value_end(self.text, self.at)?,
                Some(_) if self.takes(b"null") => {}
                Some(slot) if member.waits => {
                    let (from, aside) = (self.out.len(), self.room.aside.len());
                    self.field(member)?;
                    self.room.aside.extend_from_slice(&self.out[from..]);
                    self.out.truncate(from);
                    self.room.waiting.push((slot, aside, self.room.aside.len()));
                }
                Some(slot) => {
                    self.reach(slot, progress, waiting)?;
                    progress.slot = slot + 1;
                    self.field(member)?;
                }
            }
            if self.ends(b'}')? {
                return Some(());
            }
        }
    }

    /// Writes everything before a slot: members that wait, from index `first` on, and absent fields between them.
    fn reach(&mut self, to: usize, progress: &mut MessageProgress<'_>, first: usize) -> Option<()> {
        let Room { waiting, aside } = &mut *self.room;
        while waiting.len() > first {
            let next = (first..waiting.len()).min_by_key(|at| waiting[*at].0)?;
            let (slot, from, end) = waiting[next];
            if slot >= to {
                break;
            }
            waiting.swap_remove(next);
            progress.advance(slot, self.out)?;
            progress.slot = slot + 1;
            self.out.extend_from_slice(&aside[from..end]);
        }
        progress.advance(to, self.out)
    }

    fn field(&mut self, member: &MemberPlan) -> Option<()> {
        match member.shape {
            Shape::List(list) if list.boxed => None,
            Shape::List(list) => {
                self.expect(b'[')?;
                if self.takes(b"]") {
                    return Some(());
                }
                loop {
                    self.single(member.number, &list.item, member)?;
                    if self.ends(b']')? {
                        return Some(());
                    }
                }
            }
            Shape::Map(map) => self.map(member, &map.value),
            shape => self.single(member.number, shape, member),
        }
    }

    fn map(&mut self, member: &MemberPlan, shape: &Shape) -> Option<()> {
        self.expect(b'{')?;
        if self.takes(b"}") {
            return Some(());
        }
        let mut before: Option<&[u8]> = None;
        loop {
            let key = self.plain()?;
            // Keys that are equal or out of order are left to the tape, which sorts them.
            if before.is_some_and(|before| before >= key) {
                return None;
            }
            before = Some(key);
            self.expect(b':')?;
            self.head(member.number);
            let length = reserve(1, self.out);
            push_head(1, key.len(), self.out);
            self.out.extend_from_slice(key);
            self.single(2, shape, member)?;
            close(length, 1, self.out);
            if self.ends(b'}')? {
                return Some(());
            }
        }
    }

    /// Writes the tag of a field that has a length.
    fn head(&mut self, number: u32) {
        push_varint(u64::from(number) << 3 | u64::from(wire::BYTES), self.out);
    }

    /// Writes one field, list item or map value.
    fn single(&mut self, number: u32, shape: &Shape, member: &MemberPlan) -> Option<()> {
        match shape {
            Shape::Bool => {
                let truth = self.takes(b"true");
                (truth || self.takes(b"false")).then_some(())?;
                self.number(number, truth.into());
            }
            Shape::Int32 | Shape::Int64 | Shape::Uint(_) => {
                let value = self.int()?;
                self.number(number, value);
            }
            Shape::String { .. } => self.string(number)?,
            Shape::Bytes => {
                let bytes = scalar::from_base64(std::str::from_utf8(self.plain()?).ok()?);
                push_head(number, bytes.len(), self.out);
                self.out.extend_from_slice(&bytes);
            }
            Shape::Quantity => {
                let text = self.plain()?;
                push_head(number, 1 + varint_size(text.len() as u64) + text.len(), self.out);
                push_head(1, text.len(), self.out);
                self.out.extend_from_slice(text);
            }
            Shape::IntOrString if self.text.get(self.at)? != &b'"' => {
                let value = self.int()?;
                self.small(number, |out| scalar::write_int_or_string(None, value, out));
            }
            Shape::IntOrString => self.scalar(number, |text, out| scalar::write_int_or_string(Some(text), 0, out))?,
            Shape::Time => self.scalar(number, |text, out| scalar::write_time(Some(text), false, out))?,
            Shape::MicroTime => self.scalar(number, |text, out| scalar::write_time(Some(text), true, out))?,
            Shape::Duration => self.scalar(number, |text, out| scalar::write_duration(Some(text), out))?,
            Shape::Any(AnyKind::RawExtension | AnyKind::FieldsV1 | AnyKind::Json) => self.raw(number)?,
            Shape::Struct(_) => {
                let plan = member.nested()?;
                self.head(number);
                let size = plan.length_size();
                let length = reserve(size, self.out);
                self.message(plan)?;
                plan.take_length_size(close(length, size, self.out));
            }
            Shape::Double | Shape::Any(_) | Shape::List(_) | Shape::Map(_) => return None,
        }
        Some(())
    }

    fn number(&mut self, number: u32, value: i64) {
        push_varint(u64::from(number) << 3 | u64::from(wire::VARINT), self.out);
        push_varint(value as u64, self.out);
    }

    /// Writes a field whose content is made from a text.
    fn scalar(&mut self, number: u32, contents: impl FnOnce(&str, &mut WireWriter<'_>)) -> Option<()> {
        let text = std::str::from_utf8(self.plain()?).ok()?;
        self.small(number, |out| contents(text, out));
        Some(())
    }

    fn small(&mut self, number: u32, contents: impl FnOnce(&mut WireWriter<'_>)) {
        let mut writer = WireWriter::new(SMALL, self.out);
        contents(&mut writer);
        writer.close(number, 0);
        writer.finish();
    }

    /// Passes an integer.
    fn int(&mut self) -> Option<i64> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'-')).unwrap_or(rest.len());
        self.at += length;
        std::str::from_utf8(&rest[..length]).ok()?.parse().ok()
    }

    /// Writes a string.
    fn string(&mut self, number: u32) -> Option<()> {
        let from = self.at;
        if *self.text.get(from)? != b'"' {
            return None;
        }
        let (end, escapes) = scan::string_end(self.text, from)?;
        self.at = end;
        if escapes {
            let value = crate::json::parse(&self.text[from..end]).ok()?;
            let text = value.as_str()?;
            push_head(number, text.len(), self.out);
            self.out.extend_from_slice(text.as_bytes());
            return Some(());
        }
        push_head(number, end - from - 2, self.out);
        push_part(self.text, from + 1, end - 1, self.out);
        Some(())
    }

    /// Writes a value as its JSON text.
    fn raw(&mut self, number: u32) -> Option<()> {
        let from = self.at;
        self.at = scan::value_end(self.text, from)?;
        let raw = &self.text[from..self.at];
        if raw == b"null" {
            return None;
        }
        push_head(number, 1 + varint_size(raw.len() as u64) + raw.len(), self.out);
        push_head(1, raw.len(), self.out);
        self.out.extend_from_slice(raw);
        Some(())
    }
}

impl<'a> Forward<'a> {
    /// Passes a string without escapes.
    fn plain(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        if *self.text.get(from)? != b'"' {
            return None;
        }
        let (end, escapes) = scan::string_end(self.text, from)?;
        self.at = end;
        (!escapes).then(|| &self.text[from + 1..end - 1])
    }
}

/// The room for the contents of a time, duration or number, in bytes. Most fit into it.
const SMALL: usize = 32;
