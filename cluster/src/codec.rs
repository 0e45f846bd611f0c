//! The binary form of batches and objects, in the log, in snapshots and in backups.
//!
//! Numbers are little-endian. Two bytes before a text state its length, four before the bytes of an object. The decoder
//! checks the form only: checksums of the log and of snapshots have been checked before.

use std::sync::Arc;

use bytes::Bytes;
use compact_str::CompactString;

use crate::entry::{Action, Batch, Command, Filling, Operation, ShardId, ShardStep};
use crate::object::{Term, WriteId};
use crate::{Expectation, Key, Layout, Object, Revision, TableId, Terms};

/// Decodes values one after the other. Every method returns `None` when the bytes end too early or are malformed.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn short(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.short()?;
        std::str::from_utf8(self.take(usize::from(length))?).ok()
    }

    pub(crate) fn blob(&mut self) -> Option<&'a [u8]> {
        let length = self.word()?;
        self.take(length as usize)
    }

    pub(crate) fn revision(&mut self) -> Option<Revision> {
        self.long().map(Revision::new)
    }

    fn terms(&mut self) -> Option<Vec<Term>> {
        let count = self.short()?;
        (0..count).map(|_| Some((CompactString::new(self.text()?), CompactString::new(self.text()?)))).collect()
    }

    /// Reads an object and copies its bytes into a buffer of its own.
    pub(crate) fn object(&mut self) -> Option<Object> {
        let key = Key::new(self.text()?);
        let revision = self.revision()?;
        let layout = Layout { revision_at: self.word()?, head: self.word()?, metadata: self.word()?..self.word()? };
        let terms = Terms::new(self.terms()?, self.terms()?);
        let bytes = Bytes::copy_from_slice(self.blob()?);
        layout.fits(bytes.len()).then(|| Object::restored(key, revision, bytes, layout, terms))
    }

    fn command(&mut self, table: &mut Option<TableId>) -> Option<Command> {
        let name = self.text()?;
        let table = match table {
            Some(table) if table.as_str() == name => table.clone(),
            _ => table.insert(TableId::new(name)).clone(),
        };
        let expectation = match self.byte()? {
            0 => Expectation::Absent,
            1 => Expectation::Revision(self.revision()?),
            _ => return None,
        };
        let (epoch, shard) = (self.word()?, self.short()?);
        let (key, revision, operation) = self.operation()?;
        Some(Command { table, epoch, shard, key, revision, expectation, operation })
    }

    fn write_id(&mut self) -> Option<WriteId> {
        WriteId::numbered(self.long()?)
    }

    /// Reads a version of an object or a deletion.
    pub(crate) fn operation(&mut self) -> Option<(Key, Revision, Operation)> {
        match self.byte()? {
            kind @ (PUT | PUT_WITH_WRITE_ID) => {
                let write_id = if kind == PUT { None } else { Some(self.write_id()?) };
                let object = self.object()?.made_by(write_id);
                Some((object.key().clone(), object.revision(), Operation::Put(Arc::new(object))))
            }
            kind @ (DELETE | DELETE_WITH_WRITE_ID) => {
                let (key, revision) = (Key::new(self.text()?), self.revision()?);
                let write_id = if kind == DELETE { None } else { Some(self.write_id()?) };
                Some((key, revision, Operation::Delete(write_id)))
            }
            _ => None,
        }
    }

    pub(crate) fn batch(&mut self) -> Option<Batch> {
        let close = self.long()?;
        let (count, mut table) = (self.word()?, None);
        let commands = (0..count).map(|_| self.command(&mut table)).collect::<Option<Vec<Command>>>()?;
        let step = if self.byte()? == 0 { None } else { Some(self.step()?) };
        Some(Batch::restored(commands, (close > 0).then_some(Revision::new(close)), step))
    }

    pub(crate) fn optional_revision(&mut self) -> Option<Option<Revision>> {
        self.long().map(|revision| (revision > 0).then_some(Revision::new(revision)))
    }

    fn step(&mut self) -> Option<ShardStep> {
        let shard = ShardId { table: TableId::new(self.text()?), epoch: self.word()?, number: self.short()? };
        let action = match self.byte()? {
            FILL => {
                let (step, anew, through) = (self.long()?, self.byte()? != 0, self.optional_revision()?);
                let count = self.word()?;
                let operations = (0..count).map(|_| self.operation()).collect::<Option<Vec<_>>>()?;
                Action::Fill(Filling { step, anew, operations, through })
            }
            OPEN => Action::Open { above: self.revision()? },
            END => Action::End,
            _ => return None,
        };
        Some(ShardStep { shard, action })
    }
}

const PUT: u8 = 0;
const DELETE: u8 = 1;
const DELETE_WITH_WRITE_ID: u8 = 2;
const PUT_WITH_WRITE_ID: u8 = 3;

const FILL: u8 = 0;
const OPEN: u8 = 1;
const END: u8 = 2;

pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    // Longer texts were refused before: names of Kubernetes objects and label values have at most a few hundred bytes.
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_terms(terms: &[Term], out: &mut Vec<u8>) {
    out.extend_from_slice(&(terms.len() as u16).to_le_bytes());
    for (name, value) in terms {
        put_text(name, out);
        put_text(value, out);
    }
}

pub(crate) fn put_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn put_long(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_object(object: &Object, out: &mut Vec<u8>) {
    put_text(object.key().as_str(), out);
    put_long(object.revision().get(), out);
    let Layout { revision_at, head, metadata } = object.layout();
    for offset in [*revision_at, *head, metadata.start, metadata.end] {
        out.extend_from_slice(&offset.to_le_bytes());
    }
    put_terms(object.terms().labels(), out);
    put_terms(object.terms().fields(), out);
    put_blob(object.bytes(), out);
}

/// Writes a version of an object or a deletion.
pub(crate) fn put_operation(key: &Key, revision: Revision, operation: &Operation, out: &mut Vec<u8>) {
    match operation {
        Operation::Put(object) => {
            out.push(if object.write_id().is_some() { PUT_WITH_WRITE_ID } else { PUT });
            object.write_id().iter().for_each(|write_id| put_long(write_id.number(), out));
            put_object(object, out);
        }
        Operation::Delete(write_id) => {
            out.push(if write_id.is_some() { DELETE_WITH_WRITE_ID } else { DELETE });
            put_text(key.as_str(), out);
            put_long(revision.get(), out);
            write_id.iter().for_each(|write_id| put_long(write_id.number(), out));
        }
    }
}

pub(crate) fn put_batch(batch: &Batch, out: &mut Vec<u8>) {
    put_long(batch.close().map_or(0, Revision::get), out);
    out.extend_from_slice(&(batch.commands().len() as u32).to_le_bytes());
    for command in batch.commands() {
        put_text(command.table.as_str(), out);
        match command.expectation {
            Expectation::Absent => out.push(0),
            Expectation::Revision(revision) => {
                out.push(1);
                put_long(revision.get(), out);
            }
        }
        out.extend_from_slice(&command.epoch.to_le_bytes());
        out.extend_from_slice(&command.shard.to_le_bytes());
        put_operation(&command.key, command.revision, &command.operation, out);
    }
    out.push(u8::from(batch.step().is_some()));
    if let Some(step) = batch.step() {
        put_step(step, out);
    }
}

fn put_step(step: &ShardStep, out: &mut Vec<u8>) {
    put_text(step.shard.table.as_str(), out);
    out.extend_from_slice(&step.shard.epoch.to_le_bytes());
    out.extend_from_slice(&step.shard.number.to_le_bytes());
    match &step.action {
        Action::Fill(filling) => {
            out.push(FILL);
            put_long(filling.step, out);
            out.push(u8::from(filling.anew));
            put_long(filling.through.map_or(0, Revision::get), out);
            out.extend_from_slice(&(filling.operations.len() as u32).to_le_bytes());
            for (key, revision, operation) in &filling.operations {
                put_operation(key, *revision, operation, out);
            }
        }
        Action::Open { above } => {
            out.push(OPEN);
            put_long(above.get(), out);
        }
        Action::End => out.push(END),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;

    #[test]
    fn batches_read_back_as_written_and_no_prefix_does() {
        let terms = Terms::new(vec![("app".into(), "web".into())], vec![("spec.nodeName".into(), "n1".into())]);
        let layout = Layout { revision_at: 2, head: 1, metadata: 3..9 };
        let draft = Draft { bytes: vec![b' '; 100], layout, terms, ..Draft::default() };
        let object = Arc::new(draft.seal(Key::new("ns/a"), Revision::FIRST).unwrap());
        let command = |key: &str, expectation, operation| {
            let (table, key, revision) = (TableId::new("pods"), Key::new(key), Revision::FIRST);
            Command { table, epoch: 3, shard: 7, key, revision, expectation, operation }
        };
        let named = Object::clone(&object).made_by(WriteId::numbered(6));
        let shard = ShardId { table: TableId::new("pods"), epoch: 4, number: 5 };
        let delete = (Key::new("ns/c"), Revision::LAST, Operation::Delete(WriteId::numbered(7)));
        let put = (Key::new("ns/a"), Revision::FIRST, Operation::Put(object.clone()));
        let filling = Filling { step: 9, anew: true, operations: vec![put, delete], through: Some(Revision::LAST) };
        let batch = Batch::restored(
            vec![
                command("ns/a", Expectation::Absent, Operation::Put(object.clone())),
                command("ns/a", Expectation::Absent, Operation::Put(Arc::new(named))),
                command("ns/b", Expectation::Revision(Revision::FIRST), Operation::Delete(None)),
            ],
            Some(Revision::LAST),
            Some(ShardStep { shard, action: Action::Fill(filling) }),
        );
        let mut bytes = Vec::new();
        put_batch(&batch, &mut bytes);
        let read = Decoder::new(&bytes).batch().unwrap();
        assert_eq!(format!("{read:?}"), format!("{batch:?}"));
        for number in 0..2 {
            match (&read.commands()[number].operation, &batch.commands()[number].operation) {
                (Operation::Put(read), Operation::Put(written)) => assert!(read.as_ref() == written.as_ref()),
                other => panic!("{other:?}"),
            }
        }
        for length in 0..bytes.len() {
            assert!(Decoder::new(&bytes[..length]).batch().is_none(), "{length}");
        }
    }
}
