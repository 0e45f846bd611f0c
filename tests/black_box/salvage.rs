//! A backup from the data directory of one member, when the other members are lost.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::cluster::{Places, read, until, write};
use crate::program::{errors, flotilla, successful};
use crate::support::{CONFIG_MAPS, DataDir, Server, revision};

const SHARDS: &str = "configmaps=3";
const OBJECTS: usize = 60;

/// Makes a backup from a data directory.
fn salvage(directory: &DataDir, to: &Path) -> Output {
    flotilla(&["backup"], &[("--data-dir", &directory.path()), ("--to", to)])
}

fn names() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("kept-{number}"))
}

#[test]
fn a_backup_of_one_member_restores_a_lost_cluster() {
    let mut places = Places::new();
    places.more = ["--shards", SHARDS].map(str::to_owned).to_vec();
    let servers = places.start_all();
    for (number, name) in names().enumerate() {
        write(&servers[number % 3], &name);
    }
    // A member that answers this read has applied every write.
    let last = revision(&servers[1].connect().read(CONFIG_MAPS));
    let survivor = &places.directories[1];
    let backup = survivor.path().with_file_name("salvaged");
    let busy = salvage(survivor, &backup);
    let error = errors(&busy);
    assert!(busy.status.code() == Some(1) && error.contains("in use by another process"), "{error}");
    servers.into_iter().for_each(Server::kill);

    successful(salvage(survivor, &backup));
    assert!(!survivor.path().with_file_name("salvaged.data").exists());
    let alone = DataDir::new();
    successful(flotilla(&["restore"], &[("--from", &backup), ("--data-dir", &alone.path())]));
    let server = alone.start_with(&["--shards", SHARDS]);
    names().for_each(|name| read(&server, &name));
    assert!(revision(&server.connect().get(CONFIG_MAPS).expect(200)) > last);

    // The data directory is unchanged: with another member that returns, the cluster continues.
    let servers = [1, 2].map(|member| places.begin(member));
    for server in &servers {
        until("the server is ready", || server.connect().get("/readyz").status == 200);
        names().for_each(|name| read(server, &name));
    }
    write(&servers[0], "after");
}

#[test]
fn salvage_refuses_a_directory_without_a_store() {
    let nothing = DataDir::new();
    fs::create_dir_all(nothing.path()).expect("a directory");
    let refused = salvage(&nothing, &nothing.path().with_file_name("salvaged"));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && error.contains("is no data directory"), "{error}");
    assert!(fs::read_dir(nothing.path()).expect("a directory").next().is_none(), "the directory stays empty");
}
