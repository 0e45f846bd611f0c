use flotilla_proto::value;

use super::*;

#[test]
fn a_volume_has_one_complete_source() {
    let broken = |spec: Value| {
        let mut errors = Errors::default();
        validate(&spec, "v", &Path::root("spec"), &mut errors);
        errors.0.iter().map(|error| error.field.clone()).collect::<Vec<_>>()
    };
    assert_eq!(broken(value!({})), ["spec"]);
    assert_eq!(broken(value!({"hostPath": {"path": "/a"}, "nfs": {}})), ["spec.nfs"]);
    assert_eq!(broken(value!({"nfs": {"server": "s", "path": "x"}})), ["spec.nfs.path"]);
    assert_eq!(broken(value!({"local": {"path": "/a/../b"}})), ["spec.local.path", "spec.nodeAffinity"]);
    assert_eq!(
        broken(value!({"csi": {"driver": "d", "controllerExpandSecretRef": {"name": "s"}}})),
        ["spec.csi.volumeHandle", "spec.csi.controllerExpandSecretRef.namespace"]
    );
    let named = |name: &str| broken(value!({"iscsi": {"targetPortal": "1.2.3.4", "iqn": name}}));
    assert!(named("iqn.2001-04.com.example:storage").is_empty());
    assert!(named("eui.0123456789abcdef").is_empty());
    assert_eq!(named("iqn.2001-04.com.example"), ["spec.iscsi.iqn"]);
    assert_eq!(named("éué"), ["spec.iscsi.iqn"]);
}
