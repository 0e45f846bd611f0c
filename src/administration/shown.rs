//! Formats a cluster for people.

use super::messages::{ClusterView, GroupView, MemberView, ShardsView};

/// Returns two tables: members, and groups. A cluster that is not founded yet has neither, and this member has no name.
pub fn cluster(view: &ClusterView) -> String {
    if view.told_by.is_empty() && view.members.is_empty() {
        return "the cluster is not founded yet\n".to_owned();
    }
    let member = |member: &MemberView| {
        [
            member.name.clone(),
            or_dash(&member.address),
            yes(member.votes),
            yes(member.reachable),
            leads(member),
            member.id.clone(),
        ]
    };
    let group = |group: &GroupView| {
        [
            group.name.clone(),
            or_dash(&group.leader),
            or_dash(group.preferred.as_deref().unwrap_or_default()),
            group.term.to_string(),
            group.last_index.to_string(),
            group.commit_index.to_string(),
            group.applied_index.to_string(),
            group.snapshot_index.to_string(),
        ]
    };
    let cluster = if view.cluster.is_empty() { "one server".to_owned() } else { format!("cluster {}", view.cluster) };
    let members: Vec<_> = view.members.iter().map(member).collect();
    let groups: Vec<_> = view.groups.iter().map(group).collect();
    format!(
        "{cluster}, as {} sees it\n\n{}\n{}",
        or_dash(&view.told_by),
        table(["MEMBER", "ADDRESS", "VOTE", "REACHABLE", "LEADS", "ID"], &members),
        table(["GROUP", "LEADER", "PREFERRED", "TERM", "LAST", "COMMITTED", "APPLIED", "SNAPSHOT"], &groups),
    )
}

/// Returns a table of the resources, except those with one shard in the group `default`.
pub fn shards(view: &ClusterView) -> String {
    if view.shards.is_empty() {
        return "every resource has one shard, in the group default\n".to_owned();
    }
    let count = |groups: &[String]| groups.len().to_string();
    let row = |shards: &ShardsView| {
        let next = shards.next.as_deref().map_or_else(|| "-".to_owned(), count);
        [shards.resource.clone(), count(&shards.groups), next, shards.groups.join(",")]
    };
    let rows: Vec<_> = view.shards.iter().map(row).collect();
    format!(
        "{}every other resource has one shard, in the group default\n",
        table(["RESOURCE", "SHARDS", "NEXT", "GROUPS"], &rows)
    )
}

/// Returns how many groups a member leads, and whether it is drained.
fn leads(member: &MemberView) -> String {
    let note = if member.drained { " (drained)" } else { "" };
    format!("{}{note}", member.leads.len())
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Formats a table as text: columns as wide as their widest cell, three spaces apart. Control characters, which clients
/// may have sent, are replaced by spaces, since a terminal would obey them.
pub fn table<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| cell.replace(char::is_control, " "))).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(|column| widest(column).max(titles[column].len()) + 3);
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<String>().trim_end().to_owned() + "\n"
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(titles)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_shown_in_columns() {
        let blank = || ClusterView {
            cluster: String::new(),
            told_by: "a".into(),
            members: Vec::new(),
            groups: Vec::new(),
            shards: Vec::new(),
        };
        assert_eq!(shards(&blank()), "every resource has one shard, in the group default\n");
        let groups = vec!["g1".to_owned(), "g2".to_owned()];
        let pods = ShardsView { resource: "pods".into(), groups, next: Some(vec!["g3".into(); 8]) };
        assert_eq!(
            shards(&ClusterView { shards: vec![pods], ..blank() }),
            "RESOURCE   SHARDS   NEXT   GROUPS\n\
             pods       2        8      g1,g2\n\
             every other resource has one shard, in the group default\n"
        );
    }

    #[test]
    fn a_cluster_that_is_not_founded_has_no_tables() {
        let (cluster, told_by) = (String::new(), String::new());
        let view = ClusterView { cluster, told_by, members: Vec::new(), groups: Vec::new(), shards: Vec::new() };
        assert_eq!(super::cluster(&view), "the cluster is not founded yet\n");
    }

    #[test]
    fn members_and_groups_are_shown_in_columns() {
        let member = |name: &str, votes, leads: &[&str]| MemberView {
            name: name.into(),
            id: "00000000000000ff".into(),
            address: "10.0.0.1:7443".into(),
            votes,
            reachable: true,
            drained: !votes,
            leads: leads.iter().map(|name| (*name).to_owned()).collect(),
        };
        let group = |name: &str, leader: &str, preferred: Option<&str>| GroupView {
            name: name.into(),
            leader: leader.into(),
            preferred: preferred.map(str::to_owned),
            term: 2,
            last_index: 1_234,
            commit_index: 1_233,
            applied_index: 1_233,
            snapshot_index: 0,
        };
        let view = ClusterView {
            cluster: "c0".into(),
            told_by: "a".into(),
            members: vec![member("a", true, &["g1", "g2"]), member("longer", false, &[])],
            groups: vec![group("default", "", None), group("g1", "a", Some("longer"))],
            shards: Vec::new(),
        };
        let want = "\
cluster c0, as a sees it

MEMBER   ADDRESS         VOTE   REACHABLE   LEADS         ID
a        10.0.0.1:7443   yes    yes         2             00000000000000ff
longer   10.0.0.1:7443   no     yes         0 (drained)   00000000000000ff

GROUP     LEADER   PREFERRED   TERM   LAST   COMMITTED   APPLIED   SNAPSHOT
default   -        -           2      1234   1233        1233      0
g1        a        longer      2      1234   1233        1233      0
";
        assert_eq!(cluster(&view), want);
    }
}
