use flotilla_proto::value;

use super::super::Fairness;
use super::*;

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.into(), groups: groups.iter().map(|group| (*group).into()).collect(), ..User::default() }
}

fn schema(precedence: i64, level: &str, group: &str) -> FlowSchema {
    FlowSchema::read(&value!({
        "metadata": {"uid": (format!("uid-{precedence}"))},
        "spec": {
            "matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level},
            "distinguisherMethod": {"type": "ByNamespace"},
            "rules": [{
                "subjects": [{"kind": "Group", "group": {"name": group}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    }))
}

fn level() -> PriorityLevel {
    PriorityLevel::read(&value!({
        "metadata": {"uid": "uid-of-level"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5, "lendablePercent": 10, "borrowingLimitPercent": 20,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 4, "handSize": 2, "queueLengthLimit": 7}},
        }},
    }))
}

fn of(fairness: &Fairness, groups: &[&str]) -> String {
    let flow = fairness.flow(&user("ann", groups), &Attributes::Path { verb: "get", path: "/x" });
    format!("{} {}", flow.schema, flow.level.name)
}

#[test]
fn objects_are_read() {
    let read = level();
    assert_eq!(read.share, Share { shares: 5, lendable_percent: 10, borrowing_percent: Some(20) });
    assert_eq!(read.queuing, Some(Queuing { queues: NonZeroU32::new(4).unwrap(), hand: 2, length: 7 }));
    let exempt = PriorityLevel::read(&value!({
        "spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 3, "lendablePercent": 50}},
    }));
    assert_eq!(exempt.share, Share { shares: 3, lendable_percent: 50, borrowing_percent: None });
    let schema = schema(7, "a", "b");
    assert_eq!((schema.precedence, schema.distinguisher), (7, Distinguisher::Namespace));
}

#[test]
fn exempt_and_catch_all_exist_without_objects() {
    let fairness = Fairness::new(600);
    assert_eq!(of(&fairness, &[MASTERS]), "exempt exempt");
    assert_eq!(of(&fairness, &["system:authenticated"]), "catch-all catch-all");
    assert_eq!(of(&fairness, &[]), "catch-all catch-all", "no schema matches");
    let flow = fairness.flow(&user("ann", &[MASTERS]), &Attributes::Path { verb: "get", path: "/x" });
    assert!(flow.level.is_exempt && flow.schema_uid.is_empty() && flow.level_uid.is_empty());
}

#[test]
fn the_lowest_precedence_decides_then_the_name() {
    let fairness = Fairness::new(600);
    let mut objects = Objects::default();
    objects.levels.insert("l".into(), level());
    for (name, precedence) in [("b", 500), ("a", 500), ("c", 400)] {
        objects.schemas.insert(name.into(), schema(precedence, "l", "devs"));
    }
    objects.schemas.insert("z".into(), schema(2, "gone", "devs"));
    fairness.set(objects.clone());
    assert_eq!(of(&fairness, &["devs"]), "c l", "a schema whose level is missing does not count");
    let flow = fairness.flow(&user("ann", &["devs"]), &Attributes::Path { verb: "get", path: "/x" });
    assert_eq!((&flow.schema_uid, &flow.level_uid), (&header("uid-400"), &header("uid-of-level")));
    objects.schemas.remove("c");
    fairness.set(objects.clone());
    assert_eq!(of(&fairness, &["devs"]), "a l");
    objects.levels.insert("gone".into(), level());
    fairness.set(objects.clone());
    assert_eq!(of(&fairness, &["devs"]), "z gone");
    assert_eq!(of(&fairness, &["devs", MASTERS]), "exempt exempt");
    objects.levels.clear();
    fairness.set(objects);
    assert_eq!(of(&fairness, &["devs"]), "catch-all catch-all");
}

/// Prints the cost of a request's flow and seat, with the schemas that a cluster has from the start: run it with
/// `--ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn cost_of_a_flow_and_a_seat() {
    use std::time::{Duration, Instant};

    use super::super::Entered;

    let fairness = Fairness::new(600);
    let mut objects = Objects::default();
    objects.levels.insert("l".into(), level());
    for at in 0..12 {
        objects.schemas.insert(format!("s{at}").into(), schema(100 + at, "l", &format!("system:group-{at}")));
    }
    objects.schemas.insert("last".into(), schema(9_000, "l", "system:authenticated"));
    fairness.set(objects);
    let ann = user("ann", &["developers", "system:authenticated"]);
    let rounds = 2_000_000_u32;
    for user in [&ann, &user("admin", &[MASTERS, "system:authenticated"])] {
        let began = Instant::now();
        for _ in 0..rounds {
            let flow = fairness.flow(user, &Attributes::Path { verb: "get", path: "/x" });
            let Entered::Seated(seat) = flow.enter(&user.name, "") else { panic!("no seat") };
            std::hint::black_box((flow.schema_uid.clone(), flow.level_uid.clone()));
            flow.leave(seat, Duration::ZERO, false);
        }
        println!("{}: {:?} each", user.name, began.elapsed() / rounds);
    }
}
