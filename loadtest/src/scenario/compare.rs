//! Compares runs: ratios of their figures, and which of these exceed the noise of repeated runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::result::{Operation, RunResult};
use crate::report::span;

/// Quantiles of Student's t-distribution for a two-sided interval of 95%, for 1 and more degrees of freedom. The last
/// one also stands for all larger numbers.
const STUDENT: [f64; 30] = [
    12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The difference exceeds the noise of repeated runs, and B is better.
    Better,
    /// The difference exceeds the noise of repeated runs, and B is worse.
    Worse,
    /// The difference does not exceed the noise of repeated runs.
    Noise,
    /// One side has a single run, so the noise is not known.
    Unknown,
}

/// One figure of both sides.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name of the operation.
    pub operation: String,
    /// The name of the figure.
    pub figure: &'static str,
    /// The means over the runs of A and of B.
    pub values: [f64; 2],
    /// The mean of B divided by that of A.
    pub ratio: f64,
    /// The factor within which the ratio is known, with a confidence of 95%. `None` if a side has a single run.
    pub within: Option<f64>,
    /// The result of the comparison.
    pub verdict: Verdict,
}

/// A figure of an operation: its name, whether more is better, and how it is read.
type Figure = (&'static str, bool, fn(&RunResult, &Operation) -> f64);

/// The figures of operations that are compared.
const FIGURES: &[Figure] = &[
    ("per second", true, |run, operation| operation.count as f64 / run.counted_seconds()),
    ("p50", false, |_, operation| operation.latency.p50 as f64),
    ("p90", false, |_, operation| operation.latency.p90 as f64),
    ("p99", false, |_, operation| operation.latency.p99 as f64),
    ("p99.9", false, |_, operation| operation.latency.p999 as f64),
];

/// A figure of a whole run: its name and how it is read.
type Whole = (&'static str, fn(&RunResult) -> Option<f64>);

/// The figures of whole runs that are compared.
const WHOLE: &[Whole] = &[
    ("CPU seconds", server_cpu_seconds),
    ("memory MB", |run| {
        let most = run.samples.iter().filter_map(|sample| sample.server_resident_bytes).max()?;
        Some(most as f64 / 1e6)
    }),
];

/// Returns the CPU seconds that the server used during the phases.
pub fn server_cpu_seconds(run: &RunResult) -> Option<f64> {
    let mut known = run.samples.iter().filter_map(|sample| sample.server_cpu_seconds);
    let first = known.next()?;
    Some(known.next_back()? - first)
}

/// Compares all operations that both sides have.
pub fn compare(a: &[RunResult], b: &[RunResult]) -> Vec<Row> {
    let names = |runs: &[RunResult]| -> BTreeSet<String> {
        runs.iter().flat_map(|run| run.operations.keys().cloned()).collect()
    };
    let mut rows = Vec::new();
    for name in names(a).intersection(&names(b)) {
        for (figure, more_is_better, value) in FIGURES {
            let values = |runs: &[RunResult]| -> Vec<f64> {
                let of = |run: &RunResult| run.operations.get(name).filter(|it| it.count > 0).map(|it| value(run, it));
                runs.iter().filter_map(of).collect()
            };
            rows.extend(row(name, figure, *more_is_better, [values(a), values(b)]));
        }
    }
    for (figure, value) in WHOLE {
        let values = |runs: &[RunResult]| -> Vec<f64> { runs.iter().filter_map(value).collect() };
        rows.extend(row("server", figure, false, [values(a), values(b)]));
    }
    rows
}

/// Compares the logarithms of figures by Welch's test, because times vary by factors.
fn row(operation: &str, figure: &'static str, more_is_better: bool, sides: [Vec<f64>; 2]) -> Option<Row> {
    let logs = sides.clone().map(|side| side.into_iter().filter(|value| *value > 0.0).map(f64::ln).collect::<Vec<_>>());
    if logs.iter().any(Vec::is_empty) {
        return None;
    }
    let [a, b] = [moments(&logs[0]), moments(&logs[1])];
    let difference = b.0 - a.0;
    let within = (logs.iter().all(|side| side.len() > 1)).then(|| {
        let parts =
            [(a, logs[0].len()), (b, logs[1].len())].map(|((_, variance), count)| (variance / count as f64, count));
        let error = parts.iter().map(|(part, _)| part).sum::<f64>();
        let spread: f64 = parts.iter().map(|(part, count)| part * part / (*count as f64 - 1.0)).sum();
        // Degrees of freedom of two sides with different variances (Welch and Satterthwaite).
        let freedom = if spread > 0.0 { (error * error / spread).floor().max(1.0) as usize } else { STUDENT.len() };
        STUDENT[freedom.min(STUDENT.len()) - 1] * error.sqrt()
    });
    let is_better = (difference > 0.0) == more_is_better;
    let verdict = match within {
        None => Verdict::Unknown,
        Some(within) if difference.abs() <= within.max(f64::EPSILON) => Verdict::Noise,
        Some(_) if is_better => Verdict::Better,
        Some(_) => Verdict::Worse,
    };
    let values = sides.map(|side| side.iter().sum::<f64>() / side.len() as f64);
    Some(Row {
        operation: operation.into(),
        figure,
        values,
        ratio: difference.exp(),
        within: within.map(f64::exp),
        verdict,
    })
}

/// Returns mean and variance of a sample.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, squares / (count - 1.0).max(1.0))
}

/// Formats a value in the unit of its figure.
pub fn formatted(figure: &str, value: f64) -> String {
    if figure.starts_with('p') && figure != "per second" { span(value.round() as u64) } else { format!("{value:.1}") }
}

/// Returns a table for a terminal.
pub fn text(a: &[RunResult], b: &[RunResult]) -> String {
    let rows = compare(a, b);
    let mut text = format!("A: {}\nB: {}\n\n", side(a), side(b));
    let width = rows.iter().map(|row| row.operation.len()).max().unwrap_or(0).max(9);
    let _ = writeln!(text, "{:<width$}  {:<11}  {:>10}  {:>10}  {:>7}  ", "operation", "figure", "A", "B", "B/A");
    for row in &rows {
        let [a, b] = row.values.map(|value| formatted(row.figure, value));
        let said = match (row.verdict, row.within) {
            (Verdict::Unknown, _) | (_, None) => "one run on a side: the noise is unknown, repeat the run".into(),
            (Verdict::Noise, Some(within)) => format!("within noise (x{within:.2})"),
            (Verdict::Better, Some(within)) => format!("BETTER, noise is x{within:.2}"),
            (Verdict::Worse, Some(within)) => format!("WORSE, noise is x{within:.2}"),
        };
        let (operation, figure, ratio) = (&row.operation, row.figure, row.ratio);
        let _ = writeln!(text, "{operation:<width$}  {figure:<11}  {a:>10}  {b:>10}  {ratio:>6.2}x  {said}");
    }
    text
}

fn side(runs: &[RunResult]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let errors: u64 = runs.iter().map(RunResult::errors_total).sum();
    let broken: u64 = runs.iter().map(|run| run.checks.violations.total()).sum();
    let count = runs.len();
    format!("{} against {}, {count} runs, {errors} errors, {broken} promises broken", first.scenario, first.server)
}

#[cfg(test)]
mod tests {
    use super::super::merge::tests::taking;
    use super::*;

    /// Returns runs in which all requests took this many microseconds.
    fn runs(times: &[u64]) -> Vec<RunResult> {
        times.iter().map(|micros| taking(std::iter::repeat_n(*micros, 100))).collect()
    }

    fn verdict(a: &[u64], b: &[u64]) -> Verdict {
        compare(&runs(a), &runs(b)).iter().find(|row| row.figure == "p99").unwrap().verdict
    }

    #[test]
    fn a_difference_counts_if_it_exceeds_the_noise() {
        assert_eq!(verdict(&[1_000, 1_010, 990], &[500, 510, 505]), Verdict::Better);
        assert_eq!(verdict(&[500, 510, 505], &[1_000, 1_010, 990]), Verdict::Worse);
        assert_eq!(verdict(&[1_000, 2_000, 500], &[600, 1_500, 900]), Verdict::Noise);
        assert_eq!(verdict(&[1_000, 1_000], &[1_000, 1_000]), Verdict::Noise);
        assert_eq!(verdict(&[1_000], &[500, 500]), Verdict::Unknown);
    }

    #[test]
    fn ratios_are_of_b_to_a() {
        let rows = compare(&runs(&[1_000]), &runs(&[500]));
        let p50 = rows.iter().find(|row| row.figure == "p50").unwrap();
        assert!((p50.ratio - 0.5).abs() < 0.01, "{p50:?}");
        let text = text(&runs(&[1_000, 1_001]), &runs(&[500, 501]));
        assert!(text.contains("0.50x  BETTER"), "{text}");
    }
}
