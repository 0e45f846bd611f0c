//! The process and its build.

use rustix::process::Resource;
use rustix::time::ClockId;

use crate::discovery;
use crate::prometheus::Page;
use crate::version;
use crate::wall_clock;

/// Measures the process.
#[derive(Debug)]
pub struct Process {
    started: f64,
}

impl Process {
    /// Begins to measure now.
    pub fn begin() -> Self {
        Self { started: wall_clock::unix_seconds() }
    }

    /// Appends the metrics of the process. Leaves out those that the operating system does not provide.
    pub fn write(&self, page: &mut Page) {
        let seconds = processor_seconds();
        page.counter("process_cpu_seconds_total", "Time on processors, in seconds.").sample(&[], seconds);
        page.gauge("process_start_time_seconds", "When the process started, in seconds since 1970.")
            .sample(&[], self.started);
        if let Some((virtual_bytes, resident_bytes)) = memory() {
            page.gauge("process_virtual_memory_bytes", "Virtual memory, in bytes.").sample(&[], virtual_bytes);
            page.gauge("process_resident_memory_bytes", "Resident memory, in bytes.").sample(&[], resident_bytes);
        }
        if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
            page.gauge("process_open_fds", "Open files and sockets.").sample(&[], entries.count() as f64);
        }
        if let Some(most) = rustix::process::getrlimit(Resource::Nofile).current {
            page.gauge("process_max_fds", "Most files and sockets that may be open.").sample(&[], most as f64);
        }
        build(page);
    }
}

/// Returns the time on processors since the process started, in seconds.
pub fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns virtual and resident memory, in bytes (proc(5), `/proc/pid/statm`).
pub fn memory() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_ascii_whitespace().map(|pages| pages.parse::<f64>().ok());
    let page_bytes = rustix::param::page_size() as f64;
    Some((pages.next()?? * page_bytes, pages.next()?? * page_bytes))
}

fn build(page: &mut Page) {
    let document = discovery::version::document(version::GIT_VERSION);
    let text = |member| document.str_at(&[member]);
    let labels = [
        ("build_date", text("buildDate")),
        ("compiler", text("compiler")),
        ("git_commit", text("gitCommit")),
        ("git_tree_state", text("gitTreeState")),
        ("git_version", text("gitVersion")),
        ("go_version", text("goVersion")),
        ("major", text("major")),
        ("minor", text("minor")),
        ("platform", text("platform")),
    ];
    page.gauge("kubernetes_build_info", "1, labelled with what was built, and of what.").sample(&labels, 1.0);
}
