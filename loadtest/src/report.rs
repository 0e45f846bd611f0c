//! The figures of a run, as text or JSON.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::limits;

/// Percentiles of a latency, in microseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Latency {
    /// The arithmetic mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The largest value.
    pub max_us: u64,
}

/// Returns an empty histogram for latencies in microseconds, with a precision of three digits.
pub fn histogram() -> Histogram<u64> {
    // The library accepts these constant bounds. An auto-resizing histogram accepts any value.
    Histogram::new_with_bounds(1, limits::LATENCY_MICROS_MAX, 3)
        .unwrap_or_else(|_| Histogram::new(3).expect("3 digits"))
}

impl From<&Histogram<u64>> for Latency {
    fn from(histogram: &Histogram<u64>) -> Self {
        Self {
            mean_us: (histogram.mean() * 10.0).round() / 10.0,
            p50_us: histogram.value_at_quantile(0.5),
            p90_us: histogram.value_at_quantile(0.9),
            p99_us: histogram.value_at_quantile(0.99),
            max_us: histogram.max(),
        }
    }
}

/// The figures of one row. A figure that was not measured is `None`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// The name of the row.
    pub row: String,
    /// The number of concurrent clients.
    pub clients: usize,
    /// The number of operations: requests, pairs of requests, or deliveries.
    pub operations: u64,
    /// The wall-clock time in seconds.
    pub seconds: f64,
    /// Operations per second.
    pub per_second: f64,
    /// The CPU time of the server's processes per operation, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// The server's share of one core, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_percent: Option<f64>,
    /// The time from a request to the end of its answer, or the time of a delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The time from a request to the first byte of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Latency>,
    /// The bytes of answers per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The resident memory of the server's processes at the end, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_kib: Option<u64>,
    /// How far the resident memory rose above its value at the start of the row, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_growth_kib: Option<i64>,
    /// The resident memory per pod, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_kib_per_pod: Option<f64>,
    /// The number of requests that failed or had a status other than a success.
    pub errors: u64,
    /// The first error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}

impl Figures {
    /// Returns a line for a terminal.
    pub fn text(&self) -> String {
        let mut line = format!("{:<16}", self.row);
        let mut add = |part: String| {
            line.push_str("  ");
            line.push_str(&part);
        };
        if let Some(cpu) = self.cpu_us {
            add(if cpu >= 10_000.0 { format!("cpu {:.1} ms/op", cpu / 1000.0) } else { format!("cpu {cpu:.1} us/op") });
        }
        if let Some(percent) = self.core_percent {
            add(format!("core {percent:.1}%"));
        }
        if let Some(latency) = &self.latency {
            let [p50, p90, p99, max] = [latency.p50_us, latency.p90_us, latency.p99_us, latency.max_us].map(span);
            add(format!("p50 {p50} p90 {p90} p99 {p99} max {max}"));
        }
        if let Some(first) = &self.first_byte {
            add(format!("first byte p50 {}", span(first.p50_us)));
        }
        if self.operations > 0 {
            add(format!("{:.1}/s", self.per_second));
            add(format!("n {} in {:.1} s, {} clients", self.operations, self.seconds, self.clients));
        }
        if let Some(bytes) = self.bytes {
            add(format!("{bytes} B/op"));
        }
        if let Some(resident) = self.resident_kib {
            add(format!("rss {:.1} MB", resident as f64 / 1024.0));
        }
        if let Some(growth) = self.resident_growth_kib {
            add(format!("rss {:+.1} MB", growth as f64 / 1024.0));
        }
        if let Some(pod) = self.resident_kib_per_pod {
            add(format!("{pod:.1} KB/pod"));
        }
        if self.errors > 0 {
            add(format!("ERRORS {}: {}", self.errors, self.first_error.as_deref().unwrap_or("")));
        }
        line
    }
}

/// Returns a time in a readable unit.
pub fn span(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_fitting_units() {
        let mut times = histogram();
        for micros in [900, 1_500, 2_500_000] {
            times.record(micros).unwrap();
        }
        let figures = Figures {
            row: "get".into(),
            clients: 2,
            operations: 3,
            seconds: 1.5,
            per_second: 2.0,
            cpu_us: Some(12_345.6),
            latency: Some(Latency::from(&times)),
            errors: 1,
            first_error: Some("500".into()),
            ..Figures::default()
        };
        let text = figures.text();
        for part in ["cpu 12.3 ms/op", "p50 1.50 ms", "max 2.50 s", "2.0/s", "n 3 in 1.5 s", "ERRORS 1: 500"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = serde_json::to_value(&figures).unwrap();
        assert_eq!(json["latency"]["p50_us"], 1500);
        assert!(json.get("resident_kib").is_none());
    }
}
