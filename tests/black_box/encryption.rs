//! Encryption of the data directory by the keys of `--encryption-provider-config`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::backup::{beside, restore};
use crate::cluster::{Places, read, until, write};
use crate::program::{errors, flotilla, successful};
use crate::support::{CONFIG_MAPS, DataDir, Server, config_map, config_map_path};

const FLAG: &str = "--encryption-provider-config";
/// A text that objects contain. It must not be readable on an encrypted disk.
const WORD: &str = "something-that-nobody-may-read";

/// Writes a configuration in which secrets have these providers in order: `identity`, or a provider with the name of
/// its key.
fn configuration(path: &Path, providers: &[(&str, &str)]) -> String {
    let providers = providers.iter().map(|(provider, key)| match *provider {
        "identity" => json!({"identity": {}}),
        // a key whose base64 form begins with its name
        _ => json!({*provider: {"keys": [{"name": key, "secret": base64_of_32(key)}]}}),
    });
    let rule = json!({"resources": ["secrets"], "providers": providers.collect::<Vec<_>>()});
    let kind = "EncryptionConfiguration";
    let whole = json!({"kind": kind, "apiVersion": "apiserver.config.k8s.io/v1", "resources": [rule]});
    fs::write(path, whole.to_string()).expect("a file");
    path.display().to_string()
}

/// Returns a key of 32 bytes in base64. The text begins with the name.
fn base64_of_32(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric).chain(std::iter::repeat('A'));
    letters.take(42).chain(['A', '=']).collect()
}

/// Returns the files below a directory in which the word can be read.
fn readable(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let has_word = |path: &PathBuf| {
        let bytes = fs::read(path).expect("a file");
        bytes.windows(WORD.len()).any(|part| part == WORD.as_bytes())
    };
    let below = directories.iter().flat_map(|directory| readable(directory));
    files.into_iter().filter(has_word).chain(below).collect()
}

fn has_object(server: &Server, name: &str) {
    let found = server.connect().get(&config_map_path(name)).expect(200);
    assert_eq!(found["data"]["value"], WORD, "{found}");
}

fn make_object(server: &Server, name: &str) {
    server.connect().create(CONFIG_MAPS, &config_map(name, WORD));
}

#[test]
fn the_data_directory_follows_the_configured_keys() {
    let directory = DataDir::new();
    let file = beside(&directory, "encryption.yaml");
    let steps: [(&[(&str, &str)], bool); 6] = [
        (&[("identity", "")], false),
        (&[("aescbc", "old"), ("identity", "")], true),
        (&[("aescbc", "old"), ("secretbox", "new")], true),
        (&[("secretbox", "new"), ("aescbc", "old")], true),
        (&[("secretbox", "new")], true),
        (&[("identity", ""), ("secretbox", "new")], false),
    ];
    for (step, (providers, is_encrypted)) in steps.iter().enumerate() {
        let server = directory.start_with(&[FLAG, &configuration(&file, providers)]);
        (0..step).for_each(|earlier| has_object(&server, &format!("object-{earlier}")));
        make_object(&server, &format!("object-{step}"));
        // The disk is checked after SIGKILL in one step, and after SIGTERM in the next.
        if step % 2 == 0 {
            server.kill()
        } else {
            assert!(server.terminate().success())
        }
        assert_eq!(readable(&directory.path()).is_empty(), *is_encrypted, "{:?}", readable(&directory.path()));
    }
    let server = directory.start();
    (0..steps.len()).for_each(|step| has_object(&server, &format!("object-{step}")));
}

#[test]
fn without_its_keys_an_encrypted_server_does_not_start_and_changes_nothing() {
    let directory = DataDir::new();
    let file = beside(&directory, "encryption.yaml");
    let right = |providers: &[(&str, &str)]| configuration(&file, providers);
    let server = directory.start_with(&[FLAG, &right(&[("aesgcm", "mine"), ("identity", "")])]);
    make_object(&server, "object");
    server.kill();
    let refused = directory.try_start().err().expect("a refusal");
    assert!(refused.messages.contains("the file is encrypted, and no keys are configured"), "{}", refused.messages);
    let other = right(&[("aesgcm", "other"), ("identity", "")]);
    let refused = directory.try_start_with(&[FLAG, &other]).err().expect("a refusal");
    assert!(
        refused.messages.contains("encrypted by aesgcm:v1 with the key \"mine\""),
        "the key is named: {}",
        refused.messages
    );
    for (text, part) in [
        ("kind: Config", "its kind is not EncryptionConfiguration"),
        (
            "kind: EncryptionConfiguration\nresources: [{resources: [secrets], providers: [{identity: {}}]}]",
            "apiVersion",
        ),
        ("{", "is no YAML"),
    ] {
        fs::write(&file, text).expect("a file");
        let refused = directory.try_start_with(&[FLAG, &file.display().to_string()]).err().expect("a refusal");
        assert!(refused.code == Some(2) && refused.messages.contains(part), "{text}: {refused:?}");
    }
    has_object(&directory.start_with(&[FLAG, &right(&[("aesgcm", "mine")])]), "object");
}

#[test]
fn an_encrypted_cluster_loses_nothing_and_its_members_can_be_salvaged() {
    let mut places = Places::new();
    let file = beside(&places.directories[0], "encryption.yaml");
    let keys = configuration(&file, &[("secretbox", "ours")]);
    places.more = [FLAG, &keys].map(str::to_owned).to_vec();
    let servers = places.start_all();
    make_object(&servers[0], "word");
    let names = (0..30).map(|number| format!("kept-{number}")).collect::<Vec<_>>();
    for (number, name) in names.iter().enumerate() {
        write(&servers[number % 3], name);
    }
    // A member that answers this read has applied every write.
    servers[2].connect().read(CONFIG_MAPS);
    servers.into_iter().for_each(Server::kill);
    for directory in &places.directories {
        assert!(readable(&directory.path()).is_empty(), "{:?}", readable(&directory.path()));
    }

    let salvaged = places.directories[2].path().with_file_name("salvaged");
    let paths: [(&str, &Path); 2] = [("--data-dir", &places.directories[2].path()), ("--to", &salvaged)];
    let locked = errors(&flotilla(&["backup"], &paths));
    assert!(locked.contains("the file is encrypted, and no keys are configured"), "{locked}");
    successful(flotilla(&["backup"], &[&paths[..], &[(FLAG, &file)]].concat()));
    let alone = DataDir::new();
    successful(restore(&salvaged, &alone));
    let server = alone.start_with(&[FLAG, &keys]);
    names.iter().for_each(|name| read(&server, name));
    has_object(&server, "word");
    assert!(server.terminate().success());
    assert!(readable(&alone.path()).is_empty(), "what was restored is encrypted when the server has started");

    let servers = [0, 1].map(|member| places.begin(member));
    for server in &servers {
        until("the server is ready", || server.connect().get("/readyz").status == 200);
        names.iter().for_each(|name| read(server, name));
    }
}
