use super::*;

fn texts(check: fn(&Path<'_>, &str, &mut Errors), text: &str) -> Vec<String> {
    let mut errors = Errors::default();
    check(&Path::root("ip"), text, &mut errors);
    errors.0.into_iter().map(|error| error.detail).collect()
}

#[test]
fn sloppy_and_strict_differ() {
    assert_eq!(parse_sloppy("010.0.0.1"), Some(IpAddr::from([10, 0, 0, 1])));
    assert_eq!(parse_sloppy("::ffff:01.2.3.4").map(canonical).as_deref(), Some("1.2.3.4"));
    assert!(["", "1.2.3", "1.2.3.256", "1.2.3.4.5", "a", "1.2.3.-4", ":::"].iter().all(|t| parse_sloppy(t).is_none()));
    assert_eq!(texts(check_address, "010.0.0.1"), ["must not have leading 0s"]);
    assert_eq!(texts(check_address, "::ffff:1.2.3.4"), ["must not be an IPv4-mapped IPv6 address"]);
    assert_eq!(texts(check_address, "2001:DB8::1"), ["must be in canonical form (\"2001:db8::1\")"]);
    assert!(texts(check_address, "2001:db8::1").is_empty());
}

#[test]
fn blocks() {
    let block = |text: &str| Block::parse_sloppy(text);
    assert_eq!(block("10.1.2.3/8").map(Block::canonical).as_deref(), Some("10.0.0.0/8"));
    assert_eq!(block("10.0.0.0/8").map(|b| b.last().to_string()).as_deref(), Some("10.255.255.255"));
    assert_eq!(block("0.0.0.0/0").map(|b| b.last().to_string()).as_deref(), Some("255.255.255.255"));
    assert_eq!(block("2001:db8::/127").map(|b| b.last().to_string()).as_deref(), Some("2001:db8::1"));
    assert!(
        ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "::/1000"]
            .iter()
            .all(|t| block(t).is_none())
    );
    assert!(block("10.0.0.0/8").zip(block("10.9.0.0/16")).is_some_and(|(a, b)| a.overlaps(b) && b.overlaps(a)));
    assert!(block("10.0.0.0/8").zip(block("::/0")).is_some_and(|(a, b)| !a.overlaps(b)));
    assert_eq!(texts(check_block, "10.1.2.3/8"), ["must not have bits set beyond the prefix length"]);
    assert_eq!(texts(check_block, "10.0.0.0/08"), ["must not have leading 0s in IP or prefix length"]);
    assert!(texts(check_block, "10.0.0.0/8").is_empty());
}

#[test]
fn endpoints_are_unicast_and_not_local() {
    for bad in ["0.0.0.0", "127.0.0.1", "169.254.0.1", "224.0.0.7", "::", "::1", "fe80::1", "ff02::1", "x"] {
        assert_eq!(texts(check_endpoint, bad).len(), 1, "{bad}");
    }
    assert!(texts(check_endpoint, "10.0.0.1").is_empty());
}
