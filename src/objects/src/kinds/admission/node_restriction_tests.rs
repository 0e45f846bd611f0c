use flotilla_proto::value;

use super::*;

fn mirror() -> Value {
    value!({
        "metadata": {
            "name": "p",
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    })
}

#[test]
fn mirror_pods() {
    assert_eq!(mirror_pod("n", &mirror()).unwrap(), "u");
    assert!(mirror_pod("m", &mirror()).unwrap_err().contains("spec.nodeName set to itself"));
    let why = mirror_pod("n", &value!({"spec": {"nodeName": "n"}})).unwrap_err();
    assert!(why.contains("can only create mirror pods"), "{why}");
    assert_eq!(refers_to_nothing("n", &mirror()), Ok(()));
    for (volume, what) in [
        (value!({"name": "v", "secret": {"secretName": "s"}}), "secrets"),
        (value!({"name": "v", "configMap": {"name": "s"}}), "configmaps"),
        (value!({"name": "v", "csi": {"driver": "d"}}), "csidrivers (via CSI volumes)"),
        (value!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}), "persistentvolumeclaims"),
        (
            value!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "p"}}]}}),
            "serviceaccounts (via projected volumes)",
        ),
    ] {
        let pod = value!({"spec": {"volumes": [(volume)]}});
        let why = refers_to_nothing("n", &pod).unwrap_err();
        assert_eq!(why, format!("node \"n\" can not create pods that reference {what}"));
    }
    assert_eq!(refers_to_nothing("n", &value!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})), Ok(()));
}

#[test]
fn labels_of_nodes() {
    let node = |key: &str, label: &str| value!({"metadata": {"labels": {key: label}}, "spec": {}});
    for own in ["kubernetes.io/hostname", "mine", "example.com/x", "x.node.kubernetes.io/y", "kubelet.kubernetes.io/z"]
    {
        assert_eq!(new_node("n", &node(own, "1")), Ok(()), "{own}");
    }
    for other in ["node-restriction.kubernetes.io/a", "x.node-restriction.kubernetes.io/a", "node-role.kubernetes.io/m"]
    {
        let why = new_node("n", &node(other, "1")).unwrap_err();
        assert_eq!(why, format!("node \"n\" is not allowed to set the following labels: {other}"));
        assert_eq!(changed_node("n", &node(other, "1"), &node(other, "1")), Ok(()));
        let why = changed_node("n", &node(other, "2"), &node(other, "1")).unwrap_err();
        assert_eq!(why, format!("is not allowed to modify labels: {other}"));
    }
}

#[test]
fn changes_of_nodes() {
    let old = value!({"metadata": {}, "spec": {}});
    let tainted = value!({"metadata": {}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    assert!(changed_node("n", &tainted, &old).unwrap_err().ends_with("is not allowed to modify taints"));
    let owned = value!({"metadata": {"ownerReferences": [{"name": "x"}]}, "spec": {}});
    assert!(changed_node("n", &owned, &old).unwrap_err().ends_with("is not allowed to modify ownerReferences"));
}

#[test]
fn status_of_pods_and_claims() {
    let pod = |node: &str, label: &str| value!({"metadata": {"labels": {"a": label}}, "spec": {"nodeName": node}});
    assert_eq!(pod_status("n", &pod("n", "1"), &pod("n", "1")), Ok(()));
    assert!(pod_status("n", &pod("n", "1"), &pod("n", "2")).unwrap_err().contains("cannot update labels"));
    assert!(pod_status("m", &pod("n", "1"), &pod("n", "1")).is_err());
    let claim =
        |phase: &str, size: &str| value!({"metadata": {}, "status": {"phase": phase, "capacity": {"storage": size}}});
    assert_eq!(claim_status("n", &claim("Bound", "2Gi"), &claim("Bound", "1Gi")), Ok(()));
    assert!(claim_status("n", &claim("Lost", "1Gi"), &claim("Bound", "1Gi")).is_err());
}
