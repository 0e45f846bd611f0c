//! Cells of pods: status reasons, readiness, restarts.

use flotilla_proto::json::Part;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::age;
use super::cell::{self, number};
use super::selector;
use super::table::Completion;

const NONE: &str = "<none>";

/// The parts of a pod that its row depends on. The rest of a pod is many times larger.
pub const READS: Part = Part::only(&[
    (
        "metadata",
        Part::only(&[
            ("name", Part::Whole),
            ("creationTimestamp", Part::Whole),
            ("deletionTimestamp", Part::Whole),
            ("annotations", Part::only(&[(super::table::INITIAL_EVENTS_END, Part::Whole)])),
            ("managedFields", Part::Rest),
        ]),
    ),
    (
        "spec",
        Part::only(&[
            ("containers", Part::only(&[("name", Part::Whole), ("image", Part::Rest)])),
            ("initContainers", Part::only(&[("name", Part::Whole), ("restartPolicy", Part::Whole)])),
            ("nodeName", Part::Whole),
            ("readinessGates", Part::Whole),
        ]),
    ),
    (
        "status",
        Part::only(&[
            ("phase", Part::Whole),
            ("reason", Part::Whole),
            ("podIP", Part::Whole),
            ("podIPs", Part::Whole),
            ("nominatedNodeName", Part::Whole),
            ("conditions", Part::only(&[("type", Part::Whole), ("status", Part::Whole), ("reason", Part::Whole)])),
            ("initContainerStatuses", CONTAINER_STATUS),
            ("containerStatuses", CONTAINER_STATUS),
        ]),
    ),
]);

const CONTAINER_STATUS: Part = Part::only(&[
    ("name", Part::Whole),
    ("state", Part::Whole),
    ("lastState", Part::Whole),
    ("ready", Part::Whole),
    ("started", Part::Whole),
    ("restartCount", Part::Whole),
]);

/// Name, ready, status, restarts, age; IP, node, nominated node, readiness gates.
pub fn pod(pod: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let summary = summarize(pod);
    cells.extend([
        cell::name(pod),
        ratio(summary.ready, summary.total),
        summary.reason.into(),
        summary.restarts.cell(now),
        cell::age(pod, now),
        address(pod),
        cell::text_or(pod, &["spec", "nodeName"], NONE),
        cell::text_or(pod, &["status", "nominatedNodeName"], NONE),
        readiness_gates(pod),
    ]);
}

/// Returns the condition of the row if the pod has ended.
pub fn completion(pod: &Value) -> Option<Completion> {
    match pod.str_at(&["status", "phase"]) {
        "Succeeded" => Some(Completion { reason: "Succeeded", message: "The pod has completed successfully." }),
        "Failed" => Some(Completion { reason: "Failed", message: "The pod failed." }),
        _ => None,
    }
}

/// Name, containers, images, labels of a pod template.
pub fn pod_template(object: &Value, _now: Timestamp, cells: &mut Vec<Value>) {
    let [names, images] = cell::containers(object.list_at(&["template", "spec", "containers"]));
    let labels = selector::labels(object.map_at(&["template", "metadata", "labels"]));
    cells.extend([cell::name(object), names, images, labels]);
}

fn ratio(part: usize, whole: usize) -> Value {
    format!("{part}/{whole}").into()
}

fn address(pod: &Value) -> Value {
    match pod.at(&["status", "podIP"]) {
        Value::Str(ip) if !ip.is_empty() => Value::Str(ip.clone()),
        _ => match pod.list_at(&["status", "podIPs"]).first() {
            Some(first) => cell::text_or(first, &["ip"], NONE),
            None => NONE.into(),
        },
    }
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = pod.list_at(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.into();
    }
    let open = gates.iter().filter(|gate| cell::is_condition_true(pod, gate.str_at(&["conditionType"]))).count();
    ratio(open, gates.len())
}

/// The restarts of a set of containers, and the end of the latest run before a restart.
#[derive(Debug, Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(number(status, &["restartCount"]));
        self.last = self.last.max(age::time(status.at(&["lastState", "terminated", "finishedAt"])));
    }

    fn cell(self, now: Timestamp) -> Value {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, age::human(age::between(last, now))).into()
            }
            _ => self.count.to_string().into(),
        }
    }
}

/// The state of a pod, as its containers show it.
struct Summary {
    reason: Str,
    ready: usize,
    total: usize,
    restarts: Restarts,
}

fn summarize(pod: &Value) -> Summary {
    let phase = pod.str_at(&["status", "phase"]);
    let stated = pod.str_at(&["status", "reason"]);
    let sidecars = pod.list_at(&["spec", "initContainers"]).iter().filter(|c| is_sidecar(c)).count();
    let mut summary = Summary {
        reason: if is_gated(pod) {
            "SchedulingGated"
        } else if stated.is_empty() {
            phase
        } else {
            stated
        }
        .into(),
        ready: 0,
        total: pod.list_at(&["spec", "containers"]).len() + sidecars,
        restarts: Restarts::default(),
    };
    let mut of_sidecars = Restarts::default();
    let initializing = summary.initialize(pod, &mut of_sidecars);
    if !initializing || cell::is_condition_true(pod, "Initialized") {
        summary.restarts = of_sidecars;
        summary.run(pod);
    }
    if cell::is_deleted(pod) {
        if stated == "NodeLost" {
            summary.reason = "Unknown".into();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.reason = "Terminating".into();
        }
    }
    summary
}

fn is_gated(pod: &Value) -> bool {
    pod.list_at(&["status", "conditions"]).iter().any(|condition| {
        condition.str_at(&["type"]) == "PodScheduled" && condition.str_at(&["reason"]) == "SchedulingGated"
    })
}

fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

impl Summary {
    /// Counts the init containers up to the first that has not finished its part. Returns whether there is one.
    fn initialize(&mut self, pod: &Value, of_sidecars: &mut Restarts) -> bool {
        let specs = pod.list_at(&["spec", "initContainers"]);
        for (n, status) in pod.list_at(&["status", "initContainerStatuses"]).iter().enumerate() {
            self.restarts.add(status);
            let name = status.str_at(&["name"]);
            let sidecar = specs.iter().any(|spec| spec.str_at(&["name"]) == name && is_sidecar(spec));
            if sidecar {
                of_sidecars.add(status);
            }
            let terminated = status.at(&["state", "terminated"]);
            if !terminated.is_null() && number(terminated, &["exitCode"]) == 0 {
                continue;
            }
            if sidecar && status.is_true_at(&["started"]) {
                self.ready += usize::from(status.is_true_at(&["ready"]));
                continue;
            }
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            self.reason = if !terminated.is_null() {
                cell::join(["Init:", &end_of(terminated)], "")
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                cell::join(["Init:", waiting], "")
            } else {
                format!("Init:{n}/{}", specs.len()).into()
            };
            return true;
        }
        false
    }

    /// Counts the ordinary containers. If several have a reason, that of the first one counts.
    fn run(&mut self, pod: &Value) {
        let mut is_running = false;
        let mut failure = None;
        for status in pod.list_at(&["status", "containerStatuses"]).iter().rev() {
            self.restarts.add(status);
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            let terminated = status.at(&["state", "terminated"]);
            if !waiting.is_empty() {
                self.reason = waiting.into();
            } else if !terminated.is_null() {
                self.reason = end_of(terminated);
                if number(terminated, &["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status.is_true_at(&["ready"]) && !status.at(&["state", "running"]).is_null() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if is_running && is_ready(pod) {
                self.reason = "Running".into();
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if is_running {
                self.reason = "NotReady".into();
            }
        }
    }
}

/// Returns whether any condition `Ready` is true, not only the first one.
fn is_ready(pod: &Value) -> bool {
    pod.list_at(&["status", "conditions"])
        .iter()
        .any(|condition| condition.str_at(&["type"]) == "Ready" && condition.str_at(&["status"]) == "True")
}

/// Returns why a container terminated: its reason, else the signal, else the exit code.
fn end_of(terminated: &Value) -> Str {
    let reason = terminated.str_at(&["reason"]);
    if !reason.is_empty() {
        return reason.into();
    }
    match number(terminated, &["signal"]) {
        0 => format!("ExitCode:{}", number(terminated, &["exitCode"])).into(),
        signal => format!("Signal:{signal}").into(),
    }
}
