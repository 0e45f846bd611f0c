//! Samples of CPU time and memory: of the server, from `/proc` or its `/metrics`, and of the harness.

use super::result::Sample;
use super::run::Run;
use crate::connection::Call;
use crate::process::Processes;

/// Takes samples.
pub struct Sampler {
    server: Processes,
    own: Processes,
}

impl Sampler {
    /// Reads `/proc` if `server` has process ids on this machine, and otherwise the server's `/metrics`.
    pub fn new(server: Processes) -> Self {
        Self { server, own: Processes { pids: vec![std::process::id()] } }
    }

    /// Takes one sample.
    pub async fn look(&self, run: &Run) -> Sample {
        let at = run.seconds();
        let (server_cpu_seconds, server_resident_bytes) = match self.server.pids[..] {
            [] => by_metrics(run).await,
            _ => (self.server.cpu_seconds().ok(), self.server.resident_kib().ok().map(|kib| kib * 1024)),
        };
        Sample {
            at,
            server_cpu_seconds,
            server_resident_bytes,
            own_cpu_seconds: self.own.cpu_seconds().unwrap_or(0.0),
            own_resident_bytes: self.own.resident_kib().unwrap_or(0) * 1024,
            watches: run.watches.get(),
        }
    }
}

/// Reads CPU seconds and resident bytes from the server's `/metrics`.
async fn by_metrics(run: &Run) -> (Option<f64>, Option<u64>) {
    let Ok(answer) = run.must(&Call::get("/metrics").accepting("text/plain").keeping_body(), &[]).await else {
        return (None, None);
    };
    let text = String::from_utf8_lossy(&answer.body);
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<f64>().ok())
    };
    (value("process_cpu_seconds_total"), value("process_resident_memory_bytes").map(|bytes| bytes as u64))
}
