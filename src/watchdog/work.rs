//! Encodes the work of a thread in the bits of one number, so that noting it is a single store.

use std::sync::Arc;

use crate::served::Served;

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The server finds its user and its resource.
    Arriving = 1,
    /// The server computes the answer.
    Answering,
    /// The server produces a further part of the answer.
    Sending,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Arriving, Self::Answering, Self::Sending];

    /// Returns the name for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arriving => "arriving",
            Self::Answering => "answering",
            Self::Sending => "sending",
        }
    }
}

/// Methods that logs name. All others are `other`.
const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT"];

/// Bits of an address. No supported machine uses more (x86-64 without five-level paging, and AArch64).
const ADDRESS: u32 = 48;

/// The method, the resource and the stage of a request. 0 stands for no work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work(u64);

impl Work {
    /// Describes a stage of a request for objects of a resource. `None` stands for other requests.
    pub fn new(stage: Stage, method: &str, served: Option<&Arc<Served>>) -> Self {
        let method = METHODS.iter().position(|known| *known == method).map_or(0, |place| place as u64 + 1);
        Self((stage as u64) << 56 | method << ADDRESS | served.map_or(0, address))
    }

    /// Returns the same request at another stage.
    #[must_use]
    pub fn at(self, stage: Stage, served: Option<&Arc<Served>>) -> Self {
        Self((stage as u64) << 56 | self.0 & (0xff << ADDRESS) | served.map_or(0, address))
    }

    /// Returns the name of the stage.
    pub fn stage(self) -> &'static str {
        Stage::ALL.into_iter().find(|stage| *stage as u64 == self.0 >> 56).map_or("none", Stage::name)
    }

    /// Returns the method.
    pub fn method(self) -> &'static str {
        let place = (self.0 >> ADDRESS & 0xff) as usize;
        place.checked_sub(1).and_then(|place| METHODS.get(place)).copied().unwrap_or("other")
    }

    /// Returns whether the request is for objects of this resource.
    pub fn is_of(self, served: &Arc<Served>) -> bool {
        self.0 & ((1 << ADDRESS) - 1) == address(served)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    pub(super) const fn of_bits(bits: u64) -> Self {
        Self(bits)
    }
}

fn address(served: &Arc<Served>) -> u64 {
    Arc::as_ptr(served) as usize as u64 & ((1 << ADDRESS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::Resources;

    #[test]
    fn work_reads_back_from_its_bits() {
        let resources = Resources::builtin();
        let [pods, nodes] = ["pods", "nodes"].map(|name| resources.find("", "v1", name).unwrap());
        let work = Work::of_bits(Work::new(Stage::Arriving, "PATCH", None).at(Stage::Answering, Some(&pods)).bits());
        assert_eq!((work.stage(), work.method()), ("answering", "PATCH"));
        assert!(work.is_of(&pods) && !work.is_of(&nodes));
        assert_eq!((Work::default().stage(), Work::default().method()), ("none", "other"));
        assert_eq!(Work::new(Stage::Sending, "BREW", None).method(), "other");
    }
}
