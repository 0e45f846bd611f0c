//! The text form of metrics (Prometheus documentation, "Exposition formats", version 0.0.4).

use std::fmt::Write as _;

use super::histogram::{Family, Histogram};

/// The media type of the text form.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Formats labels as they stand between the braces.
pub fn label_text(labels: &[(&'static str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in labels {
        if !out.is_empty() {
            out.push(',');
        }
        let _ = write!(out, "{name}=\"");
        for c in value.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out
}

/// Parses the text that [`label_text`] makes of labels.
pub fn read_labels(text: &str) -> Vec<(&str, String)> {
    let (mut labels, mut rest) = (Vec::new(), text);
    while let Some((name, behind)) = rest.trim_start_matches(',').split_once("=\"") {
        let (mut value, mut chars) = (String::new(), behind.char_indices());
        rest = "";
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    rest = &behind[at + 1..];
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other)) => value.push(other),
                    None => {}
                },
                _ => value.push(c),
            }
        }
        labels.push((name, value));
    }
    labels
}

/// Text to which families are appended. Their values are read at the time of the request.
#[derive(Debug, Default)]
pub struct Page(pub String);

impl Page {
    /// Begins a family of gauges.
    pub fn gauge(&mut self, name: &'static str, help: &str) -> Samples<'_> {
        self.family(name, help, "gauge")
    }

    /// Begins a family of counters.
    pub fn counter(&mut self, name: &'static str, help: &str) -> Samples<'_> {
        self.family(name, help, "counter")
    }

    /// Appends a family of histograms, each with its labels.
    pub fn histograms<const N: usize>(&mut self, family: &Family, series: &[([(&'static str, &str); N], &Histogram)]) {
        self.family(family.name, family.help, "histogram");
        series.iter().for_each(|(labels, histogram)| histogram.write(family, &label_text(labels), &mut self.0));
    }

    fn family(&mut self, name: &'static str, help: &str, kind: &str) -> Samples<'_> {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Samples { out: &mut self.0, name }
    }
}

/// Sorts families by name and series by labels. Two requests thus show them in the same order.
pub fn sorted(text: &str) -> String {
    let mut families: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match families.last_mut() {
            Some(family) if !line.starts_with("# HELP ") => family.push(line),
            _ => families.push(vec![line]),
        }
    }
    families.sort_unstable();
    let mut out = String::with_capacity(text.len());
    for mut family in families {
        // Buckets stay in the order of their bounds.
        if !family.get(1).is_some_and(|kind| kind.ends_with(" histogram")) {
            let samples = family.len().min(2);
            family[samples..].sort_unstable();
        }
        family.iter().for_each(|line| out.extend([line, "\n"]));
    }
    out
}

/// The samples of one family.
#[derive(Debug)]
pub struct Samples<'p> {
    out: &'p mut String,
    name: &'static str,
}

impl Samples<'_> {
    /// Appends a value.
    pub fn sample(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(self.out, "{}{open}{}{close} {}", self.name, label_text(labels), go_float(value));
    }
}

/// Formats a number as Go does, because clients compare bounds of buckets as text. Unlike Go, writes a number of more
/// than seven digits without an exponent.
pub fn go_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent @ (..-4 | 21..)) => short_exponent(digits, exponent),
        Ok(exponent @ 6..) if digits.len() <= 8 => short_exponent(digits, exponent),
        _ => value.to_string(),
    }
}

fn short_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_go() {
        for (value, text) in [
            (0.005, "0.005"),
            (1.0, "1"),
            (1.25, "1.25"),
            (100_000.0, "100000"),
            (131_072.0, "131072"),
            (1e6, "1e+06"),
            (1e9, "1e+09"),
            (1_048_576.0, "1.048576e+06"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1e-8, "1e-08"),
            (0.0, "0"),
        ] {
            assert_eq!(go_float(value), text);
        }
    }

    #[test]
    fn families_and_series_are_sorted_but_buckets_are_not() {
        let gauge = "# HELP b .\n# TYPE b gauge\nb{x=\"2\"} 1\nb{x=\"1\"} 1\n";
        let histogram = "# HELP a .\n# TYPE a histogram\na_bucket{le=\"9\"} 1\na_bucket{le=\"10\"} 1\n";
        let ordered = "# HELP b .\n# TYPE b gauge\nb{x=\"1\"} 1\nb{x=\"2\"} 1\n";
        assert_eq!(sorted(&format!("{gauge}\n{histogram}")), format!("{histogram}{ordered}"));
    }

    #[test]
    fn labels_are_escaped() {
        let labels = [("a", "1"), ("b", "q\"\\\n"), ("c", ""), ("d", ",x=")];
        let text = label_text(&labels);
        assert_eq!(text, r#"a="1",b="q\"\\\n",c="",d=",x=""#);
        assert_eq!(read_labels(&text), labels.map(|(name, value)| (name, value.to_owned())));
        assert!(read_labels("").is_empty());
    }
}
