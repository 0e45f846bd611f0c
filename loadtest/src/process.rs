//! The CPU time and memory of the server's processes, from `/proc`.

use std::io;

/// Clock ticks per second in `/proc/PID/stat`: 100 on every Linux that Rust supports (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes of a server.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    /// The process ids.
    pub pids: Vec<u32>,
}

impl Processes {
    /// Returns the CPU seconds of all threads of the processes so far, in user and kernel mode. 0 without processes.
    ///
    /// # Errors
    /// Fails if a process has ended.
    pub fn cpu_seconds(&self) -> io::Result<f64> {
        self.pids.iter().map(|pid| cpu_ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat"))?)).sum()
    }

    /// Returns the resident memory of the processes in KiB.
    ///
    /// # Errors
    /// Fails if a process has ended.
    pub fn resident_kib(&self) -> io::Result<u64> {
        self.pids.iter().map(|pid| resident(&std::fs::read_to_string(format!("/proc/{pid}/status"))?)).sum()
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no {what} in /proc"))
}

fn cpu_ticks(stat: &str) -> io::Result<f64> {
    // The command name in parentheses may contain any text. The 12th and 13th words after it are utime and stime.
    let (_, words) = stat.rsplit_once(')').ok_or_else(|| invalid("command"))?;
    let ticks: Vec<u64> = words.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    match ticks[..] {
        [user, system] => Ok((user + system) as f64 / TICKS_PER_SECOND),
        _ => Err(invalid("CPU times")),
    }
}

fn resident(status: &str) -> io::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).ok_or_else(|| invalid("VmRSS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 5 0 1 2 3";
        assert!((cpu_ticks(stat).unwrap() - 2.0).abs() < 1e-9);
        assert!(cpu_ticks("nonsense").is_err());
        assert_eq!(resident("Name:\tx\nVmRSS:\t   1234 kB\n").unwrap(), 1234);
        assert!(resident("Name:\tx\n").is_err());
        let own = Processes { pids: vec![std::process::id()] };
        assert!(own.resident_kib().unwrap() > 100);
        assert!(own.cpu_seconds().unwrap() >= 0.0);
    }
}
