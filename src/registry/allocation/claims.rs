//! Claims of node ports: the ports that writes in progress take, through any member.
//!
//! The table of services says which service has a port, but not which write is about to take one. One object, in a
//! table that no API serves, holds all claims. A writer writes it only if it is unchanged since the writer read it.
//! Every writer of a claim therefore knows all others.

use std::collections::HashMap;

use flotilla_cluster::{Draft, Layout, Object, Revision, Terms};
use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;
use tokio::time::Instant;

use crate::limits;
use crate::status::{ApiError, ApiResult};

/// The table of the object that holds all claims.
pub(super) const TABLE: &str = "allocation/nodeports";
/// The key of that object. The object is never deleted, and therefore the expectation `absent` holds only once.
pub(super) const KEY: &str = "claims";
/// The member of the object into which the store writes the revision.
const REVISION: &str = "resourceVersion";

/// Identifies a claim; drawn at random.
pub(super) type ClaimId = u64;

/// The ports that one write takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub id: ClaimId,
    /// Namespace and name of the service, for people who inspect the object.
    pub service: String,
    pub ports: Vec<u16>,
}

/// Encodes the object with these claims.
pub(super) fn draft(claims: &[Claim]) -> Draft {
    let mut bytes = format!("{{\"{REVISION}\":\"").into_bytes();
    let revision_at = bytes.len() as u32;
    bytes.resize(bytes.len() + Revision::DIGITS, b'0');
    bytes.extend_from_slice(b"\",\"claims\":");
    json::write(&Value::from(claims.iter().map(written).collect::<Vec<_>>()), &mut bytes);
    bytes.extend_from_slice(b"}\n");
    Draft { bytes, layout: Layout { revision_at, ..Layout::default() }, terms: Terms::default(), is_decodable: true }
}

fn written(claim: &Claim) -> Value {
    let ports: Vec<Value> = claim.ports.iter().map(|port| Value::from(i64::from(*port))).collect();
    value!({"id": (format!("{:016x}", claim.id)), "service": (claim.service.clone()), "ports": (ports)})
}

/// Reads the claims from the object.
///
/// # Errors
/// 500: it cannot be decoded.
pub(super) fn of(object: &Object) -> ApiResult<Vec<Claim>> {
    parse(object.bytes()).ok_or_else(|| ApiError::internal("the claims of node ports cannot be read"))
}

fn parse(bytes: &[u8]) -> Option<Vec<Claim>> {
    let value = json::parse(bytes).ok()?;
    let port = |port: &Value| port.int_at(&[]).and_then(|port| u16::try_from(port).ok());
    let claim = |claim: &Value| {
        let id = ClaimId::from_str_radix(claim.str_at(&["id"]), 16).ok()?;
        let ports = claim.list_at(&["ports"]).iter().map(port).collect::<Option<_>>()?;
        Some(Claim { id, service: claim.str_at(&["service"]).to_owned(), ports })
    };
    value.list_at(&["claims"]).iter().map(claim).collect()
}

/// The claims that this process has observed. A claim is void once its write has ended in this process, or once this
/// process has seen the claim for longer than any write may take. The latter ends the claims of members that are gone.
/// This process measures time with its own clock only.
#[derive(Debug, Default)]
pub(super) struct ObservedClaims {
    /// When each claim was first seen.
    seen: HashMap<ClaimId, Instant>,
    /// When the write of each claim of this process ended.
    ended: HashMap<ClaimId, Instant>,
}

impl ObservedClaims {
    /// Returns the claims that are not void.
    pub fn in_force(&mut self, mut claims: Vec<Claim>, now: Instant) -> Vec<Claim> {
        let is_there = |id: &ClaimId| claims.iter().any(|claim| claim.id == *id);
        let is_recent = |since: Instant| now.duration_since(since) <= limits::PORT_CLAIM_LIFETIME;
        self.seen.retain(|id, _| is_there(id));
        // A claim may become visible only after its write was given up.
        self.ended.retain(|id, since| is_there(id) || is_recent(*since));
        claims.retain(|claim| {
            let since = *self.seen.entry(claim.id).or_insert(now);
            !self.ended.contains_key(&claim.id) && is_recent(since)
        });
        claims
    }

    /// Records that the write of a claim has ended.
    pub fn end(&mut self, id: ClaimId, now: Instant) {
        self.ended.insert(id, now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn claim(id: ClaimId, ports: &[u16]) -> Claim {
        Claim { id, service: format!("default/service-{id}"), ports: ports.to_vec() }
    }

    fn ids(claims: &[Claim]) -> Vec<ClaimId> {
        claims.iter().map(|claim| claim.id).collect()
    }

    #[test]
    fn claims_read_back_as_written() {
        for claims in [vec![], vec![claim(7, &[30_000]), claim(ClaimId::MAX, &[30_001, 32_767])]] {
            let draft = draft(&claims);
            assert_eq!(parse(&draft.bytes), Some(claims));
            let digits = &draft.bytes[draft.layout.revision_at as usize..][..Revision::DIGITS];
            assert!(digits.iter().all(|byte| *byte == b'0') && draft.bytes.ends_with(b"}\n"));
        }
    }

    #[test]
    fn invalid_claims_are_not_ignored() {
        for claims in [r#"[{"id":"g","ports":[1]}]"#, r#"[{"id":"1","ports":[65536]}]"#, r#"[{"id":"1","ports":[""]}]"#]
        {
            assert_eq!(parse(format!(r#"{{"claims":{claims}}}"#).as_bytes()), None, "{claims}");
        }
    }

    #[test]
    fn claims_are_void_once_they_were_seen_for_long() {
        let (mut sight, start) = (ObservedClaims::default(), Instant::now());
        let all = || vec![claim(1, &[30_000]), claim(2, &[30_001])];
        assert_eq!(ids(&sight.in_force(vec![claim(1, &[30_000])], start)), [1]);
        let later = start + limits::PORT_CLAIM_LIFETIME;
        assert_eq!(ids(&sight.in_force(all(), later)), [1, 2]);
        // The time counts from when this process first sees a claim.
        let moment = Duration::from_millis(1);
        assert_eq!(ids(&sight.in_force(all(), later + moment)), [2]);
        assert_eq!(ids(&sight.in_force(all(), later + limits::PORT_CLAIM_LIFETIME + moment)), [0; 0]);
        // Claims that are gone are forgotten.
        assert!(sight.in_force(Vec::new(), later).is_empty() && sight.seen.is_empty());
    }

    #[test]
    fn claims_are_void_when_their_write_has_ended_here() {
        let (mut sight, start) = (ObservedClaims::default(), Instant::now());
        sight.end(1, start);
        // The claim may show later than that.
        assert!(sight.in_force(Vec::new(), start).is_empty());
        assert_eq!(ids(&sight.in_force(vec![claim(1, &[30_000]), claim(2, &[30_000])], start)), [2]);
        let later = start + limits::PORT_CLAIM_LIFETIME * 2;
        assert_eq!(ids(&sight.in_force(vec![claim(1, &[30_000])], later)), [0; 0]);
        sight.in_force(Vec::new(), later);
        assert!(sight.ended.is_empty());
    }
}
