use flotilla_proto::schema::Kind;
use flotilla_proto::{catalogue, conform, json, value};

use super::*;

const NOW: &str = "2026-01-02T03:04:05Z";
const LATER: &str = "2026-01-02T03:04:06Z";

fn kind(group: &str, version: &str, name: &str) -> &'static Kind {
    catalogue::kind(group, version, name).expect("a built-in kind")
}

fn resource(group: &'static str, version: &'static str, name: &'static str) -> ManagedResource<'static> {
    let reset: &[&[&str]] = if name == "ConfigMap" { &[] } else { &[&["status"]] };
    ManagedResource {
        of: &kind(group, version, name).of,
        group,
        version,
        kind: name,
        fixed: true,
        reset,
        versions: &OneVersion,
    }
}

fn config_map() -> ManagedResource<'static> {
    resource("", "v1", "ConfigMap")
}

fn by(manager: &str) -> Write<'_> {
    Write { manager, subresource: "", now: NOW }
}

fn object(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("test data is JSON")
}

fn decoded(resource: &ManagedResource<'_>, mut object: Value) -> Value {
    conform::conform(resource.of, &mut object).expect("test data fits its type");
    object
}

/// Returns the object after a create or update.
fn written(resource: &ManagedResource<'_>, write: &Write<'_>, live: Option<&Value>, new: &Value) -> Value {
    let mut new = decoded(resource, new.clone());
    update(resource, write, live, &mut new, false);
    new
}

/// Returns the object after an apply, decoded but not defaulted.
fn applied(
    resource: &ManagedResource<'_>,
    write: &Write<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> ApiResult<Value> {
    let outcome = apply(resource, write, live, config, force)?;
    let mut object = decoded(resource, outcome.object.clone().or(live.cloned()).expect("an object"));
    outcome.finish(&mut object);
    Ok(object)
}

/// Returns the fields of a manager that has a single entry.
fn fields(object: &Value, manager: &str) -> String {
    let entries = object.list_at(&["metadata", "managedFields"]);
    let entry = entries.iter().find(|entry| entry.str_at(&["manager"]) == manager);
    entry.map_or("none".to_owned(), |entry| text(entry.at(&["fieldsV1"])))
}

fn text(value: &Value) -> String {
    String::from_utf8(json::to_vec(value)).expect("JSON is UTF-8")
}

#[test]
fn an_update_owns_the_fields_that_it_changes() {
    let resource = config_map();
    let base = r#"{"metadata":{"name":"b"},"data":{"k":"v"}}"#;
    let one = written(&resource, &by("me"), None, &object(base));
    assert_eq!(fields(&one, "me"), r#"{"f:data":{".":{},"f:k":{}}}"#);
    let mut two = one.clone();
    two.set_at(&["data", "k"], "w");
    two.set_at(&["data", "z"], "1");
    let two = written(&resource, &by("other"), Some(&one), &two);
    assert_eq!(fields(&two, "me"), r#"{"f:data":{}}"#);
    assert_eq!(fields(&two, "other"), r#"{"f:data":{"f:k":{},"f:z":{}}}"#);
    let three = written(&resource, &by("me"), Some(&two), &object(r#"{"metadata":{"name":"b"},"data":{"q":"2"}}"#));
    assert_eq!(fields(&three, "me"), r#"{"f:data":{".":{},"f:q":{}}}"#);
    assert_eq!(fields(&three, "other"), "none");
}

#[test]
fn a_create_owns_the_set_fields_and_no_zero_values() {
    let resource = resource("apps", "v1", "Deployment");
    let deployment = r#"{"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":1}},
        "template":{"spec":{"tolerations":[{"key":"x"}],"containers":[{"name":"c","resources":{},"ports":[
        {"containerPort":443,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP"}]}]}}},"status":{"replicas":3}}"#;
    let created = written(&resource, &by("m"), None, &object(deployment));
    assert_eq!(
        fields(&created, "m"),
        concat!(
            r#"{"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{}}},"#,
            r#""f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:ports":{".":{},"#,
            r#""k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}},"#,
            r#""k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"#,
            r#""f:resources":{}}},"f:tolerations":{}}}}}"#
        )
    );
}

#[test]
fn tracking_is_switched_off_until_an_apply() {
    let resource = config_map();
    let live = written(&resource, &by("me"), None, &object(r#"{"metadata":{"name":"b"},"data":{"k":"v"}}"#));
    for list in ["[]", "[{}]"] {
        let mut off = live.clone();
        off.set_at(&["metadata", "managedFields"], object(list));
        assert!(untracks(&off));
        update(&resource, &by("me"), Some(&live), &mut off, true);
        assert!(off.at(&["metadata", "managedFields"]).is_null());
        off.set_at(&["data", "l"], "w");
        let off = written(&resource, &by("me"), Some(&off.clone()), &off);
        assert!(off.at(&["metadata", "managedFields"]).is_null());
        let config = object(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"m":"1"}}"#);
        let on = applied(&resource, &by("m1"), Some(&off), &config, false).expect("no conflict");
        assert_eq!(fields(&on, "before-first-apply"), r#"{"f:data":{".":{},"f:k":{},"f:l":{}}}"#);
        assert_eq!(fields(&on, "m1"), r#"{"f:data":{"f:m":{}}}"#);
    }
}

#[test]
fn entries_of_clients_are_made_canonical_or_ignored() {
    let resource = resource("", "v1", "Service");
    let live = written(&resource, &by("me"), None, &object(r#"{"metadata":{"name":"b"},"spec":{"type":"ClusterIP"}}"#));
    let mut new = live.clone();
    let own = r#"[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":
        {"f:spec":{"f:ports":{"k:{\"protocol\":\"TCP\", \"port\":80.0}":{}},"f:selector":{"f:a":{}},"q:new":{}}}}]"#;
    new.set_at(&["metadata", "managedFields"], object(own));
    update(&resource, &by("me"), Some(&live), &mut new, false);
    assert_eq!(
        fields(&new, "x"),
        r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{}},"f:selector":{}}}"#
    );
    for bad in
        [r#"{"operation":"Sideways"}"#, r#"{"operation":"Update"}"#, r#"{"operation":"Update","apiVersion":"v1"}"#]
    {
        let mut new = live.clone();
        new.set_at(&["metadata", "managedFields"], Value::Array(vec![object(bad)]));
        assert!(validate(new.at(&["metadata", "managedFields"])).is_err());
        update(&resource, &by("me"), Some(&live), &mut new, false);
        assert_eq!(fields(&new, "me"), fields(&live, "me"));
    }
}

#[test]
fn old_updates_are_merged() {
    let resource = config_map();
    let mut live = written(&resource, &by("u00"), None, &object(r#"{"metadata":{"name":"a"},"data":{"k00":"v"}}"#));
    for n in 1..15 {
        let mut new = live.clone();
        new.set_at(&["data", &format!("k{n:02}")], "v");
        live = written(&resource, &by(&format!("u{n:02}")), Some(&live), &new);
    }
    let entries = live.list_at(&["metadata", "managedFields"]);
    assert_eq!(entries.len(), UPDATERS_MAX);
    assert_eq!(entries[0].str_at(&["manager"]), "ancient-changes");
    assert_eq!(
        text(entries[0].at(&["fieldsV1"])),
        r#"{"f:data":{".":{},"f:k00":{},"f:k01":{},"f:k02":{},"f:k03":{},"f:k04":{},"f:k05":{}}}"#
    );
}

#[test]
fn conflicts_name_fields_and_managers() {
    let resource = resource("apps", "v1", "Deployment");
    let config = |image: &str, replicas: i64| {
        value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": replicas,
            "template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let live = written(&resource, &by("creator"), None, &config("a", 1));
    let error = applied(&resource, &by("m1"), Some(&live), &config("b", 2), false).expect_err("a conflict");
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            409,
            "Apply failed with 2 conflicts: conflicts with \"creator\" using apps/v1:\n- .spec.replicas\n\
             - .spec.template.spec.containers[name=\"c\"].image"
        )
    );
    let forced = applied(&resource, &by("m1"), Some(&live), &config("b", 2), true).expect("force wins");
    assert_eq!(forced.int_at(&["spec", "replicas"]), Some(2));
    assert!(!fields(&forced, "creator").contains("f:replicas"));
    let error = applied(&resource, &by("creator"), Some(&forced), &config("b", 3), false).expect_err("a conflict");
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"m1\": .spec.replicas");
}

#[test]
fn fields_that_are_no_longer_applied_are_removed_unless_others_own_them() {
    let resource = config_map();
    let config =
        |data: Value| value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let live = applied(&resource, &by("m1"), None, &config(value!({"a": "1", "b": "2"})), false).expect("created");
    let live = applied(&resource, &by("m2"), Some(&live), &config(value!({"b": "2"})), false).expect("the same value");
    let live = applied(&resource, &by("m1"), Some(&live), &config(value!({"c": "3"})), false).expect("no conflict");
    assert_eq!(text(live.at(&["data"])), r#"{"b":"2","c":"3"}"#);
    let live = applied(&resource, &by("m2"), Some(&live), &config(Value::Null), false).expect("no conflict");
    assert_eq!(text(live.at(&["data"])), r#"{"c":"3"}"#);
}

#[test]
fn configurations_must_fit() {
    let resource = resource("", "v1", "Service");
    for (config, code, message) in [
        (r#"{"kind":"Service"}"#, 400, "invalid object type: /, Kind=Service"),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","managedFields":[]}}"#,
            400,
            "metadata.managedFields must be nil",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","managedFields":{}}}"#,
            500,
            "failed to create typed patch object (/s; /v1, Kind=Service): .metadata.managedFields: expected list, got &{map[]}",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":{"a":1e20,"b":["c",{}]}}]}}"#,
            500,
            "failed to create typed patch object (/s; /v1, Kind=Service): .spec.ports[port=a=1e+20b=[\"c\",],protocol=\"TCP\"].port: expected numeric (int or float), got map[string]interface {}",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"bogus":1}}"#,
            500,
            "failed to create typed patch object (/s; /v1, Kind=Service): .spec.bogus: field not declared in schema",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":80},{"port":80}]}}"#,
            500,
            "failed to create typed patch object (/s; /v1, Kind=Service): .spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"type":5}}"#,
            500,
            "failed to create typed patch object (/s; /v1, Kind=Service): .spec.type: expected string, got &value.valueUnstructured{Value:5}",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":"80"}]}}"#,
            500,
            "failed to create typed patch object (/s; /v1, Kind=Service): .spec.ports[port=\"80\",protocol=\"TCP\"].port: expected numeric (int or float), got string",
        ),
    ] {
        let error = apply(&resource, &by("m"), None, &object(config), false).expect_err(config);
        assert_eq!((error.code, error.message.as_str()), (code, message));
    }
}

#[test]
fn kubectl_takes_over_fields_of_its_client_side_apply() {
    let resource = config_map();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let mut created = object(last);
    created.set_at(&["metadata", "annotations", annotation], last);
    let live = written(&resource, &by("kubectl-client-side-apply"), None, &created);
    let config = object(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v2"}}"#);
    assert!(applied(&resource, &by("other"), Some(&live), &config, false).is_err());
    let taken = applied(&resource, &by("kubectl"), Some(&live), &config, false).expect("no conflict");
    assert_eq!(
        taken.str_at(&["metadata", "annotations", annotation]),
        "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"
    );
}

/// Versions of a kind that differ only in `apiVersion`.
struct Renamed;

impl Versions for Renamed {
    fn convert(&self, object: &Value, api_version: &str) -> ApiResult<Option<(Ref<Type>, Value)>> {
        let Some(version) = api_version.strip_prefix("autoscaling/") else { return Ok(None) };
        let mut object = object.clone();
        object.set_at(&["apiVersion"], api_version);
        Ok(catalogue::kind("autoscaling", version, "HorizontalPodAutoscaler").map(|kind| (kind.of.clone(), object)))
    }
}

#[test]
fn managers_of_other_versions_keep_their_fields() {
    let in_version =
        |version| ManagedResource { versions: &Renamed, ..resource("autoscaling", version, "HorizontalPodAutoscaler") };
    let config = |version: &str, max: i64| value!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {"maxReplicas": max}});
    let live = applied(&in_version("v2"), &by("m1"), None, &config("autoscaling/v2", 5), false).expect("created");
    let mut seen = live.clone();
    seen.set_at(&["apiVersion"], "autoscaling/v1");
    let v1 = in_version("v1");
    let error = applied(&v1, &by("m2"), Some(&seen), &config("autoscaling/v1", 6), false).expect_err("a conflict");
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"m1\": .spec.maxReplicas");
    let both = applied(&v1, &by("m2"), Some(&seen), &config("autoscaling/v1", 5), false).expect("the same value");
    assert_eq!(fields(&both, "m1"), r#"{"f:spec":{"f:maxReplicas":{}}}"#);
    let mut gone = both.clone();
    let old = text(both.at(&["metadata", "managedFields"])).replace("autoscaling/v2", "autoscaling/v0");
    gone.set_at(&["metadata", "managedFields"], object(&old));
    let forgotten = applied(&v1, &by("m2"), Some(&gone), &config("autoscaling/v1", 7), false).expect("nobody else");
    assert_eq!(fields(&forgotten, "m1"), "none");
}

#[test]
fn the_writer_of_a_scale_owns_the_replicas_of_its_object() {
    let paths: scale::Paths<'_> = &[("apps/v1", Some(&["spec", "replicas"]))];
    let resource = resource("apps", "v1", "Deployment");
    let config = object(
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":3,"paused":true}}"#,
    );
    let live = applied(&resource, &by("user"), None, &config, false).expect("created");
    let owners = live.at(&["metadata", "managedFields"]);
    let scaled = scale::to_scale(owners, paths).expect("readable");
    assert_eq!(text(scaled.list_at(&[])[0].at(&["fieldsV1"])), r#"{"f:spec":{"f:replicas":{}}}"#);
    let hpa = object(
        r#"[{"manager":"hpa","operation":"Update","apiVersion":"autoscaling/v1","time":"2026-01-02T03:04:05Z",
            "fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}]"#,
    );
    let back = scale::to_parent(owners, &hpa, "apps/v1", paths).expect("readable");
    let mut after = live.clone();
    after.set_at(&["metadata", "managedFields"], back);
    assert_eq!(fields(&after, "user"), r#"{"f:spec":{"f:paused":{}}}"#);
    let entry = &after.list_at(&["metadata", "managedFields"])[1];
    assert_eq!((entry.str_at(&["apiVersion"]), entry.get("time")), ("apps/v1", None));
}

#[test]
fn writes_that_change_only_times_are_none() {
    let resource = config_map();
    let live = written(&resource, &by("me"), None, &object(r#"{"metadata":{"name":"b"},"data":{"k":"v"}}"#));
    let mut new = live.clone();
    let moved = text(live.at(&["metadata", "managedFields"])).replace(NOW, LATER);
    new.set_at(&["metadata", "managedFields"], object(&moved));
    let mut other = new.clone();
    restore_times(&live, &mut new);
    assert_eq!(new, live);
    other.set_at(&["data", "k"], "w");
    let before = other.clone();
    restore_times(&live, &mut other);
    assert_eq!(other, before);
}

/// A small deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Returns a random set in canonical form.
    fn set(&mut self, depth: u32) -> Map {
        let mut set = Map::new();
        for name in ["a", "b", "c"] {
            let below = if depth > 0 && self.roll(2) == 0 { self.set(depth - 1) } else { Map::new() };
            if let Some(node) = set::node(self.roll(2) == 0, below) {
                set.insert(element::of_name(name), node);
            }
        }
        set
    }

    /// Returns a random configuration of a pod.
    fn pod(&mut self) -> Value {
        let mut containers = Vec::new();
        for name in ["x", "y", "z"] {
            if name == "x" || self.roll(3) > 0 {
                let mut container = value!({"name": name, "image": (format!("i{}", self.roll(3)))});
                for variable in ["A", "B"] {
                    if self.roll(2) == 0 {
                        let mut env = container.list_at(&["env"]).to_vec();
                        env.push(value!({"name": variable, "value": (format!("{}", self.roll(2)))}));
                        container.set_at(&["env"], Value::Array(env));
                    }
                }
                containers.push(container);
            }
        }
        if self.roll(2) == 0 {
            containers.reverse();
        }
        let mut pod = value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"t": "x"}}, "spec": {"containers": (Value::Array(containers))}});
        for (key, sides) in [("a", 3), ("b", 2)] {
            if self.roll(sides) > 0 {
                pod.set_at(&["metadata", "labels", key], format!("{}", self.roll(3)));
            }
        }
        pod
    }
}

fn with(mut a: Map, b: &Map, change: fn(&mut Map, &Map)) -> Map {
    change(&mut a, b);
    a
}

#[test]
fn sets_obey_the_laws_of_sets() {
    let paths = |set: &Map| {
        let mut room = usize::MAX;
        set::paths(set, &mut room).len()
    };
    let mut dice = Dice(3);
    for _ in 0..3000 {
        let (a, b, c) = (dice.set(2), dice.set(2), dice.set(2));
        let union = with(a.clone(), &b, set::unite);
        let (rest, common) = (with(a.clone(), &b, set::subtract), set::intersection(&a, &b));
        assert_eq!(union, with(b.clone(), &a, set::unite), "union commutes");
        assert_eq!(common, set::intersection(&b, &a), "intersection commutes");
        assert_eq!(with(rest.clone(), &common, set::unite), a, "a set is what it shares and what it does not");
        assert!(set::intersection(&rest, &b).is_empty(), "nothing is left of what was taken");
        assert_eq!(with(rest.clone(), &b, set::unite), union, "taking and adding is adding");
        assert!(set::is_within(&common, &a) && set::is_within(&a, &union));
        assert_eq!(
            set::intersection(&union, &c),
            with(set::intersection(&a, &c), &set::intersection(&b, &c), set::unite),
            "intersection distributes"
        );
        assert_eq!(set::canonical(&union.clone().into()), Ok(union.clone()), "results are canonical");
        assert_eq!(paths(&union) + paths(&common), paths(&a) + paths(&b));
    }
}

#[test]
fn applying_twice_changes_nothing() {
    let (resource, mut dice) = (resource("", "v1", "Pod"), Dice(11));
    for _ in 0..400 {
        let mut live = None;
        for step in 0..6 {
            let manager = ["m1", "m2", "m3"][usize::try_from(dice.roll(3)).unwrap_or(0)];
            let config = dice.pod();
            let once = applied(&resource, &by(manager), live.as_ref(), &config, true).expect("forced");
            let again = apply(&resource, &by(manager), Some(&once), &config, false).expect("all is owned");
            assert!(again.object.is_none(), "step {step}: {}", text(&config));
            let mut same = once.clone();
            again.finish(&mut same);
            assert_eq!(same, once);
            live = Some(once);
        }
    }
}

#[test]
fn an_apply_of_nothing_removes_the_fields_of_its_manager() {
    let (resource, mut dice) = (resource("", "v1", "Pod"), Dice(5));
    let nothing = object(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#);
    for _ in 0..400 {
        let (first, second) = (dice.pod(), dice.pod());
        let alone = applied(&resource, &by("m1"), None, &first, false).expect("created");
        let both = applied(&resource, &by("m2"), Some(&alone), &second, true).expect("forced");
        let left = applied(&resource, &by("m2"), Some(&both), &nothing, false).expect("no conflict");
        let back = applied(&resource, &by("m1"), Some(&left), &first, true).expect("forced");
        assert_eq!(fields(&left, "m2"), "none");
        // The order of items may differ, their content must not.
        let owned = |object: &Value| text(&owned::fields(resource.of, object).into());
        let bare = |object: &Value| {
            let mut object = object.clone();
            object.remove_at(&["metadata", "managedFields"]);
            owned(&object)
        };
        assert_eq!(bare(&back), bare(&alone));
    }
}

#[test]
fn appliers_of_different_fields_do_not_depend_on_order() {
    let resource = config_map();
    let config =
        |key: &str| value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {key: "v"}});
    let run = |order: &[&str]| {
        let mut live = None;
        for key in order {
            live = Some(applied(&resource, &by(key), live.as_ref(), &config(key), false).expect("no conflict"));
        }
        live.expect("something was applied")
    };
    assert_eq!(run(&["a", "b", "c"]), run(&["c", "a", "b"]));
}

#[test]
fn the_writer_of_a_change_owns_it() {
    let (resource, mut dice) = (resource("", "v1", "Pod"), Dice(23));
    for _ in 0..400 {
        let (before, after) = (dice.pod(), dice.pod());
        let live = written(&resource, &by("first"), None, &before);
        let mut next = after.clone();
        next.set_at(&["metadata", "managedFields"], live.at(&["metadata", "managedFields"]).clone());
        let new = written(&resource, &by("second"), Some(&live), &next);
        let all = owned::fields(resource.of, &decoded(&resource, after));
        let mut nobody = all.clone();
        for entry in new.list_at(&["metadata", "managedFields"]) {
            let Value::Object(set) = entry.at(&["fieldsV1"]) else { panic!("fields are an object") };
            set::subtract(&mut nobody, set);
        }
        apply::strip(&mut nobody);
        // The fields without an owner are the zero values of the type, which every object has.
        let zero = owned::fields(resource.of, &conform::zero(resource.of));
        assert!(set::is_within(&nobody, &zero), "{}", text(&nobody.into()));
    }
}
