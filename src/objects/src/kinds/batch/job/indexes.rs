//! Sets of indexes as texts: `1,3-5`.

/// Returns the number of indexes in a set. `Err` says why the text is no set of indexes below `completions`.
pub fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = parse(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn number(text: &str, completions: i64) -> Result<i64, String> {
    let quoted = crate::field::quote(text);
    let number: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {quoted}"))?;
    if number >= completions { Err(format!("too large index: {quoted}")) } else { Ok(number) }
}

fn parse(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = interval.split('-').collect();
    match parts[..] {
        [single] => number(single, completions).map(|index| (index, index)),
        [first, end] => {
            let (first, end) = (number(first, completions)?, number(end, completions)?);
            if first < end {
                return Ok((first, end));
            }
            Err(format!("non-increasing order, previous: {first}, current: {end}"))
        }
        _ => {
            let rule = "violates the requirement that an index interval can have at most two parts separated by '-'";
            Err(format!("the fragment {} {rule}", crate::field::quote(interval)))
        }
    }
}

/// Returns the first index that two sets share. Ignores intervals that cannot be parsed.
pub fn overlap(a: &str, b: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|interval| parse(interval, completions).ok()).collect()
    };
    let (a, b) = (intervals(a), intervals(b));
    let (mut left, mut right) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(left), b.get(right)) {
        if x.0 <= y.1 && y.0 <= x.1 {
            return Some(x.0.max(y.0));
        }
        if x.0 <= y.0 { left += 1 } else { right += 1 }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_counted_and_compared() {
        assert_eq!(count("", 5), Ok(0));
        assert_eq!(count("1,3-4", 5), Ok(3));
        assert_eq!(count("3,1", 5), Err("non-increasing order, previous: 3, current: 1".into()));
        assert_eq!(count("7", 5), Err("too large index: \"7\"".into()));
        assert_eq!(overlap("0,2-4", "1,4", 5), Some(4));
        assert_eq!(overlap("0-1", "2", 5), None);
    }
}
