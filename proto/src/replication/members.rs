//! Changes of members and leaders.

use prost::Message;

/// A request to change the members or the leader of a group.
#[derive(Clone, PartialEq, Message)]
pub struct Administer {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// One of [`administration`].
    #[prost(uint32, tag = "2")]
    pub action: u32,
    /// The id of the member that it concerns.
    #[prost(uint64, tag = "3")]
    pub member: u64,
    /// The name of the member, when it is being admitted.
    #[prost(string, tag = "4")]
    pub name: String,
    /// The address of the member, when it is being admitted.
    #[prost(string, tag = "5")]
    pub address: String,
}

/// Values of [`Administer::action`].
pub mod administration {
    /// Send the member everything, and then give it a vote, in place of a member with the same name.
    pub const ADMIT: u32 = 1;
    /// Remove the member.
    pub const REMOVE: u32 = 2;
    /// Transfer leadership to the member.
    pub const TRANSFER: u32 = 3;
    /// To the member itself: hand over leadership and lead nothing from now on, as long as others can.
    pub const DRAIN: u32 = 4;
    /// To the member itself: it may lead again.
    pub const UNDRAIN: u32 = 5;
    /// To the member itself: once it leads the group, keep leading it for a while; every group when none is named.
    pub const HOLD: u32 = 6;
    /// Remove the member's vote, but go on sending it everything.
    pub const UNVOTE: u32 = 7;
}

/// The result of an [`Administer`].
#[derive(Clone, PartialEq, Message)]
pub struct AdministerAnswer {
    /// The reason why it was refused; empty when it was done.
    #[prost(string, tag = "1")]
    pub refusal: String,
    /// The id of the leader, when the receiver does not lead and knows it; zero otherwise.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
    /// Whether the receiver does not lead, so that nothing was done.
    #[prost(bool, tag = "3")]
    pub moved: bool,
}
