use super::*;
use crate::scratch::Scratch;

fn object(journal: &Journal, name: &str) -> Option<String> {
    let bytes = journal.read("pods", &("a".to_owned(), name.to_owned())).unwrap();
    bytes.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn filled(path: &Path) -> Journal {
    let mut journal = Journal::open(path).unwrap();
    assert!(journal.is_of("one").unwrap());
    journal.put("pods", ("a", "x"), "5", b"first\nline").unwrap();
    journal.put("pods", ("a", "y"), "6", b"second").unwrap();
    journal.reach("pods", "7").unwrap();
    journal.put("pods", ("a", "x"), "8", b"third").unwrap();
    journal.delete("pods", ("a", "y")).unwrap();
    journal.reach("pods", "9").unwrap();
    journal.sync().unwrap();
    journal
}

#[test]
fn the_last_record_of_an_object_counts_after_reopening() {
    let dir = Scratch::new();
    let path = dir.join("import");
    let first = filled(&path);
    let mut again = Journal::open(&path).unwrap();
    assert_eq!((&again.tables, again.live, again.written), (&first.tables, first.live, first.written));
    assert_eq!(object(&again, "x").as_deref(), Some("third"));
    assert_eq!((object(&again, "y"), again.reached("pods"), again.last()), (None, Some("9"), 9));
    assert!(!again.is_of("two").unwrap() && again.is_of("one").unwrap());
    again.lose("pods").unwrap();
    assert_eq!((again.reached("pods"), again.count_objects()), (None, 1));
    again.give_up("pods").unwrap();
    assert_eq!((again.tables().count(), again.live), (0, 0));
}

#[test]
fn a_truncated_journal_ends_after_its_last_complete_record() {
    let dir = Scratch::new();
    let path = dir.join("import");
    let whole = {
        filled(&path);
        fs::read(&path).unwrap()
    };
    let mut ends = Vec::new();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert!(journal.written <= length as u64 && fs::metadata(&path).unwrap().len() == journal.written);
        ends.push(journal.written);
        journal.is_of("one").unwrap();
        journal.put("pods", ("a", "new"), "20", b"after").unwrap();
        journal.sync().unwrap();
        assert_eq!(object(&Journal::open(&path).unwrap(), "new").as_deref(), Some("after"), "{length}");
    }
    ends.dedup();
    assert_eq!(ends.len(), 8, "nothing, and seven records");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 4;
        fs::write(&path, &changed).unwrap();
        let journal = Journal::open(&path).unwrap();
        assert!(journal.written <= at as u64, "records from a flipped bit on do not count: {at}");
    }
}

#[test]
fn rewriting_the_journal_drops_outdated_records() {
    let dir = Scratch::new();
    let path = dir.join("import");
    let mut journal = filled(&path);
    journal.outdated = 4 << 20;
    let large = vec![b'x'; 1 << 20];
    for version in 0..20 {
        journal.put("pods", ("a", "large"), &version.to_string(), &large).unwrap();
    }
    journal.sync().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 2 << 20);
    assert_eq!(object(&journal, "x").as_deref(), Some("third"));
    journal.put("pods", ("a", "z"), "99", b"last").unwrap();
    journal.sync().unwrap();
    let again = Journal::open(&path).unwrap();
    assert_eq!((object(&again, "z").as_deref(), again.reached("pods")), (Some("last"), Some("9")));
    assert_eq!(object(&again, "large").unwrap().len(), large.len());
}

#[test]
fn a_journal_of_current_records_is_not_rewritten() {
    let dir = Scratch::new();
    let path = dir.join("import");
    let mut journal = filled(&path);
    journal.outdated = 16 << 10;
    let file = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let first = file(&path);
    for number in 0..1_000 {
        journal.put("pods", ("a", &format!("{number}-{}", "n".repeat(200))), "10", b"{}").unwrap();
    }
    journal.sync().unwrap();
    assert_eq!(file(&path), first);
    for number in 0..1_000 {
        journal.delete("pods", ("a", &format!("{number}-{}", "n".repeat(200)))).unwrap();
    }
    journal.sync().unwrap();
    assert_ne!(file(&path), first);
    assert!(journal.written < 1 << 10 && object(&journal, "x").as_deref() == Some("third"));
}

#[test]
fn an_unfinished_rewrite_is_removed() {
    let dir = Scratch::new();
    let path = dir.join("import");
    drop(filled(&path));
    let beside = dir.join("import.tmp");
    fs::write(&beside, "a part").unwrap();
    let journal = Journal::open(&path).unwrap();
    assert!(!beside.exists() && object(&journal, "x").as_deref() == Some("third"));
}
