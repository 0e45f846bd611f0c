//! Changes of members and leaders.

use prost::Message;

/// A wish about membership or leaders, of one group.
#[derive(Clone, PartialEq, Message)]
pub struct Administer {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// One of [`administration`].
    #[prost(uint32, tag = "2")]
    pub action: u32,
    /// The member that it is about.
    #[prost(uint64, tag = "3")]
    pub member: u64,
    /// Name of the member, when it is to be admitted.
    #[prost(string, tag = "4")]
    pub name: String,
    /// Address of the member, when it is to be admitted.
    #[prost(string, tag = "5")]
    pub address: String,
}

/// Values of [`Administer::action`].
pub mod administration {
    /// Send the member everything, and then give it a vote, in place of whoever has its name.
    pub const ADMIT: u32 = 1;
    /// Take the member out.
    pub const REMOVE: u32 = 2;
    /// Let the member lead.
    pub const TRANSFER: u32 = 3;
    /// To the member itself: lead nothing from now on, as long as others can.
    pub const DRAIN: u32 = 4;
    /// To the member itself: lead again.
    pub const UNDRAIN: u32 = 5;
    /// To the member itself: keep the group for a while once it is yours; every group when none is named.
    pub const HOLD: u32 = 6;
    /// Take the vote of the member, and go on sending it everything.
    pub const UNVOTE: u32 = 7;
}

/// What became of an [`Administer`].
#[derive(Clone, PartialEq, Message)]
pub struct AdministerAnswer {
    /// Empty when done; else why not.
    #[prost(string, tag = "1")]
    pub refusal: String,
    /// Who leads, when the one asked does not and knows who does; else zero.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
    /// Whether the one asked does not lead, so that nothing was done.
    #[prost(bool, tag = "3")]
    pub moved: bool,
}
