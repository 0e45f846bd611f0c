//! Transcripts of kubectl: compares the output of each command of a script with its output against Kubernetes.

mod normal;
mod script;

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::seq::IndexedRandom as _;
use regex::Regex;

use super::json::Json;
use super::yaml;
pub use script::Client;

/// How many commands agree, and how many were compared.
#[derive(Debug, Default, Clone, Copy)]
pub struct Commands {
    pub agree: usize,
    pub all: usize,
}

/// Finds kubectl of this release: by its name on the path, or next to `kubectl`. Returns `None` if it is not installed.
pub fn client(release: &str) -> Option<Client> {
    let folders = std::env::var("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let own = folders.iter().map(|folder| folder.join("kubectl")).find(|path| path.exists());
    folders.extend(own.as_ref().and_then(|own| own.canonicalize().ok()?.parent().map(Path::to_owned)));
    let named = folders.iter().map(|folder| folder.join(format!("kubectl.{release}")));
    named.chain(own.clone()).filter(|path| path.exists()).find_map(|path| {
        let version = version(&path)?;
        (format!("{}.{}", version.0, version.1) == release).then_some(Client { path, version })
    })
}

fn version(path: &Path) -> Option<(u64, u64)> {
    let output = Command::new(path).args(["version", "--client", "-o", "json"]).output().ok()?;
    let version = Json::parse(&output.stdout)?;
    let number = |name: &str| -> Option<u64> {
        let digits = version.get("clientVersion")?.get(name)?.as_str()?;
        digits.trim_end_matches(|each: char| !each.is_ascii_digit()).parse().ok()
    };
    Some((number("major")?, number("minor")?))
}

/// Runs all scripts, several at the same time. Returns the counts, and lines about commands that do not agree.
///
/// # Errors
/// States what cannot be read or run.
pub fn compare(
    cases: &Path,
    client: &Client,
    kubeconfig: &Path,
    addresses: &[SocketAddr],
    side_by_side: usize,
    shows_differences: bool,
) -> Result<(Commands, Vec<String>), String> {
    let text = fs::read_to_string(kubeconfig).map_err(|error| error.to_string())?;
    let kubeconfig = named(yaml::parse(&text)?, balanced(addresses).map_err(|error| error.to_string())?)
        .ok_or("the kubeconfig has no cluster or user")?;
    let folder = cases.join("kubectl");
    let mut scripts: Vec<PathBuf> =
        fs::read_dir(folder.join("scripts")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    scripts.sort();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Ok((Commands::default(), Vec::new()))));
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let one = compare_one(script, &folder, client, &kubeconfig, shows_differences);
                    let mut found = found.lock().expect("no comparison panics while it holds the lock");
                    match (&mut *found, one) {
                        (Ok((sum, lines)), Ok((one, more))) => {
                            sum.agree += one.agree;
                            sum.all += one.all;
                            lines.extend(more);
                        }
                        (Ok(_), Err(error)) => *found = Err(error),
                        (Err(_), _) => {}
                    }
                }
            });
        }
    });
    found.into_inner().expect("no comparison panics while it holds the lock")
}

/// Compares a script. Its commands wait for seconds of real time, which may be too few on a busy machine. Therefore a
/// script that does not agree runs once more, and the better result counts.
fn compare_one(
    script: &Path,
    folder: &Path,
    client: &Client,
    kubeconfig: &Json,
    shows_differences: bool,
) -> Result<(Commands, Vec<String>), String> {
    let first = run_one(script, folder, client, kubeconfig, shows_differences)?;
    if first.0.agree == first.0.all {
        return Ok(first);
    }
    let second = run_one(script, folder, client, kubeconfig, shows_differences)?;
    Ok(if second.0.agree > first.0.agree { second } else { first })
}

fn run_one(
    script: &Path,
    folder: &Path,
    client: &Client,
    kubeconfig: &Json,
    shows_differences: bool,
) -> Result<(Commands, Vec<String>), String> {
    let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let recording = folder.join("recorded").join(format!("{name}.txt"));
    let recorded = fs::read_to_string(&recording).map_err(|error| format!("{}: {error}", recording.display()))?;
    let between = Regex::new(r"(?m)^==== \d+\n").expect("a pattern");
    let recorded: Vec<&str> = between.split(&recorded).skip(1).collect();
    let printed = script::run(script, &folder.join("manifests"), client, kubeconfig)?;
    if printed.len() != recorded.len() {
        return Err(format!("{name} has {} commands, and {} are recorded", printed.len(), recorded.len()));
    }
    let (mut commands, mut lines) = (Commands::default(), Vec::new());
    for (number, (printed, recorded)) in printed.iter().zip(&recorded).enumerate() {
        let Some(printed) = printed else { continue };
        commands.all += 1;
        if printed.trim_end_matches('\n') == recorded.trim_end_matches('\n') {
            commands.agree += 1;
            continue;
        }
        lines.push(format!("{name} command {}: {}", number + 1, printed.lines().next().unwrap_or_default()));
        if shows_differences {
            lines.extend(
                recorded
                    .lines()
                    .filter(|line| !printed.lines().any(|own| own == *line))
                    .map(|line| format!("    -{line}")),
            );
            lines.extend(
                printed
                    .lines()
                    .filter(|line| !recorded.lines().any(|own| own == *line))
                    .map(|line| format!("    +{line}")),
            );
        }
    }
    Ok((commands, lines))
}

/// Returns the kubeconfig with the names that transcripts contain.
fn named(kubeconfig: Json, address: Option<SocketAddr>) -> Option<Json> {
    let first =
        |list: &str, what: &str| kubeconfig.get(list)?.as_list()?.first()?.get(what)?.as_map().map(<[_]>::to_vec);
    let (mut cluster, user) = (first("clusters", "cluster")?, first("users", "user")?);
    if let Some(address) = address {
        Json::put(&mut cluster, "server".into(), Json::Text(format!("https://{address}")));
    }
    let one = |name: &str, what: &str, of: Vec<(String, Json)>| {
        Json::List(vec![Json::Map(vec![("name".into(), Json::text(name)), (what.into(), Json::Map(of))])])
    };
    Some(Json::Map(vec![
        ("apiVersion".into(), Json::text("v1")),
        ("kind".into(), Json::text("Config")),
        ("clusters".into(), one("cluster", "cluster", cluster)),
        ("users".into(), one("operator", "user", user)),
        ("current-context".into(), Json::text("test")),
    ]))
}

/// Opens an address that forwards each connection to a random server. Returns `None` if only one server exists.
fn balanced(addresses: &[SocketAddr]) -> std::io::Result<Option<SocketAddr>> {
    if addresses.len() == 1 {
        return Ok(None);
    }
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let (own, addresses) = (listener.local_addr()?, addresses.to_vec());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Some(server) = addresses.choose(&mut rand::rng()).and_then(|server| TcpStream::connect(server).ok())
            else {
                continue;
            };
            if let (Ok(answers), Ok(questions)) = (server.try_clone(), client.try_clone()) {
                std::thread::spawn(move || passed(questions, server));
                std::thread::spawn(move || passed(answers, client));
            }
        }
    });
    Ok(Some(own))
}

fn passed(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}
