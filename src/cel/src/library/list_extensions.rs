//! CEL's extension of lists: `slice`, `flatten`, `sort`, `distinct`, `reverse`, `lists.range`.

use super::table::{overload, unfit};
use crate::cost::{CallEstimate, Cost, CostRange, LIST, Node, Nodes, SizeRange, TEXT, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::limits::RANGE_ITEMS_MAX;
use crate::value::{List, Value, compare, equal};

/// The overloads for lists of everything that has an order.
macro_rules! of_ordered {
    ($($item:literal $name:literal $cost:ident),*; sort) => {
        &[$(overload(
            concat!("list_", $name, "_sort"),
            concat!("list(", $item, ").(): list(", $item, ")"),
            $cost,
            sort,
        )),*]
    };
    ($($item:literal $name:literal $cost:ident),*; sort_by) => {
        &[$(overload(
            concat!("list_", $name, "_sortByAssociatedKeys"),
            concat!("list(T).(list(", $item, ")): list(T)"),
            $cost,
            sort_by,
        )),*]
    };
}

/// CEL's extension `lists`, version 3.
pub static LIBRARY: Library = Library {
    name: "lists",
    since: Since::Minor(34),
    functions: &[
        Function { name: "slice", overloads: &[overload("list_slice", "list(T).(int, int): list(T)", SLICED, slice)] },
        Function {
            name: "flatten",
            overloads: &[
                overload("list_flatten", "list(list(T)).(): list(T)", FLATTENED, flatten),
                overload("list_flatten_int", "list(dyn).(int): list(dyn)", FLATTENED, flatten),
            ],
        },
        Function {
            name: "sort",
            overloads: of_ordered!(
                "int" "int" SORTED, "uint" "uint" SORTED, "double" "double" SORTED, "bool" "bool" SORTED,
                "duration" "google.protobuf.Duration" SORTED, "timestamp" "google.protobuf.Timestamp" SORTED,
                "string" "string" SORTED_TEXTS, "bytes" "bytes" SORTED_TEXTS; sort),
        },
        Function {
            name: "@sortByAssociatedKeys",
            overloads: of_ordered!(
                "int" "int" SORTED_BY, "uint" "uint" SORTED_BY, "double" "double" SORTED_BY, "bool" "bool" SORTED_BY,
                "duration" "google.protobuf.Duration" SORTED_BY, "timestamp" "google.protobuf.Timestamp" SORTED_BY,
                "string" "string" SORTED_BY_TEXTS, "bytes" "bytes" SORTED_BY_TEXTS; sort_by),
        },
        Function { name: "lists.range", overloads: &[overload("lists_range", "(int): list(int)", RANGE, range)] },
        Function { name: "reverse", overloads: &[overload("list_reverse", "list(T).(): list(T)", REVERSED, reverse)] },
        Function {
            name: "distinct",
            overloads: &[overload("list_distinct", "list(T).(): list(T)", DISTINCT, distinct)],
        },
    ],
};

const SLICED: Cost = Cost { estimate: slice_estimate, actual: |_, made| made_of(1.0, size_of(made)), by_name: false };
const FLATTENED: Cost = Cost { estimate: flatten_estimate, actual: flatten_actual, by_name: false };
const RANGE: Cost = Cost { estimate: range_estimate, actual: |_, made| made_of(1.0, size_of(made)), by_name: false };
const REVERSED: Cost = Cost {
    estimate: |nodes| Some(made(1.0, nodes.size(nodes.receiver?))),
    actual: |_, made| made_of(1.0, size_of(made)),
    by_name: false,
};
const DISTINCT: Cost = Cost {
    estimate: |nodes| compared(nodes, nodes.receiver?, 2.0),
    actual: |arguments, _| arguments.first().map_or(1, self_compared),
    by_name: false,
};
const SORTED: Cost = DISTINCT;
const SORTED_TEXTS: Cost = Cost { estimate: |nodes| compared(nodes, nodes.receiver?, 2.0 + TEXT), ..DISTINCT };
const SORTED_BY: Cost = Cost {
    estimate: |nodes| compared(nodes, nodes.arguments.first()?, 2.0),
    actual: |arguments, _| arguments.get(1).map_or(1, self_compared),
    by_name: false,
};
const SORTED_BY_TEXTS: Cost =
    Cost { estimate: |nodes| compared(nodes, nodes.arguments.first()?, 2.0 + TEXT), ..SORTED_BY };

/// Returns the cost of a call that creates a list, and the list's size.
fn made(factor: f64, size: SizeRange) -> CallEstimate {
    CallEstimate::sized(size.scaled(factor).add(CostRange::fixed(1 + LIST)), size)
}

fn made_of(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST)
}

/// Estimates a comparison of each item of a list with each other one.
fn compared(nodes: &Nodes<'_>, list: &Node<'_>, factor: f64) -> Option<CallEstimate> {
    let size = nodes.size(list);
    Some(made(factor, size.multiply(size)))
}

fn self_compared(list: &Value<'_>) -> u64 {
    let is_text = |item: Outcome<Value<'_>>| matches!(item, Ok(Value::String(_) | Value::Bytes(_)));
    let first = list.as_list().and_then(|list| list.get(0));
    let factor = if first.is_some_and(is_text) { 2.0 + TEXT } else { 2.0 };
    let size = size_of(list);
    made_of(factor, size.saturating_mul(size))
}

/// Returns the number if the node is a literal int, and `otherwise` if not. A negative number counts as 0.
fn written(node: Option<&Node<'_>>, otherwise: u64) -> u64 {
    match node.and_then(|node| node.literal) {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => otherwise,
    }
}

fn slice_estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.receiver?);
    let (from, to) = (written(nodes.arguments.first(), 0), written(nodes.arguments.get(1), size.max));
    Some(made(1.0, SizeRange::fixed(to.wrapping_sub(from))))
}

fn flatten_estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let depth = if nodes.arguments.is_empty() { 1 } else { written(nodes.arguments.first(), u64::MAX) };
    Some(made(depth as f64, nodes.size(nodes.receiver?)))
}

fn range_estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    Some(made(1.0, SizeRange::fixed(written(nodes.arguments.first(), u64::MAX))))
}

fn flatten_actual(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let depth = match arguments.get(1) {
        Some(Value::Int(depth)) => *depth as f64,
        _ => 1.0,
    };
    let size = arguments.first().map_or(1, size_of);
    // As upstream, a negative depth lowers the cost.
    ((size as f64 * depth) as i64 as u64).wrapping_add(1 + LIST)
}

fn slice<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(list), Value::Int(from), Value::Int(to)] = arguments else { return unfit() };
    let refused = |why: String| Err(Error::new(format!("cannot slice({from}, {to}), {why}")));
    let (Ok(start), Ok(end)) = (usize::try_from(*from), usize::try_from(*to)) else {
        return refused("negative indexes not supported".to_owned());
    };
    if start > end {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < end {
        return refused(format!("list is length {}", list.len()));
    }
    let items = (start..end).filter_map(|place| list.get(place)).collect::<Outcome<_>>()?;
    Ok(Value::list(items))
}

fn flatten<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (list, depth) = match arguments {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return unfit(),
    };
    let depth = usize::try_from(depth).map_err(|_| Error::new("level must be non-negative"))?;
    let mut items = Vec::new();
    // The lists that are being iterated, each inside the one before it.
    let mut open = vec![list.iter()];
    while let Some(innermost) = open.last_mut() {
        match innermost.next() {
            None => drop(open.pop()),
            Some(item) => match item? {
                Value::List(list) if open.len() <= depth => open.push(list.iter()),
                item => items.push(item),
            },
        }
    }
    Ok(Value::list(items))
}

fn sort<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::List(list)] => sorted(list, list),
        _ => unfit(),
    }
}

fn sort_by<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::List(list), Value::List(keys)] => sorted(list, keys),
        _ => unfit(),
    }
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Outcome<Value<'a>> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            list.len(),
            keys.len(),
        )));
    }
    let (items, keys) = (list.to_vec()?, keys.to_vec()?);
    let Some(first) = keys.first() else { return Ok(Value::List(list.clone())) };
    if matches!(
        first,
        Value::Null | Value::List(_) | Value::Map(_) | Value::Type(_) | Value::Optional(_) | Value::Opaque(_)
    ) {
        return Err(Error::new("list elements must be comparable"));
    }
    let kind = std::mem::discriminant(first);
    // A list of one item is not compared.
    if keys.len() > 1 && keys.iter().any(|key| std::mem::discriminant(key) != kind) {
        return Err(Error::new("list elements must have the same type"));
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn range<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        // Its cost exceeds every limit, so the error comes before the list is created.
        [Value::Int(count)] if *count > RANGE_ITEMS_MAX => Err(Error::CostLimit),
        [Value::Int(count)] => Ok(Value::list((0..*count).map(Value::Int).collect())),
        _ => unfit(),
    }
}

fn reverse<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(list)] = arguments else { return unfit() };
    let mut items = list.to_vec()?;
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(list)] = arguments else { return unfit() };
    let mut found: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        if !found.iter().any(|other| equal(&item, other) == Ok(true)) {
            found.push(item);
        }
    }
    Ok(Value::list(found))
}
