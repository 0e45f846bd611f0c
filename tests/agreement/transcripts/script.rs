//! Reads and runs scripts of kubectl commands.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rand::Rng as _;
use regex::Regex;

use super::normal::Normal;
use crate::json::Json;
use crate::normal::escaped;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Functions that commands may use besides programs of the system.
const PRELUDE: &str = r#"set -o pipefail
eventually() { local i o; for i in $(seq 240); do if o=$("$@" 2>&1); then printf '%s\n' "$o"; return 0; fi; sleep 0.25; done; printf '%s\n' "$o"; return 1; }
y() { printf -- '---\n%s\n' "$1"; }
becomes() { local i o w=$1; shift; for i in $(seq 240); do o=$("$@" 2>&1); [ "$o" = "$w" ] && break; sleep 0.25; done; printf '%s\n' "$o"; [ "$o" = "$w" ]; }
"#;
const SETTLED: &str = "kubectl create namespace $NS; for i in $(seq 600); do kubectl get serviceaccount/default \
    configmap/kube-root-ca.crt >/dev/null 2>&1 && break; sleep 0.1; done";
/// Deletes objects that would never disappear without nodes and volume controllers.
const CLEARED: &str = "kubectl delete namespace $NS --wait=false; kubectl delete pods --all --force --grace-period=0 \
    --wait=false; for c in $(kubectl get pvc -o name); do kubectl patch $c -p '{\"metadata\":{\"finalizers\":null}}'; done";

/// One command with its annotations.
struct Block {
    text: String,
    /// The oldest release that has the command.
    since: (u64, u64),
    is_sorted: bool,
    is_quiet: bool,
}

/// The kubectl that runs the commands: its path and its version.
pub struct Client {
    pub path: PathBuf,
    pub version: (u64, u64),
}

/// The folders and variables of a running script.
struct Place {
    root: PathBuf,
    namespace: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Runs a script. Returns the output of each command. The output is `None` for a command that this kubectl does not
/// have.
///
/// # Errors
/// States why the script cannot run.
pub fn run(script: &Path, manifests: &Path, client: &Client, kubeconfig: &Json) -> Result<Vec<Option<String>>, String> {
    let with_path = |error: std::io::Error| format!("{}: {error}", script.display());
    let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (blocks, generated) = blocks(&fs::read_to_string(script).map_err(with_path)?);
    let number: u32 = rand::rng().random_range(0..1_000_000);
    let place = Place {
        root: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("transcript-{name}-{number:06}")),
        namespace: format!("k-{}-{number:06}", name.chars().take(30).collect::<String>()),
    };
    place.prepare(manifests, client, kubeconfig).map_err(with_path)?;
    let server = path_of(kubeconfig, &["clusters", "cluster", "server"]).trim_end_matches('/').to_owned();
    let folder = place.root.join("work").display().to_string();
    let mut normal = Normal::new(place.namespace.clone(), server, folder, generated);
    place.command(SETTLED).map_err(with_path)?;
    // Removes the discovery cache, so that the commands start without one.
    fs::remove_dir_all(place.root.join("home"))
        .and_then(|()| fs::create_dir(place.root.join("home")))
        .map_err(with_path)?;
    let mut printed = Vec::new();
    for block in blocks {
        if client.version < block.since {
            printed.push(None);
            continue;
        }
        let (output, errors, end) = place.command(&block.text).map_err(with_path)?;
        let (mut output, mut errors) = (normal.text(&output), normal.text(&errors));
        if block.is_sorted && !output.is_empty() {
            let mut lines: Vec<&str> = output.trim_end_matches('\n').split('\n').collect();
            lines.sort_unstable();
            output = lines.join("\n") + "\n";
        }
        if block.is_quiet {
            output.clear();
            errors.clear();
        }
        printed.push(Some(transcript(&block.text, &output, &errors, &end)));
    }
    place.command(CLEARED).map_err(with_path)?;
    Ok(printed)
}

fn transcript(command: &str, output: &str, errors: &str, end: &str) -> String {
    let line = |text: &str| if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let mut out = format!("$ {}\n{output}{}", command.replace('\n', "\n> "), line(output));
    if !errors.is_empty() {
        out.push_str(&format!("---- stderr\n{errors}{}", line(errors)));
    }
    if end != "0" {
        out.push_str(&format!("---- exit {end}\n"));
    }
    out
}

fn path_of<'a>(kubeconfig: &'a Json, path: &[&str; 3]) -> &'a str {
    let first = kubeconfig.get(path[0]).and_then(Json::as_list).and_then(<[_]>::first);
    first.and_then(|first| first.get(path[1])?.get(path[2])?.as_str()).unwrap_or_default()
}

/// Returns the commands of a script, and the prefixes of generated names.
fn blocks(text: &str) -> (Vec<Block>, Vec<String>) {
    static BETWEEN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\n\s*\n").expect("a pattern"));
    let (mut blocks, mut generated) = (Vec::new(), Vec::new());
    for part in BETWEEN.split(text.trim()) {
        let lines: Vec<&str> = part.split('\n').collect();
        let marks = lines.iter().take_while(|line| line.starts_with('#')).count();
        let mut block = Block { text: lines[marks..].join("\n"), since: (0, 0), is_sorted: false, is_quiet: false };
        for mark in lines[..marks].iter().map(|line| line.trim_start_matches('#').trim()) {
            if let Some(version) = mark.strip_prefix("kubectl>=") {
                let (major, minor) = version.trim().split_once('.').unwrap_or((version, "0"));
                block.since = block.since.max((major.parse().unwrap_or(0), minor.parse().unwrap_or(0)));
            } else if let Some(beginning) = mark.strip_prefix("generated:") {
                generated.push(beginning.trim().to_owned());
            }
            block.is_sorted |= mark.starts_with("sorted");
            block.is_quiet |= mark.starts_with("quiet");
        }
        if marks < lines.len() {
            blocks.push(block);
        }
    }
    (blocks, generated)
}

impl Place {
    fn prepare(&self, manifests: &Path, client: &Client, kubeconfig: &Json) -> std::io::Result<()> {
        for folder in ["home", "bin", "work"] {
            fs::create_dir_all(self.root.join(folder))?;
        }
        let program = self.root.join("bin/kubectl");
        fs::write(&program, format!("#!/bin/bash\nexec -a kubectl {} \"$@\"\n", client.path.display()))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        fs::write(self.root.join("prelude"), PRELUDE)?;
        let context =
            format!("{{\"cluster\": \"cluster\", \"user\": \"operator\", \"namespace\": \"{}\"}}", self.namespace);
        let mut members = kubeconfig.as_map().unwrap_or_default().to_vec();
        let contexts = format!("[{{\"name\": \"test\", \"context\": {context}}}]");
        Json::put(&mut members, "contexts".into(), Json::parse(contexts.as_bytes()).unwrap_or(Json::Null));
        fs::write(self.root.join("config"), Json::Map(members).dump())?;
        copy(manifests, &self.root.join("work/manifests"))
    }

    /// Runs a command. Returns its output, its error output, and its exit status as a text.
    fn command(&self, text: &str) -> std::io::Result<(String, String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let inside = |name: &str| self.root.join(name).display().to_string();
        let mut child = Command::new("bash")
            .args(["-c", text])
            .env_clear()
            .env("PATH", format!("{}:{path}", inside("bin")))
            .env("HOME", inside("home"))
            .env("KUBECONFIG", inside("config"))
            .env("NS", &self.namespace)
            .env("FLAT", self.namespace.replace('-', ""))
            .env("TMPDIR", inside("work"))
            .envs([("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("TERM", "dumb")])
            .env("BASH_ENV", inside("prelude"))
            .current_dir(self.root.join("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (output, errors) = (gathered(child.stdout.take()), gathered(child.stderr.take()));
        let deadline = Instant::now() + LIMIT;
        let end = ended(&mut child, deadline)?;
        let read = |from: &Receiver<Vec<u8>>| from.recv_timeout(deadline - Instant::now().min(deadline)).ok();
        let whole = (end, read(&output), read(&errors));
        if let (Some(end), Some(output), Some(errors)) = &whole {
            return Ok((escaped(output), escaped(errors), end.clone()));
        }
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
        let _ = child.wait();
        let rest = |read: Option<Vec<u8>>, from: &Receiver<Vec<u8>>| {
            escaped(&read.or_else(|| from.recv_timeout(LIMIT).ok()).unwrap_or_default())
        };
        let end = format!("none, not finished after {} s", LIMIT.as_secs());
        Ok((rest(whole.1, &output), rest(whole.2, &errors), end))
    }
}

/// Waits for the end of a process. Returns its exit status. Returns `None` at the deadline.
fn ended(child: &mut Child, deadline: Instant) -> std::io::Result<Option<String>> {
    use std::os::unix::process::ExitStatusExt as _;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
            return Ok(Some(code.to_string()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(None)
}

/// Reads everything to the end, on a new thread.
fn gathered(from: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (done, all) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.map(|mut from| from.read_to_end(&mut bytes));
        let _ = done.send(bytes);
    });
    all
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
