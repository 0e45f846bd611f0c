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

#[test]
fn many_members_that_come_and_go_are_found_like_few() {
    let key = |n: usize| format!("k{:05}", n * 7919 % 20_000);
    let mut map: Map = (0..10_000).map(|n| (key(n), Value::from(n as i64))).collect();
    let before = map.clone();
    for n in 10_000..20_000 {
        assert_eq!(map.insert(key(n), n as i64), None);
    }
    for n in 0..5_000 {
        assert_eq!(map.remove(&key(n)), Some(Value::from(n as i64)));
    }
    assert_eq!(map.remove("none"), None);
    *map.entry("new") = true.into();
    *map.entry(&key(7_000)) = false.into();
    assert_eq!((map.len(), before.len()), (15_001, 10_000));
    assert!(map.keys().is_sorted() && map.iter().rev().count() == map.len());
    assert_eq!(map.get(&key(12_345)), Some(&Value::from(12_345)));
    assert_eq!(map.get_mut(&key(7_000)), Some(&mut Value::Bool(false)));
    let line: Map = map.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    assert_eq!((&map, &line), (&line, &map));
    map.retain(|key, _| key != "new");
    map.iter_mut().for_each(|(_, value)| *value = Value::Null);
    assert_eq!(map.clone().into_iter().len(), 15_000);
    assert!(!map.contains_key("new") && map.values().all(Value::is_null));
}
