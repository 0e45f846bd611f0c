//! A report as one self-contained HTML page, without scripts.

use std::fmt::Write as _;

use super::amounts::{bytes, count_tick, grouped, percent_tick, share, time_tick};
use super::compare::server_cpu_seconds;
use super::recovery::{Recovery, recoveries};
use super::result::{Operation, RunResult, Since, Window};
use super::summary::{lateness, verdict};
use super::svg::{Chart, Scale, Series, escaped, trimmed};
use crate::report::span;

const STYLE: &str = include_str!("report.css");

/// A chart with more lines would be unreadable.
const LINES_MAX: usize = 8;

/// Returns the page.
pub fn page(result: &RunResult) -> String {
    let mut body = String::new();
    head(&mut body, result);
    tiles(&mut body, result);
    body.push_str(r#"<section class="charts">"#);
    for figure in [
        latency_over_time(result, 0.5, "Median latency over time"),
        latency_over_time(result, 0.99, "99th percentile of latency over time"),
        percentile_curves(result),
        throughput(result),
        errors_over_time(result),
        processor(result),
        memory(result),
        watches(result),
    ] {
        body.push_str(&figure);
    }
    body.push_str("</section>");
    table(&mut body, result);
    checks(&mut body, result);
    definition(&mut body, result);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{} against {}</title>\
         <style>{STYLE}</style></head><body><main>{body}</main></body></html>\n",
        escaped(&result.scenario),
        escaped(&result.server),
    )
}

fn head(body: &mut String, result: &RunResult) {
    let class = if result.is_clean() { "good" } else { "bad" };
    let (name, about, server) = (escaped(&result.scenario), escaped(&result.about), escaped(&result.server));
    let words = escaped(&verdict(result));
    let started = super::actors::micro_time(result.started_micros);
    let (date, time) = (&started[..10], &started[11..16]);
    let _ =
        write!(body, r#"<header><h1>{name}</h1><p class="about">{about}</p><p class="verdict {class}">{words}</p>"#);
    let of = match result.part {
        [number, of] if of > 1 => format!(" · part {number} of {of}"),
        _ => String::new(),
    };
    let seconds = trimmed(result.seconds);
    let _ = write!(
        body,
        r#"<p class="facts">{server} · {date} {time} UTC · {seconds} s · seed {}{of} {}</p>"#,
        result.seed,
        escaped(&result.changes.join(" "))
    );
    if let Some(warning) = lateness(result) {
        let _ = write!(body, r#"<p class="warning">{}</p>"#, escaped(&warning));
    }
    body.push_str("</header>");
}

/// Returns the most frequent operations that had successes, ordered by name.
fn busy(result: &RunResult) -> Vec<(&String, &Operation)> {
    let mut all: Vec<_> =
        result.operations.iter().filter(|(_, it)| it.windows.iter().any(|one| one.count > 0)).collect();
    all.sort_by_key(|(_, operation)| std::cmp::Reverse(operation.count));
    all.truncate(LINES_MAX);
    all.sort_by_key(|(name, _)| *name);
    all
}

fn tiles(body: &mut String, result: &RunResult) {
    let total: u64 = result.operations.values().map(|operation| operation.count).sum();
    let rate = total as f64 / result.counted_seconds();
    let mut tiles = vec![
        ("operations".to_owned(), grouped(total), format!("{} a second", grouped(rate.round() as u64))),
        ("errors".to_owned(), grouped(result.errors_total()), share(result.errors_total(), total)),
        (
            "promises broken".to_owned(),
            grouped(result.checks.violations.total()),
            format!("{} events checked", grouped(result.checks.events)),
        ),
    ];
    if let Some((name, slowest)) =
        result.operations.iter().filter(|(_, it)| it.count > 0).max_by_key(|(_, it)| it.latency.p99)
    {
        tiles.push(("slowest p99".into(), span(slowest.latency.p99), name.clone()));
    }
    if let Some(cpu) = server_cpu_seconds(result) {
        let (first, last) = (result.samples.first(), result.samples.last());
        let seconds = first.zip(last).map_or(0.0, |(first, last)| last.at - first.at).max(0.001);
        let most = result.samples.iter().filter_map(|sample| sample.server_resident_bytes).max().unwrap_or(0);
        tiles.push((
            "server".into(),
            format!("{:.0}%", cpu / seconds * 100.0),
            format!("of a core, {} at most", bytes(most as f64)),
        ));
    }
    let all = recoveries(result);
    let until = |recovery: &Recovery| recovery.seconds.unwrap_or(f64::INFINITY);
    if let Some(recovery) = all.iter().max_by(|a, b| until(a).total_cmp(&until(b))) {
        let text = recovery.seconds.map_or("never".into(), |seconds| format!("{} s", trimmed(seconds)));
        tiles.push(("recovered after the burst".into(), text, recovery.operation.clone()));
    }
    body.push_str(r#"<section class="tiles">"#);
    for (name, value, more) in tiles {
        let (name, value, more) = (escaped(&name), escaped(&value), escaped(&more));
        let _ = write!(body, "<div><h2>{name}</h2><b>{value}</b><span>{more}</span></div>");
    }
    body.push_str("</section>");
}

/// Returns a chart over the time of the run.
fn over_time<'a>(result: &RunResult, title: &'a str, series: Vec<Series>, y_text: fn(f64) -> String) -> Chart<'a> {
    let bands = result.phases.iter().map(|phase| {
        let load = if phase.load[0] == phase.load[1] && phase.load[0] != 1.0 {
            format!(" ×{}", trimmed(phase.load[0]))
        } else {
            String::new()
        };
        (format!("{}{load}", phase.name), phase.from, phase.to)
    });
    let bands = if result.phases.len() > 1 { bands.collect() } else { Vec::new() };
    let x = (0.0, result.seconds.max(0.001));
    Chart { title, series, x, x_scale: Scale::Linear, y_scale: Scale::Linear, y_text, bands, is_filled: false }
}

fn figure(chart: &Chart<'_>, note: &str) -> String {
    if chart.series.iter().all(|series| series.points.iter().all(|(_, value)| value.is_none())) {
        return String::new();
    }
    let (title, svg, legend) = (escaped(chart.title), chart.draw(), chart.legend());
    format!("<figure><figcaption><h2>{title}</h2><p>{note}</p></figcaption>{svg}{legend}</figure>")
}

/// Returns a figure of each window, at the middle of the window.
fn points(
    result: &RunResult,
    operation: &Operation,
    value: impl Fn(&Window) -> Option<f64>,
) -> Vec<(f64, Option<f64>)> {
    let width = result.window_seconds;
    let at = |number: usize| ((number as f64 + 0.5) * width).min(result.seconds);
    operation.windows.iter().enumerate().map(|(number, window)| (at(number), value(window))).collect()
}

fn latency_over_time(result: &RunResult, quantile: f64, title: &str) -> String {
    let series = busy(result).into_iter().map(|(name, operation)| Series {
        name: name.clone(),
        points: points(result, operation, |window| window.quantile(quantile)),
    });
    let mut chart = over_time(result, title, series.collect(), time_tick);
    chart.y_scale = Scale::Log;
    figure(&chart, "Counted from when each request was due, so a stall shows in all requests that it delayed.")
}

fn percentile_curves(result: &RunResult) -> String {
    let mut most = 0.9f64;
    let series = busy(result).into_iter().map(|(name, operation)| {
        let total: u64 = operation.histogram.iter().map(|(_, count)| count).sum();
        let mut below = 0;
        let mut points = Vec::new();
        for (micros, count) in &operation.histogram {
            // The middle of the requests with this latency: above the slowest one the share is 0, which has no place on
            // this axis.
            let quantile = (below as f64 + *count as f64 / 2.0) / total.max(1) as f64;
            below += count;
            points.push((quantile.min(0.99999), Some(*micros as f64)));
        }
        most = most.max(1.0 - 1.0 / (total.max(10) as f64));
        Series { name: name.clone(), points }
    });
    let series: Vec<Series> = series.collect();
    let chart = Chart {
        title: "Latency by percentile",
        series,
        x: (0.0, most.min(0.99999)),
        x_scale: Scale::Tail,
        y_scale: Scale::Log,
        y_text: time_tick,
        bands: Vec::new(),
        is_filled: false,
    };
    figure(&chart, "Each step to the right divides the number of slower requests by ten.")
}

fn throughput(result: &RunResult) -> String {
    let series = busy(result).into_iter().map(|(name, operation)| Series {
        name: name.clone(),
        points: points(result, operation, |window| Some(window.count as f64 / result.window_seconds)),
    });
    let chart = over_time(result, "Throughput", series.collect(), count_tick);
    figure(&chart, "Successes per second, by when the requests were due.")
}

fn errors_over_time(result: &RunResult) -> String {
    let failed =
        result.operations.iter().filter(|(_, operation)| operation.windows.iter().any(|window| window.errors > 0));
    let series = failed.take(LINES_MAX).map(|(name, operation)| Series {
        name: name.clone(),
        points: points(result, operation, |window| Some(window.errors as f64 / result.window_seconds)),
    });
    let mut chart = over_time(result, "Errors", series.collect(), count_tick);
    chart.is_filled = true;
    figure(&chart, "Failures per second, by when the requests were due.")
}

fn processor(result: &RunResult) -> String {
    let percent = |value: &dyn Fn(&super::result::Sample) -> Option<f64>| -> Vec<(f64, Option<f64>)> {
        let pairs = result.samples.windows(2).filter(|pair| pair[1].at - pair[0].at > 0.05);
        let point = |pair: &[super::result::Sample]| {
            let used = value(&pair[1]).zip(value(&pair[0])).map(|(after, before)| (after - before).max(0.0));
            let at = pair[1].at.min(result.seconds);
            (at, used.map(|used| used / (pair[1].at - pair[0].at) * 100.0))
        };
        pairs.map(point).collect()
    };
    let server = Series { name: "server".into(), points: percent(&|sample| sample.server_cpu_seconds) };
    let own = Series { name: "harness".into(), points: percent(&|sample| Some(sample.own_cpu_seconds)) };
    let chart = over_time(result, "Processor", vec![server, own], percent_tick);
    figure(&chart, "In percent of one core.")
}

fn memory(result: &RunResult) -> String {
    let of = |value: &dyn Fn(&super::result::Sample) -> Option<u64>| -> Vec<(f64, Option<f64>)> {
        let at = |sample: &super::result::Sample| sample.at.min(result.seconds);
        result.samples.iter().map(|sample| (at(sample), value(sample).map(|bytes| bytes as f64))).collect()
    };
    let server = Series { name: "server".into(), points: of(&|sample| sample.server_resident_bytes) };
    let own = Series { name: "harness".into(), points: of(&|sample| Some(sample.own_resident_bytes)) };
    let mut chart = over_time(result, "Memory", vec![server, own], bytes);
    chart.is_filled = true;
    figure(&chart, "Resident.")
}

fn watches(result: &RunResult) -> String {
    if result.checks.watches == 0 {
        return String::new();
    }
    let points = result.samples.iter().map(|sample| (sample.at.min(result.seconds), Some(sample.watches as f64)));
    let series = vec![Series { name: "open".into(), points: points.collect() }];
    let mut chart = over_time(result, "Watches", series, count_tick);
    chart.is_filled = true;
    figure(&chart, "Open watches.")
}

fn table(body: &mut String, result: &RunResult) {
    body.push_str(r#"<section><h2>Operations</h2><div class="scroll"><table><thead><tr><th>operation</th>"#);
    for head in ["count", "a second", "p50", "p90", "p99", "p99.9", "max", "errors"] {
        let _ = write!(body, "<th>{head}</th>");
    }
    body.push_str("</tr></thead><tbody>");
    for (name, operation) in &result.operations {
        if operation.count == 0 && operation.errors.is_empty() {
            continue;
        }
        let since = match operation.since {
            Since::Due => "",
            Since::Sent => r#" <small title="counted from sending: each client waits for its answer">closed</small>"#,
        };
        let rate = operation.count as f64 / result.counted_seconds();
        let times = &operation.latency;
        let _ = write!(
            body,
            "<tr><th>{}{since}</th><td>{}</td><td>{rate:.1}</td>",
            escaped(name),
            grouped(operation.count)
        );
        for micros in [times.p50, times.p90, times.p99, times.p999, times.max] {
            let _ = write!(body, "<td>{}</td>", span(micros));
        }
        let errors: Vec<String> = operation.errors.iter().map(|(sort, count)| format!("{count} × {sort}")).collect();
        let _ = write!(body, r#"<td class="errors">{}</td></tr>"#, escaped(&errors.join(", ")));
        for example in operation.examples.iter().take(3) {
            let _ = write!(body, r#"<tr class="example"><td colspan="9">{}</td></tr>"#, escaped(example));
        }
    }
    body.push_str("</tbody></table></div></section>");
}

fn checks(body: &mut String, result: &RunResult) {
    let checks = &result.checks;
    let _ = write!(
        body,
        "<section><h2>Checks</h2><p>{} events of {} watches and {} answers were looked at; {} watches were compared \
         with lists in the end. {} times a watch went on after an end, {} times it had to list again.</p>",
        grouped(checks.events),
        grouped(checks.watches),
        grouped(checks.answers),
        grouped(checks.compared),
        grouped(checks.resumed),
        grouped(checks.expired),
    );
    let counts: Vec<String> =
        checks.violations.counts.iter().map(|(broken, count)| format!("{count} × {broken:?}")).collect();
    let words = if counts.is_empty() {
        "Nothing was lost, repeated, misordered, stale or wrong.".to_owned()
    } else {
        counts.join(", ")
    };
    let class = if counts.is_empty() { "good" } else { "bad" };
    let _ = write!(body, r#"<p class="verdict {class}">{}</p><ul class="examples">"#, escaped(&words));
    for example in &checks.violations.examples {
        let _ = write!(body, "<li>{}</li>", escaped(example));
    }
    body.push_str("</ul></section>");
}

fn definition(body: &mut String, result: &RunResult) {
    let _ = write!(
        body,
        "<section><details><summary>The scenario</summary><pre>{}</pre></details></section>",
        escaped(result.definition.trim())
    );
}

#[cfg(test)]
mod tests {
    use super::super::check::Broken;
    use super::super::merge::tests::taking;
    use super::super::result::Sample;
    use super::*;

    #[test]
    fn a_page_is_complete_and_self_contained() {
        let mut result = taking((1..=1_000).map(|n| n * 10));
        result.about = "<b>not bold</b>".into();
        result.seconds = 1.0;
        result.checks.watches = 1;
        result.checks.violations.add(Broken::Lost, || "an event & more".into());
        result.samples = [0.0, 0.5, 1.0]
            .map(|at| Sample {
                at,
                server_cpu_seconds: Some(at),
                server_resident_bytes: Some(1 << 30),
                ..Sample::default()
            })
            .into();
        let page = page(&result);
        for part in ["1 promises broken", "&lt;b&gt;not bold", "an event &amp; more", "1 × Lost", "10.0", "100%"] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("<figure>").count(), 7, "all but errors");
        for part in ["http:", "https:", "src=", "href=", "<script", "@import", "url(", "NaN", "inf\""] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn an_empty_run_has_a_page() {
        let page = page(&super::super::merge::tests::empty());
        assert!(page.contains("clean") && !page.contains("NaN"), "{page}");
    }
}
