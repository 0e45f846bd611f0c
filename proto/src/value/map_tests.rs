use super::*;

#[test]
fn large_maps_stay_findable_and_sorted() {
    let mut map = Map::new();
    for n in (0..1000).rev() {
        map.insert(format!("k{n:04}"), n);
    }
    assert_eq!(map.len(), 1000);
    assert!(map.keys().is_sorted());
    assert!((0..1000).all(|n| map.get(&format!("k{n:04}")) == Some(&Value::from(n))));
    assert_eq!(map.insert("k0500", true), Some(Value::from(500)));
}

#[test]
fn the_last_of_repeated_keys_wins() {
    for filler in [0, 200] {
        let mut entries: Vec<(Str, Value)> =
            vec![("a".into(), 1.into()), ("b".into(), 2.into()), ("a".into(), 3.into())];
        entries.extend((0..filler).map(|n| (format!("f{n}").into(), Value::Null)));
        let (map, repeated) = Map::from_entries(entries);
        assert_eq!(map.get("a"), Some(&Value::Int(3)));
        assert_eq!(repeated, ["a"]);
        assert_eq!(map.len(), 2 + filler);
    }
}
