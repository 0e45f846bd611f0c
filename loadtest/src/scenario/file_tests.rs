use super::*;

const TEXT: &str = r#"
    name = "a"
    about = "b"
    [[phases]]
    name = "rise"
    seconds = 3
    load = [0, 1]
    [[phases]]
    name = "high"
    seconds = 1
    [actors.nodes]
    kind = "heartbeat"
    count = 100
    [actors.writers]
    kind = "writer"
    objects = 3
    pace = { rate = 10 }
"#;

fn changed(set: &[&str], scale: Option<f64>, seconds: Option<f64>) -> Result<Scenario, Error> {
    parse(TEXT, &Changes { set: set.iter().map(|text| (*text).to_owned()).collect(), scale, seconds })
}

fn nodes(scenario: &Scenario) -> usize {
    match &scenario.actors["nodes"] {
        Actor::Heartbeat(it) => it.count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_changes_values_of_the_file() {
    let scenario = changed(&["actors.nodes.count=20", "phases.1.seconds=2"], Some(0.01), Some(10.0)).unwrap();
    assert_eq!(nodes(&scenario), 1);
    assert_eq!(scenario.phases.iter().map(|phase| phase.seconds).collect::<Vec<_>>(), [6.0, 4.0]);
    assert_eq!(nodes(&changed(&["actors.nodes.count=20"], None, None).unwrap()), 20);
    assert!(matches!(&scenario.actors["writers"], Actor::Writer(it) if it.pace.rate == Some(0.1)));
}

#[test]
fn invalid_values_are_refused() {
    for (set, part) in [
        ("actors.nodes.count=0", "nodes: count is 0"),
        ("actors.nodes.size=1", "unknown field `size`"),
        ("actors.writers.pace={ rate = 1, clients = 1 }", "either rate or clients"),
        ("actors.writers.pace={ rate = -1 }", "rate is -1"),
        ("actors.none.count=1", "--set"),
        ("nonsense", "--set"),
        ("phases=[]", "its phases take 0 s"),
        ("actors.nodes.kind=ship", "unknown variant `ship`"),
    ] {
        let error = changed(&[set], None, None).unwrap_err().to_string();
        assert!(error.contains(part), "{set}: {error}");
    }
}
