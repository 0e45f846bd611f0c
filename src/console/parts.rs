//! The parts of sections: tables, and numbers in units for people.

use maud::{Markup, html};

/// The layout of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Words.
    Words(&'static str),
    /// Words that may be long, and break anywhere.
    Text(&'static str),
    /// Numbers.
    Number(&'static str),
    /// Words that narrow screens omit.
    Spare(&'static str),
    /// Numbers that narrow screens omit.
    SpareNumber(&'static str),
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Words(title)
            | Self::Text(title)
            | Self::Number(title)
            | Self::Spare(title)
            | Self::SpareNumber(title) => title,
        }
    }

    const fn class(self) -> Option<&'static str> {
        match self {
            Self::Words(_) => None,
            Self::Text(_) => Some("t"),
            Self::Number(_) => Some("n"),
            Self::Spare(_) => Some("w"),
            Self::SpareNumber(_) => Some("n w"),
        }
    }
}

/// Returns a table whose first column names its rows, or the sentence `none` if it has no rows.
pub(super) fn table<const N: usize>(columns: [Column; N], rows: &[[String; N]], none: &str) -> Markup {
    if rows.is_empty() {
        return html! { p.none { (none) } };
    }
    html! {
        table {
            thead { tr { @for column in columns { th scope="col" class=[column.class()] { (column.title()) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (at, (column, cell)) in columns.into_iter().zip(row).enumerate() {
                            @let shown = shown(column, cell);
                            @if at == 0 {
                                th scope="row" class=[column.class()] { (shown) }
                            } @else {
                                td class=[column.class()] { (shown) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the content of a cell. Paths and names of resources break behind slashes and dots first.
fn shown(column: Column, cell: &str) -> Markup {
    let parts = cell.split_inclusive(['/', '.']).enumerate();
    match column {
        Column::Text(_) => html! { @for (at, part) in parts { @if at > 0 { wbr; } (part) } },
        _ => html! { (cell) },
    }
}

/// Formats a number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Formats bytes in the unit that fits.
pub(super) fn bytes(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1_024.0 {
            break;
        }
        (value, unit) = (value / 1_024.0, next);
    }
    let digits = usize::from(unit != "B" && value < 100.0);
    format!("{value:.digits$} {unit}")
}

/// Formats seconds in the unit that fits.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 0.0995 => format!("{:.1} ms", s * 1e3),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 99.5 => format!("{s:.1} s"),
        s if s < 2.0 * 3_600.0 => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// Formats the age of something, given in seconds.
pub(super) fn ago(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "now".to_owned(),
        s if s < 99.5 => format!("{s:.0} s"),
        s => time(s),
    }
}

/// Formats a number per second.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        r if r > 0.0 && r < 99.95 => format!("{r:.1}"),
        r => count(r.max(0.0).round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_units() {
        let counts = [1, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["1", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]);
        assert_eq!([0.0, 1_000.0, 1_536.0, 1e12].map(bytes), ["0 B", "1000 B", "1.5 KiB", "931 GiB"]);
        let times = [0.0, 0.002_5, 0.75, 1.5, 600.0, 8_000.0, 864_000.0].map(time);
        assert_eq!(times, ["0.0 ms", "2.5 ms", "750 ms", "1.5 s", "10 min", "2 h", "10 days"]);
        assert_eq!([-1.0, 2.4, 100.0].map(ago), ["now", "2 s", "2 min"]);
        assert_eq!([0.0, 0.24, 12.0, 1_500.4].map(rate), ["0", "0.2", "12.0", "1\u{202f}500"]);
    }

    #[test]
    fn long_names_break_after_slashes_and_dots() {
        let shown = |cell: &str| shown(Column::Text("Path"), cell).into_string();
        assert_eq!(shown("a.b/<c>"), "a.<wbr>b/<wbr>&lt;c&gt;");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn cells_are_escaped() {
        let columns = [Column::Words("Name"), Column::SpareNumber("Size")];
        let text = table(columns, &[["<i>".to_owned(), "1".to_owned()]], "none").into_string();
        assert!(text.contains("<th scope=\"row\">&lt;i&gt;</th><td class=\"n w\">1</td>"), "{text}");
        assert_eq!(
            table(columns, &[], "There is <none>.").into_string(),
            "<p class=\"none\">There is &lt;none&gt;.</p>"
        );
    }
}
