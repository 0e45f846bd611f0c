//! Reading the text form of Prometheus ("Exposition formats", version 0.0.4).

/// A value with its labels.
#[derive(Debug, PartialEq)]
pub struct Sample {
    labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

impl Sample {
    /// The value of a label; empty without one, which means the same.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value)
    }
}

/// The samples of a name in a page. Lines that cannot be read are passed over.
pub fn named<'a>(page: &'a str, name: &'a str) -> impl Iterator<Item = Sample> + 'a {
    page.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        match rest.strip_prefix('{') {
            Some(rest) => labelled(rest),
            None => Some(Sample { labels: Vec::new(), value: rest.strip_prefix(' ')?.trim().parse().ok()? }),
        }
    })
}

/// The sum of the samples of a name; `None` when there are none.
pub fn sum(page: &str, name: &str) -> Option<f64> {
    named(page, name).map(|sample| sample.value).reduce(|sum, value| sum + value)
}

/// Labels up to the closing brace, and the value behind it.
fn labelled(mut rest: &str) -> Option<Sample> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(value) = rest.strip_prefix('}') {
            return Some(Sample { labels, value: value.trim().parse().ok()? });
        }
        let (name, behind) = rest.split_once("=\"")?;
        let (value, behind) = quoted(behind)?;
        labels.push((name.to_owned(), value));
        rest = behind;
    }
}

/// Text up to the closing quote, with its escapes resolved, and what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_values_are_read() {
        let page =
            "# HELP up {x}\nup 1\nups{a=\"1\"} 9\nup{a=\"x,}\\\"y\\\\\",b=\"\"} +Inf\nup{a=\"open\nup{a=\"b\"} word\n";
        let found: Vec<_> = named(page, "up").collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].label("a"), found[0].value), ("", 1.0));
        assert_eq!((found[1].label("a"), found[1].value), ("x,}\"y\\", f64::INFINITY));
        assert_eq!((sum(page, "ups"), sum(page, "down")), (Some(9.0), None));
    }
}
