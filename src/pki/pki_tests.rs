use std::time::Duration;

use super::*;
use crate::scratch::Scratch;

fn options(dir: &Path) -> PkiOptions {
    PkiOptions::in_one(dir, &["127.0.0.1", "::1", "localhost"])
}

fn leaf(pki: &Pki, name: &str) -> Leaf {
    let spec = LeafSpec { common_name: "joe", organization: Some("dev"), names: &[], usage: Usage::Client };
    Leaf::open(pki.dir(), name, &pki.authority, &spec).unwrap()
}

fn now() -> rustls::pki_types::UnixTime {
    rustls::pki_types::UnixTime::now()
}

#[test]
fn certificates_are_kept() {
    let dir = Scratch::new();
    let first = Pki::open(options(&dir)).unwrap();
    let path = dir.join("admin.kubeconfig");
    first.write_admin_kubeconfig(&path, "https://127.0.0.1:1").unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let second = Pki::open(options(&dir)).unwrap();
    second.write_admin_kubeconfig(&path, "https://127.0.0.1:1").unwrap();
    assert_eq!(text, std::fs::read_to_string(&path).unwrap());
    assert_eq!(first.authority_pem(), second.authority_pem());
    use std::os::unix::fs::PermissionsExt;
    for secret in ["ca.key", "apiserver.key", "admin.key", "admin.kubeconfig"] {
        assert_eq!(std::fs::metadata(dir.join(secret)).unwrap().permissions().mode() & 0o777, 0o600, "{secret}");
    }
    let drafts = std::fs::read_dir(&*dir)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().contains("draft"));
    assert_eq!(drafts.count(), 0);
}

#[test]
fn a_changed_name_makes_a_new_certificate_for_the_same_key() {
    let dir = Scratch::new();
    let _ = Pki::open(options(&dir)).unwrap();
    let (cert, key) = (dir.join("apiserver.crt"), dir.join("apiserver.key"));
    let before = (std::fs::read(&cert).unwrap(), std::fs::read(&key).unwrap());
    let mut changed = options(&dir);
    changed.names.push("example.com".into());
    let _ = Pki::open(changed).unwrap();
    assert_ne!(before.0, std::fs::read(&cert).unwrap());
    assert_eq!(before.1, std::fs::read(&key).unwrap());
}

#[test]
fn many_servers_may_start_at_once() {
    let dir = Scratch::new();
    let starts: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn({
                let dir = dir.to_owned();
                move || Pki::open(options(&dir)).unwrap().authority_pem().to_owned()
            })
        })
        .collect();
    let seen: std::collections::BTreeSet<String> = starts.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(seen.len(), 1);
}

#[test]
fn foreign_and_server_certificates_are_not_trusted() {
    let (dir, other_dir) = (Scratch::new(), Scratch::new());
    let (pki, other) = (Pki::open(options(&dir)).unwrap(), Pki::open(options(&other_dir)).unwrap());
    let own = leaf(&pki, "joe").certificate().clone();
    assert_eq!(pki.client_roots().verify(std::slice::from_ref(&own), now()), Ok(()));
    let foreign = leaf(&other, "joe").certificate().clone();
    assert!(pki.client_roots().verify(&[foreign], now()).is_err());
    assert!(pki.client_roots().verify(&[], now()).is_err());
    let later = rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_secs(now().as_secs() + 400 * 86_400));
    assert!(pki.client_roots().verify(&[own], later).is_err());
    let path = pki.dir().join("apiserver.crt");
    let server = certificates(&path, &read_credential(&path).unwrap()).unwrap();
    assert!(pki.client_roots().verify(&server, now()).is_err());
}

#[test]
fn damaged_files_are_reported_and_not_overwritten() {
    let dir = Scratch::new();
    let _ = Pki::open(options(&dir)).unwrap();
    std::fs::write(dir.join("ca.key"), "nonsense").unwrap();
    let error = Pki::open(options(&dir)).unwrap_err().to_string();
    assert!(error.contains("ca.key"), "{error}");
    assert_eq!(std::fs::read_to_string(dir.join("ca.key")).unwrap(), "nonsense");
    std::fs::remove_file(dir.join("ca.key")).unwrap();
    assert!(Pki::open(options(&dir)).unwrap_err().to_string().contains("ca.key"));
}
