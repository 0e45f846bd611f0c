//! The plugin Priority: resolves the priority class of a pod to a number (KEP-268, KEP-902).

use flotilla_proto::value::Value;

/// Priority where no class is the default.
const DEFAULT: i64 = 0;
const PREEMPTS: &str = "PreemptLowerPriority";

/// Returns the default class: of several marked ones, that of the lowest priority.
fn default_class<'a>(classes: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let value = |class: &&Value| class.int_at(&["value"]).unwrap_or(0);
    classes.filter(|class| class.is_true_at(&["globalDefault"])).min_by_key(value)
}

/// Resolves the priority of a new pod. `named` is the class that the pod names, `None` if it does not exist; `all` are
/// all classes, which are only used if the pod names none.
pub fn set_priority<'a>(
    pod: &mut Value,
    named: Option<&'a Value>,
    all: impl Iterator<Item = &'a Value>,
) -> Result<(), String> {
    let name = pod.str_at(&["spec", "priorityClassName"]).to_owned();
    let class = if name.is_empty() {
        default_class(all)
    } else {
        Some(named.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
    };
    let value = class.map_or(DEFAULT, |class| class.int_at(&["value"]).unwrap_or(0));
    let policy = match class {
        Some(class) => class.at(&["preemptionPolicy"]).as_str(),
        None => Some(PREEMPTS),
    };
    if let (true, Some(class)) = (name.is_empty(), class) {
        pod.set_at(&["spec", "priorityClassName"], class.str_at(&["metadata", "name"]));
    }
    let why = "must not be provided in pod spec; priority admission controller computed";
    if let Some(sent) = pod.int_at(&["spec", "priority"]).filter(|sent| *sent != value) {
        return Err(format!("the integer value of priority ({sent}) {why} {value} from the given PriorityClass name"));
    }
    pod.set_at(&["spec", "priority"], value);
    let Some(policy) = policy else { return Ok(()) };
    if let Some(sent) = pod.at(&["spec", "preemptionPolicy"]).as_str().filter(|sent| *sent != policy) {
        let what = "the string value of PreemptionPolicy";
        return Err(format!("{what} ({sent}) {why} {policy} from the given PriorityClass name"));
    }
    pod.set_at(&["spec", "preemptionPolicy"], policy);
    Ok(())
}

/// Keeps the old priority of a pod when an update does not state it.
pub fn keep_priority(pod: &mut Value, old: &Value) {
    for key in ["priority", "preemptionPolicy"] {
        let was = old.at(&["spec", key]);
        if pod.at(&["spec", key]).is_null() && !was.is_null() {
            pod.set_at(&["spec", key], was.clone());
        }
    }
}

/// Checks that at most one class is the default. `is_update` says that the class exists already.
pub fn check_default_class<'a>(
    class: &Value,
    is_update: bool,
    all: impl Iterator<Item = &'a Value>,
) -> Result<(), String> {
    if !class.is_true_at(&["globalDefault"]) {
        return Ok(());
    }
    let Some(other) = default_class(all).map(|class| class.str_at(&["metadata", "name"])) else { return Ok(()) };
    if is_update && other == class.str_at(&["metadata", "name"]) {
        return Ok(());
    }
    Err(format!("PriorityClass {other} is already marked as default. Only one default can exist"))
}
