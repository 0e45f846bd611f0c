//! The results of Go itself for addresses and ranges: how it writes them, and the kind of each address.

use super::*;

fn kinds(addr: &Addr) -> String {
    let is_link_local = addr.is_link_local_unicast() || addr.is_link_local_multicast();
    format!(
        "{addr} {} {} {} {} {} {is_link_local}",
        addr.is_v4(),
        addr.is_v4_in_v6(),
        addr.is_unspecified(),
        addr.is_loopback(),
        addr.is_global_unicast(),
    )
}

#[test]
fn addresses_and_ranges_are_read_as_in_go() {
    let mut complaints = Vec::new();
    for line in include_str!("expected.txt").lines() {
        let (text, expected) = line.split_once('\t').unwrap();
        let actual = if text.contains('/') {
            Prefix::parse(text).map(|range| format!("{range} {}", range.masked())).unwrap_or_else(|e| format!("!{e}"))
        } else {
            Addr::parse(text).map(|addr| kinds(&addr)).unwrap_or_else(|error| format!("!{error}"))
        };
        if actual != expected {
            complaints.push(format!("{text}\n  Go:   {expected}\n  here: {actual}"));
        }
    }
    assert!(complaints.is_empty(), "{} differ:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn ranges_contain_addresses_of_their_kind() {
    let contains = |range, addr| Prefix::parse(range).unwrap().contains(&Addr::parse(addr).unwrap());
    assert!(contains("10.1.2.3/8", "10.9.9.9"));
    assert!(!contains("10.0.0.0/8", "11.0.0.0"));
    assert!(contains("0.0.0.0/0", "255.255.255.255"));
    assert!(!contains("::/0", "1.2.3.4"));
    assert!(!contains("0.0.0.0/0", "::ffff:1.2.3.4"));
    assert!(contains("2001:db8::/32", "2001:db8:ffff::"));
    assert!(!contains("fe80::/10", "fe80::1%eth0"));
}
