//! The sections of the page: an overview in tables.

use maud::{Markup, html};

use super::parts::Column::{Number, Spare, SpareNumber, Text, Words};
use super::parts::{ago, bytes, count, rate, table, time};
use crate::administration::messages::{GroupView, MemberView};
use crate::limits;
use crate::metrics::slowest::SlowRequest;
use crate::overview::{
    Certificate, Disk, Finding, FindingVerdict, Overview, Rates, ResourceView, Warning, WatchLag, assess,
};

/// A part of the page.
pub(super) struct Section {
    /// The `id` of its element.
    pub(super) id: &'static str,
    /// Its headline.
    pub(super) title: &'static str,
    /// The content below the headline.
    pub(super) content: Markup,
}

/// Returns all sections. Without rates their numbers per second show a dash.
pub(super) fn sections(now: &Overview, rates: Option<&Rates>) -> [Section; 10] {
    let section = |id, title, content| Section { id, title, content };
    [
        section("attention", "Attention", attention(now)),
        section("glance", "At a glance", glance(now, rates)),
        section("members", "Members", members(now)),
        section("groups", "Groups", groups(now)),
        section("requests", "Requests by type", requests(now, rates)),
        section("slowest", "Slowest requests of the last 10 minutes", slowest(now)),
        section("watches", "Watches and controllers that are behind", watches(now)),
        section("resources", "Resources", resources(now, rates)),
        section("certificates", "Certificates", certificates(now)),
        section("warnings", "Warnings of the log", warnings(now)),
    ]
}

fn attention(now: &Overview) -> Markup {
    let name: &str = if now.cluster.told_by.is_empty() { "this member" } else { &now.cluster.told_by };
    let found: Vec<Finding> = assess(name, now).into_iter().filter(|it| it.verdict != FindingVerdict::Good).collect();
    if found.is_empty() {
        return html! { p.good { "Nothing needs attention." } };
    }
    let is_broken = |finding: &Finding| finding.verdict == FindingVerdict::Broken;
    html! {
        ul.attention {
            @for finding in &found {
                li.broken[is_broken(finding)].warning[!is_broken(finding)] {
                    strong { @if is_broken(finding) { "Broken: " } @else { "Warning: " } }
                    (finding.found)
                    small { (finding.advice) }
                }
            }
        }
    }
}

fn glance(now: &Overview, rates: Option<&Rates>) -> Markup {
    let led = now.cluster.groups.iter().filter(|group| group.leader == now.cluster.told_by).count();
    let open = || "–".to_owned();
    let facts = [
        ("Ready", if now.ready { "yes".to_owned() } else { "no".to_owned() }),
        ("Leads groups", format!("{led} of {}", now.cluster.groups.len())),
        ("Requests a second", rates.map_or_else(open, |it| rate(it.requests_per_second))),
        ("Reads, writes now", format!("{}, {}", now.reads_in_progress, now.writes_in_progress)),
        ("Watches", count(now.watches)),
        ("Processors", rates.map_or_else(open, |it| format!("{:.2}", it.processors.max(0.0)))),
        ("Memory", now.memory_bytes.map_or_else(open, bytes)),
        ("Fsync, mean", fsync(now, rates).map_or_else(open, time)),
        ("Log", bytes(now.log.disk_bytes as f64)),
        ("Log a second", rates.map_or_else(open, |it| bytes(it.log_bytes_per_second))),
        ("Writes that wait", count(now.log.writes_waiting)),
        ("History window", time(now.history.window_seconds as f64)),
        ("Changes in history", format!("{}, {}", count(now.history.changes), bytes(now.history.bytes as f64))),
        ("Clock behind by", time(now.clock_behind_seconds)),
        ("Serving for", time(now.uptime_seconds)),
    ];
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
            @if let Some(disk) = now.disk { (disk_fact(disk)) }
        }
    }
}

fn fsync(now: &Overview, rates: Option<&Rates>) -> Option<f64> {
    rates.and_then(|it| it.fsync_seconds).or_else(|| now.log.fsync_mean_seconds())
}

fn disk_fact(Disk { size_bytes, free_bytes }: Disk) -> Markup {
    let percent = (size_bytes.saturating_sub(free_bytes) as f64 / size_bytes.max(1) as f64 * 100.0).round();
    html! {
        div {
            dt { "Disk" }
            dd {
                (bytes(free_bytes as f64)) " free"
                meter min="0" max="100" low="75" high="90" optimum="0" value=(percent)
                    aria-label="Part of the disk that is taken" { (percent) " % taken" }
            }
        }
    }
}

fn members(now: &Overview) -> Markup {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let row = |it: &MemberView| {
        let name = if it.name.is_empty() { "this server".to_owned() } else { it.name.clone() };
        let leads = format!("{}{}", it.leads.len(), if it.drained { " (drained)" } else { "" });
        [name, yes(it.reachable), leads, yes(it.votes), it.address.clone()]
    };
    let rows: Vec<_> = now.cluster.members.iter().map(row).collect();
    let columns = [Words("Member"), Words("Reachable"), Words("Leads"), Words("Vote"), Spare("Address")];
    table(columns, &rows, "This server is the only member.")
}

fn groups(now: &Overview) -> Markup {
    let row = |it: &GroupView| {
        let lacks = now.lags.iter().filter(|lag| lag.group == it.name && lag.entries > 0);
        let lacks: Vec<_> = lacks.map(|lag| format!("{} lacks {}", lag.member, count(lag.entries))).collect();
        let is_led = !it.leader.is_empty() && !now.leaderless_groups.contains(&it.name);
        let leader = if is_led { it.leader.clone() } else { "nobody".to_owned() };
        let unapplied = it.commit_index.saturating_sub(it.applied_index);
        let lag = if lacks.is_empty() { "–".to_owned() } else { lacks.join(", ") };
        [it.name.clone(), leader, count(unapplied), lag, count(it.term), count(it.commit_index)]
    };
    let rows: Vec<_> = now.cluster.groups.iter().map(row).collect();
    let columns = [
        Words("Group"),
        Words("Leader"),
        Number("Not applied"),
        Words("Others"),
        SpareNumber("Term"),
        SpareNumber("Committed"),
    ];
    table(columns, &rows, "There is no group yet.")
}

fn requests(now: &Overview, rates: Option<&Rates>) -> Markup {
    let of_type = |verb: &str, resource: &str| {
        let known = rates?.requests.iter().find(|it| it.verb == verb && it.resource == resource);
        Some(rate(known.map_or(0.0, |it| it.per_second)))
    };
    let row = |it: &crate::overview::Requests| {
        let resource = if it.resource.is_empty() { "(documents)".to_owned() } else { it.resource.clone() };
        let per_second = of_type(&it.verb, &it.resource).unwrap_or_else(|| "–".to_owned());
        [resource, it.verb.clone(), per_second, time(it.p50), time(it.p99), count(it.count)]
    };
    let rows: Vec<_> = now.requests.iter().take(limits::CONSOLE_ROWS).map(row).collect();
    let columns = [
        Text("Resource"),
        Words("Verb"),
        Number("Per s"),
        SpareNumber("p50"),
        Number("p99"),
        SpareNumber("Since start"),
    ];
    table(columns, &rows, "There were no requests yet.")
}

fn slowest(now: &Overview) -> Markup {
    let row = |it: &SlowRequest| {
        let ago = ago(now.clock_seconds - it.at_seconds);
        let (took, answer) = (time(it.seconds), bytes(it.bytes as f64));
        [it.path.clone(), it.verb.clone(), took, it.code.to_string(), answer, it.user_agent.clone(), ago]
    };
    let rows: Vec<_> = now.slowest.iter().map(row).collect();
    let columns = [
        Text("Path"),
        Words("Verb"),
        Number("Took"),
        SpareNumber("Code"),
        SpareNumber("Answer"),
        Spare("Client"),
        SpareNumber("Ago"),
    ];
    table(columns, &rows, "There were no requests in that time.")
}

fn watches(now: &Overview) -> Markup {
    let row = |it: &WatchLag| {
        let selects = if it.selects.is_empty() { "all".to_owned() } else { it.selects.clone() };
        [it.resource.clone(), selects, time(it.seconds)]
    };
    let rows: Vec<_> = now.watches_behind.iter().map(row).collect();
    table([Words("Resource"), Text("Selects"), Number("Behind by")], &rows, "No watch is behind.")
}

fn resources(now: &Overview, rates: Option<&Rates>) -> Markup {
    let events = |resource: &str| {
        let known = rates?.resources.iter().find(|it| it.resource == resource);
        Some(rate(known.map_or(0.0, |it| it.events_per_second)))
    };
    let row = |it: &ResourceView| {
        let per_second = events(&it.resource).unwrap_or_else(|| "–".to_owned());
        [
            it.resource.clone(),
            count(it.objects),
            bytes(it.bytes as f64),
            count(it.shards),
            format!("{}, {}", count(it.changes), bytes(it.history_bytes as f64)),
            count(it.followers),
            per_second,
        ]
    };
    let rows: Vec<_> = now.resources.iter().take(limits::CONSOLE_ROWS).map(row).collect();
    let columns = [
        Text("Resource"),
        Number("Objects"),
        Number("Memory"),
        SpareNumber("Shards"),
        SpareNumber("Changes in history"),
        SpareNumber("Followers"),
        Number("Events/s"),
    ];
    let untold = now.resources.len().saturating_sub(limits::CONSOLE_ROWS) as u64 + now.resources_omitted;
    html! {
        (table(columns, &rows, "Nothing is stored yet."))
        @if untold > 0 { p.none { (count(untold)) " more take less memory." } }
    }
}

fn certificates(now: &Overview) -> Markup {
    let row = |it: &Certificate| {
        let left = it.ends_seconds as f64 - now.clock_seconds;
        let ends = if left > 0.0 { format!("in {}", time(left)) } else { "expired".to_owned() };
        [it.name.clone(), ends]
    };
    let rows: Vec<_> = now.certificates.iter().map(row).collect();
    table([Words("Certificate"), Words("Ends")], &rows, "There are no certificates.")
}

fn warnings(now: &Overview) -> Markup {
    let row = |it: &Warning| {
        let ago = ago(now.clock_seconds - it.at_seconds);
        let level = if it.is_error { "error" } else { "warning" };
        [ago, level.to_owned(), it.text.clone(), it.target.clone()]
    };
    let rows: Vec<_> = now.warnings.iter().take(limits::CONSOLE_WARNINGS).map(row).collect();
    table([Words("Ago"), Words("Level"), Text("Text"), Spare("Module")], &rows, "There are no warnings.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overview::example;

    fn text(now: &Overview, id: &str) -> String {
        let found = sections(now, None).into_iter().find(|section| section.id == id);
        found.expect("a section").content.into_string()
    }

    #[test]
    fn faults_come_first() {
        let mut now = example();
        let said = text(&now, "attention");
        assert!(said.contains("the member b is not reachable") && said.contains("runbooks/"), "{said}");
        assert!(text(&now, "groups").contains("b lacks 12"));
        now.leaderless_groups = vec!["default".into()];
        now.clock_behind_seconds = 3.0;
        let said = text(&now, "attention");
        assert!(said.contains("nobody leads the group default") && said.contains("3.0 s behind"), "{said}");
        let groups = text(&now, "groups");
        assert!(groups.contains("<td>nobody</td>") && !groups.contains("<td>a</td>"), "{groups}");
    }

    #[test]
    fn a_member_without_faults_needs_no_attention() {
        let mut now = example();
        now.cluster.members.truncate(1);
        assert!(text(&now, "attention").contains("Nothing needs attention"));
        now.warnings.clear();
        now.watches_behind.clear();
        assert!(text(&now, "warnings").contains("no warnings"));
        assert!(text(&now, "watches").contains("No watch is behind"));
    }

    #[test]
    fn rates_are_shown_once_there_are_two_overviews() {
        let (before, mut now) = (example(), example());
        now.uptime_seconds += 2.0;
        now.requests[0].buckets[0] += 5;
        let rates = Rates::between(&before, &now);
        assert!(requests(&now, Some(&rates)).into_string().contains("<td class=\"n\">2.5</td>"));
        assert!(requests(&now, None).into_string().contains("<td class=\"n\">–</td>"));
    }
}
