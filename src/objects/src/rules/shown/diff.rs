//! Unified diffs of texts. Clients see them in messages, so they pair lines as Python's difflib does.

use std::collections::HashMap;
use std::fmt::Write;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// In texts of at least this many lines, a frequent line is matched only beside another equal line.
const POPULAR_FROM: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    a: usize,
    b: usize,
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DiffRun {
    equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

struct Matcher<'a> {
    a: Vec<&'a str>,
    b: Vec<&'a str>,
    places: HashMap<&'a str, Vec<usize>>,
}

/// Returns the unified diff of two texts, without a header. It is empty if they are equal.
pub fn unified(a: &str, b: &str) -> String {
    let matcher = Matcher::new(a, b);
    let mut out = String::new();
    for group in groups(matcher.changes()) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old, new) = (range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        _ = writeln!(out, "@@ -{old} +{new} @@");
        for change in &group {
            let mut lines = |mark: char, lines: &[&str]| {
                for line in lines {
                    _ = writeln!(out, "{mark}{line}");
                }
            };
            if change.equal {
                lines(' ', &matcher.a[change.a.0..change.a.1]);
            } else {
                lines('-', &matcher.a[change.a.0..change.a.1]);
                lines('+', &matcher.b[change.b.0..change.b.1]);
            }
        }
    }
    out
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

impl<'a> Matcher<'a> {
    fn new(a: &'a str, b: &'a str) -> Self {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.split('\n').collect(), b.split('\n').collect());
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, line) in b.iter().enumerate() {
            places.entry(line).or_default().push(n);
        }
        if b.len() >= POPULAR_FROM {
            let often = b.len() / 100 + 1;
            places.retain(|_, lines| lines.len() <= often);
        }
        Self { a, b, places }
    }

    /// Returns the longest run of equal lines within bounds. Returns the first one if several are equally long.
    fn longest(&self, (a_low, a_high): (usize, usize), (b_low, b_high): (usize, usize)) -> Match {
        let mut best = Match { a: a_low, b: b_low, size: 0 };
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for a in a_low..a_high {
            let mut next = HashMap::new();
            for &b in self.places.get(self.a[a]).map_or(&[][..], Vec::as_slice) {
                if b < b_low {
                    continue;
                }
                if b >= b_high {
                    break;
                }
                let size = b.checked_sub(1).and_then(|b| lengths.get(&b)).copied().unwrap_or(0) + 1;
                next.insert(b, size);
                if size > best.size {
                    best = Match { a: a + 1 - size, b: b + 1 - size, size };
                }
            }
            lengths = next;
        }
        while best.a > a_low && best.b > b_low && self.a[best.a - 1] == self.b[best.b - 1] {
            best = Match { a: best.a - 1, b: best.b - 1, size: best.size + 1 };
        }
        while best.a + best.size < a_high
            && best.b + best.size < b_high
            && self.a[best.a + best.size] == self.b[best.b + best.size]
        {
            best.size += 1;
        }
        best
    }

    /// Returns all runs of equal lines, in order; adjacent runs are joined.
    fn matches(&self) -> Vec<Match> {
        let mut open = vec![((0, self.a.len()), (0, self.b.len()))];
        let mut found = Vec::new();
        while let Some((a, b)) = open.pop() {
            let best = self.longest(a, b);
            if best.size > 0 {
                open.push(((a.0, best.a), (b.0, best.b)));
                open.push(((best.a + best.size, a.1), (best.b + best.size, b.1)));
                found.push(best);
            }
        }
        found.sort_by_key(|run| (run.a, run.b));
        let mut joined: Vec<Match> = Vec::new();
        for run in found {
            match joined.last_mut() {
                Some(last) if last.a + last.size == run.a && last.b + last.size == run.b => last.size += run.size,
                _ => joined.push(run),
            }
        }
        joined
    }

    fn changes(&self) -> Vec<DiffRun> {
        let end = Match { a: self.a.len(), b: self.b.len(), size: 0 };
        let (mut a, mut b) = (0, 0);
        let mut changes = Vec::new();
        for run in self.matches().into_iter().chain([end]) {
            if a < run.a || b < run.b {
                changes.push(DiffRun { equal: false, a: (a, run.a), b: (b, run.b) });
            }
            (a, b) = (run.a + run.size, run.b + run.size);
            if run.size > 0 {
                changes.push(DiffRun { equal: true, a: (run.a, a), b: (run.b, b) });
            }
        }
        changes
    }
}

/// Splits changes into groups with a few lines of context each.
fn groups(mut changes: Vec<DiffRun>) -> Vec<Vec<DiffRun>> {
    let keep_end = |change: &mut DiffRun| {
        change.a.0 = change.a.0.max(change.a.1.saturating_sub(CONTEXT));
        change.b.0 = change.b.0.max(change.b.1.saturating_sub(CONTEXT));
    };
    let keep_start = |change: &mut DiffRun| {
        change.a.1 = change.a.1.min(change.a.0 + CONTEXT);
        change.b.1 = change.b.1.min(change.b.0 + CONTEXT);
    };
    if let Some(first) = changes.first_mut().filter(|change| change.equal) {
        keep_end(first);
    }
    if let Some(last) = changes.last_mut().filter(|change| change.equal) {
        keep_start(last);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for change in changes {
        if change.equal && change.a.1 - change.a.0 > 2 * CONTEXT {
            let (mut before, mut after) = (change, change);
            keep_start(&mut before);
            keep_end(&mut after);
            group.push(before);
            groups.push(std::mem::take(&mut group));
            group.push(after);
        } else {
            group.push(change);
        }
    }
    if group.iter().any(|change| !change.equal) {
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn changes_are_shown_with_context() {
        let text: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
        let mut other = text.clone();
        other[9] = "ten".into();
        let shown = unified(&text.join("\n"), &other.join("\n"));
        assert_eq!(shown, "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n");
        assert_eq!(unified("a\nb", "a\nb"), "");
    }
}
