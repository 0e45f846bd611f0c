//! Replaces values in kubectl's output that differ from run to run by placeholders. Equal values of a transcript have
//! equal placeholders.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern"));
    };
}

const AGE: &str = r"(?:<invalid>|<unknown>|(?:\d+(?:y|d|h|m|s))+)";
/// The random part of generated names.
const GENERATED: &str = "[bcdfghjklmnpqrstvwxz2456789]{5}";

pattern!(TOKEN, r"eyJ[\w-]{10,}\.[\w-]+\.[\w-]+");
pattern!(UID, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
pattern!(MICROTIME, r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+Z?");
pattern!(TIME, r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ");
pattern!(TIME_IN_WORDS, r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d ([+-]\d{4}|[A-Z]{3,4})");
pattern!(TIME_OF_GO, r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} [A-Z]{3,4}( m=\S+)?");
pattern!(LOG, r"(?m)^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\w+\.go):\d+\]");
pattern!(VERSION, r#"(resourceVersion\\?"?: ?\\?")[1-9]\d*"#);
// Each server states its own patch version and build.
pattern!(BUILD, r#"((?:gitVersion"?: ?"?|Server Version: )v1\.36)\.\d+(\+[\w.-]+)?"#);
pattern!(VERSION_SHOWN, r"(?m)^(\s*Resource Version:\s+)\d+");
pattern!(AGE_SHOWN, &format!(r"(?m)^(\s*(?:Age|Duration|Completed At Age):\s+){AGE}(\s|$)"));
pattern!(AGO, &format!(r"(\(| ){AGE} ago\)"));
pattern!(ADDRESS, r"\b10\.(?:96|0)\.\d{1,3}\.\d{1,3}\b");
pattern!(NODE_PORT, r#"(nodePort"?: ?)\d{5}"#);
pattern!(NODE_PORT_SHOWN, r"(:|  )3[0-2]\d{3}(/(?:TCP|UDP|SCTP))");
pattern!(FILE_OF_DIFF, r"\b(LIVE|MERGED)-\d+");
pattern!(FILE_OF_EDIT, r"kubectl(-edit|\.exe-edit|\S*-edit)-\d+");
pattern!(EVENT, r"\b([a-z0-9.-]+)\.[0-9a-f]{16}\b");
pattern!(LOCAL_PORT, r"(127\.0\.0\.1:)\d{4,5}(: )");
pattern!(HEADER, r"^[A-Z][A-Z0-9()/%:.-]*( [A-Z0-9()/%:.-]+)*(\s{2,}[A-Z][A-Z0-9()/%:.-]*( [A-Z0-9()/%:.-]+)*)+\s*$");
pattern!(GAP, r"\s{2,}");
pattern!(AGE_CELL, &format!(r"^{AGE}( \(x\d+ over {AGE}\))?$"));
pattern!(EVENTS, r"^\s*Type\s+Reason\s+Age\s+From");
pattern!(EVENT_AGE, &format!(r"\s{{2,}}{AGE}( \(x\d+ over {AGE}\))?(\s|$)"));
pattern!(EXPLAINED, r"^(GROUP|KIND): ");
pattern!(INDENTED, r"^    +\S");

const AGE_COLUMNS: [&str; 5] = ["AGE", "LAST SEEN", "FIRST SEEN", "DURATION", "LAST SCHEDULE"];

/// The placeholders of one transcript.
pub struct Normal {
    pub namespace: String,
    /// `https://ADDRESS:PORT` of the server.
    pub server: String,
    pub folder: String,
    /// The prefixes of names that end in generated characters.
    pub generated: Vec<String>,
    met: HashMap<&'static str, Vec<String>>,
}

/// A line of a transcript, or a table. The columns of a table are padded again once ages have been replaced.
enum Part {
    Line(String),
    Table(Vec<Vec<String>>),
}

impl Normal {
    pub fn new(namespace: String, server: String, folder: String, generated: Vec<String>) -> Normal {
        Normal { namespace, server, folder, generated, met: HashMap::new() }
    }

    fn alias(&mut self, kind: &'static str, value: &str) -> String {
        let met = self.met.entry(kind).or_default();
        let index = met.iter().position(|known| known == value).unwrap_or_else(|| {
            met.push(value.to_owned());
            met.len() - 1
        });
        format!("<{kind}:{}>", index + 1)
    }

    /// Replaces the values in one line or cell.
    fn one(&mut self, text: &str) -> String {
        let text = text.replace(&self.namespace, "$NS").replace(&self.namespace.replace('-', ""), "$FLAT");
        let text = text.replace(&self.folder, "<dir>");
        let address = self.server.split("://").last().unwrap_or_default().to_owned();
        let text = text.replace(&self.server, "<server>").replace(&address, "<server-address>");
        let text = self.without_port(text, address.rsplit(':').next().unwrap_or_default());
        let text = TOKEN.replace_all(&text, "<jwt>");
        let text = UID.replace_all(&text, |found: &Captures<'_>| self.alias("uid", &found[0]));
        let text = MICROTIME.replace_all(&text, "<microtime>");
        let text = TIME.replace_all(&text, "<time>");
        let text = TIME_IN_WORDS.replace_all(&text, "<time>");
        let text = TIME_OF_GO.replace_all(&text, "<time>");
        let text = LOG.replace_all(&text, "<log $1 $2>");
        let text = VERSION.replace_all(&text, "${1}<rv>");
        let text = BUILD.replace_all(&text, "$1");
        let text = VERSION_SHOWN.replace_all(&text, "${1}<rv>");
        let text = AGE_SHOWN.replace_all(&text, "${1}<age>${2}");
        let text = AGO.replace_all(&text, "${1}<age> ago)");
        let text = without_addresses(&text);
        let text = NODE_PORT.replace_all(&text, "${1}<port>");
        let text = NODE_PORT_SHOWN.replace_all(&text, "${1}<port>${2}");
        let text = text.replace("due to error: ", "due to error:"); // older clients print no blank here
        let text = FILE_OF_DIFF.replace_all(&text, "${1}-<n>");
        let text = FILE_OF_EDIT.replace_all(&text, "kubectl-edit-<n>");
        let text = EVENT.replace_all(&text, "${1}.<event>");
        let mut text = LOCAL_PORT.replace_all(&text, "${1}<port>${2}").into_owned();
        for beginning in [vec!["kube-api-access-".to_owned()], self.generated.clone()].concat() {
            let name = Regex::new(&format!(r"{}{GENERATED}\b", regex::escape(&beginning))).expect("a pattern");
            let placeholder = |found: &Captures<'_>| format!("{beginning}{}", self.alias("generated", &found[0]));
            text = name.replace_all(&text, placeholder).into_owned();
        }
        text
    }

    fn without_port(&self, text: String, port: &str) -> String {
        if !text.contains(port) {
            return text;
        }
        let given = Regex::new(&format!(r#"(targetPort: |"targetPort": ){port}\b"#)).expect("a pattern");
        let shown = Regex::new(&format!(r"(https  |TargetPort:        ){port}(/TCP)")).expect("a pattern");
        let text = given.replace_all(&text, "${1}<server-port>");
        shown.replace_all(&text, "${1}<server-port>${2}").into_owned()
    }

    /// Replaces the values in the whole output of a command.
    pub fn text(&mut self, text: &str) -> String {
        let mut lines = Vec::new();
        for part in self.parts(text) {
            match part {
                Part::Line(line) => lines.push(line),
                Part::Table(rows) => lines.extend(padded(&rows)),
            }
        }
        lines.join("\n")
    }

    fn parts(&mut self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut explains, mut fields, mut prose, mut events) = (false, false, false, false);
        // The header and the column positions of the table that is being read.
        let mut columns: Option<(Vec<String>, Vec<usize>)> = None;
        for (number, line) in text.split('\n').enumerate() {
            let line = line.trim_end();
            explains |= number < 3 && EXPLAINED.is_match(line);
            if explains {
                prose |= line == "DESCRIPTION:";
                if line.starts_with("FIELDS:") {
                    (fields, prose) = (true, false);
                }
                let inner = line.trim();
                let is_prose = INDENTED.is_match(line) && !line.contains("\t<") && !inner.starts_with("enum:");
                if !(prose || line.is_empty() || fields && is_prose) {
                    let line =
                        if fields && inner.starts_with("enum:") { format!("  {inner}") } else { line.to_owned() };
                    parts.push(Part::Line(self.one(&line)));
                }
                continue;
            }
            if HEADER.is_match(line) {
                let names: Vec<String> = GAP.split(line.trim()).map(str::to_owned).collect();
                parts.push(Part::Table(vec![names.clone()]));
                columns = Some((names, beginnings(line)));
                continue;
            }
            if let Some((names, starts)) = &columns {
                let cells = if line.is_empty() { None } else { cells(line, names.len(), starts) };
                if let (Some(cells), Some(Part::Table(rows))) = (cells, parts.last_mut()) {
                    let age = |name: &str, cell: &str| AGE_COLUMNS.contains(&name) && AGE_CELL.is_match(cell);
                    let shown = cells.iter().zip(names).map(|(cell, name)| {
                        let cell = cell.trim();
                        if age(name, cell) { "<age>".to_owned() } else { self.one(cell) }
                    });
                    rows.push(shown.collect());
                    continue;
                }
                columns = None;
            }
            if EVENTS.is_match(line) {
                events = true;
                parts.push(Part::Line("  Type Reason Age From Message".into()));
            } else if events && line.starts_with("  ") {
                if !line.chars().all(|each| matches!(each, '-' | ' ')) {
                    let line = EVENT_AGE.replace(line, "  <age>${2}");
                    let line = GAP.replace_all(line.trim(), "  ").into_owned();
                    parts.push(Part::Line(format!("  {}", self.one(&line))));
                }
            } else {
                events = false;
                parts.push(Part::Line(self.one(line)));
            }
        }
        parts
    }
}

/// Replaces addresses of services, but not ranges.
fn without_addresses(text: &str) -> String {
    let (mut out, mut copied) = (String::new(), 0);
    for found in ADDRESS.find_iter(text).filter(|found| !text[found.end()..].starts_with('/')) {
        out.push_str(&text[copied..found.start()]);
        out.push_str("<ip>");
        copied = found.end();
    }
    out.push_str(&text[copied..]);
    out
}

/// Returns the positions of words at the start of the line, or after at least two blanks.
fn beginnings(line: &str) -> Vec<usize> {
    let line: Vec<char> = line.chars().collect();
    let blank = |at: usize| line[at].is_whitespace();
    (0..line.len()).filter(|at| !blank(*at) && (*at == 0 || *at > 1 && blank(at - 1) && blank(at - 2))).collect()
}

/// Splits a line into cells below a header. Returns `None` if the line is not a row of that table.
fn cells(line: &str, columns: usize, starts: &[usize]) -> Option<Vec<String>> {
    let letters: Vec<char> = line.chars().collect();
    let ends = starts.iter().skip(1).copied().chain([letters.len() + 1]);
    let cut = |from: usize, to: usize| -> String { letters.iter().skip(from).take(to.saturating_sub(from)).collect() };
    let cells: Vec<String> = starts.iter().zip(ends).map(|(from, to)| cut(*from, to)).collect();
    let is_shifted = cells.iter().any(|cell| cell.starts_with(' ') && !cell.trim().is_empty());
    let is_crossed = starts.iter().skip(1).any(|at| letters.len() > *at && letters[at - 1] != ' ');
    if is_shifted || is_crossed {
        let cells: Vec<String> = GAP.split(line).map(str::to_owned).collect();
        return (cells.len() == columns).then_some(cells);
    }
    Some(cells)
}

fn padded(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
