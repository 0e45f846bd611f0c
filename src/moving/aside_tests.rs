use super::*;
use crate::scratch::Scratch;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Leaves the files of a killed process.
fn killed(mut aside: Aside) {
    drop(aside.file.take());
}

#[test]
fn a_file_stays_once_the_import_is_complete() {
    let dir = Scratch::new();
    let path = dir.join("aside");
    let data_dir = dir.join("new");
    let mut aside = Aside::new(&path, &data_dir);
    aside.add("/a", 1, "why", b"x").unwrap();
    aside.add("/b", 2, "why", b"y").unwrap();
    assert!(!path.exists());
    assert_eq!(aside.finish().unwrap(), Some((path.clone(), 2)));
    aside.complete();
    drop(aside);
    assert_eq!((names(&dir), fs::read_to_string(&path).unwrap().lines().count()), (vec!["aside".to_owned()], 2));

    let mut again = Aside::new(&path, &data_dir);
    again.add("/a", 1, "why", b"x").unwrap();
    assert_eq!(again.finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    drop(again);
    assert_eq!((names(&dir), fs::read_to_string(&path).unwrap().lines().count()), (vec!["aside".to_owned()], 2));
}

#[test]
fn an_import_that_fails_leaves_no_file() {
    let dir = Scratch::new();
    let path = dir.join("aside");
    for is_named in [false, true] {
        let mut aside = Aside::new(&path, &dir.join("new"));
        aside.add("/a", 1, "why", b"x").unwrap();
        if is_named {
            aside.finish().unwrap();
        }
        drop(aside);
        assert!(names(&dir).is_empty());
    }
}

#[test]
fn the_next_import_replaces_only_the_files_of_a_killed_one() {
    let dir = Scratch::new();
    let path = dir.join("aside");
    let data_dir = dir.join("new");
    for is_named in [false, true] {
        let mut first = Aside::new(&path, &data_dir);
        first.add("/a", 1, "why", b"x").unwrap();
        let mut beside = Aside::new(&path, &data_dir);
        assert!(beside.add("/b", 1, "why", b"x").unwrap_err().to_string().contains("another import"));
        if is_named {
            first.finish().unwrap();
        }
        killed(first);
        let mut of_another = Aside::new(&path, &dir.join("another"));
        of_another.add("/c", 1, "why", b"x").unwrap();
        assert_eq!(of_another.finish().is_err(), is_named, "what it did not leave stays");
        drop(of_another);
        let mut next = Aside::new(&path, &data_dir);
        next.add("/d", 1, "why", b"x").unwrap();
        next.finish().unwrap();
        next.complete();
        assert!(fs::read_to_string(&path).unwrap().contains("/d"));
        assert_eq!(names(&dir), ["aside"]);
        fs::remove_file(&path).unwrap();
    }
    // The next import replaces the file even if it refuses nothing.
    let mut first = Aside::new(&path, &data_dir);
    first.add("/a", 1, "why", b"x").unwrap();
    first.finish().unwrap();
    killed(first);
    assert_eq!(Aside::new(&path, &data_dir).finish().unwrap(), None);
    assert!(names(&dir).is_empty());
}
