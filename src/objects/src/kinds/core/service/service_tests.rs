use super::*;

fn broken(spec: Value) -> Vec<String> {
    let mut object = value!({"metadata": {"name": "n", "namespace": "x"}, "spec": spec});
    default(&mut object);
    let mut errors = Errors::default();
    validate(&object, None, &mut errors);
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_follow_the_type() {
    let mut object = value!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}],
        "sessionAffinity": "None", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}});
    default(&mut object);
    let expected = value!({"spec": {"type": "LoadBalancer", "sessionAffinity": "None",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "externalTrafficPolicy": "Cluster",
        "internalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true}});
    assert_eq!(object, expected);
    let again = object.clone();
    default(&mut object);
    assert_eq!(object, again);
}

#[test]
fn errors_name_their_fields() {
    assert_eq!(broken(value!({})), ["spec.ports: Required value"]);
    assert_eq!(
        broken(value!({"ports": [{"port": 0}]})),
        [
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"
        ]
    );
    assert_eq!(
        broken(value!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]})),
        [
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}"
        ]
    );
    assert_eq!(broken(value!({"type": "ExternalName"})), ["spec.externalName: Required value"]);
    assert_eq!(
        broken(value!({"type": "NodePort", "clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 80}]})),
        ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"]
    );
    assert_eq!(broken(value!({"healthCheckNodePort": 1, "ports": [{"port": 80}]})).len(), 1);
    assert!(broken(value!({"ports": [{"port": 80, "targetPort": "web"}], "selector": {"a": "b"}})).is_empty());
}

#[test]
fn a_change_of_the_type_clears_fields_of_the_old_one() {
    let old = value!({"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}], "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"], "externalTrafficPolicy": "Cluster"}, "status": {"loadBalancer": {}}});
    let mut new = old.clone();
    new.set_at(&["spec", "type"], "ClusterIP");
    change::prepare_update(&mut new, &old);
    assert!(new.at(&["spec", "externalTrafficPolicy"]).is_null());
    assert!(new.list_at(&["spec", "ports"])[0].at(&["nodePort"]).is_null());
    assert_eq!(new.str_at(&["spec", "clusterIP"]), "10.0.0.1");
    new.set_at(&["spec", "type"], "ExternalName");
    change::prepare_update(&mut new, &old);
    assert!(new.at(&["spec", "clusterIP"]).is_null());
    let mut errors = Errors::default();
    let mut moved = old.clone();
    moved.set_at(&["spec", "clusterIP"], "10.0.0.2");
    moved.set_at(&["spec", "clusterIPs"], value!(["10.0.0.2"]));
    change::validate_update(&moved, &old, &mut errors);
    assert_eq!(errors.0[0].to_string(), "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set");
}
