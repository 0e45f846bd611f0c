use flotilla_proto::value;

use super::*;

fn standard(level: Level, version: PolicyVersion) -> Standard {
    Standard { level, version }
}

fn detail(level: Level, version: PolicyVersion, spec: Value) -> String {
    in_detail(&violations(standard(level, version), &Value::object(), &spec))
}

fn policy(labels: &[(&str, &str)]) -> (Policy, Vec<String>) {
    let mut errors = Errors::default();
    let label = |key: &str| {
        let own = key.strip_prefix(PREFIX).unwrap();
        labels.iter().find(|(name, _)| *name == own).map(|(_, value)| *value)
    };
    let policy = Policy::default().read(label, &mut errors);
    (policy, errors.0.iter().map(ToString::to_string).collect())
}

#[test]
fn labels() {
    assert!(policy(&[]).0.is_privileged());
    let (read, errors) = policy(&[("enforce", "baseline"), ("enforce-version", "v1.25")]);
    assert_eq!((read.enforce.to_string(), read.warn), ("baseline:v1.25".to_owned(), read.enforce));
    assert!(errors.is_empty());
    assert_eq!(policy(&[("enforce", "baseline"), ("warn", "privileged")]).0.warn.level, Level::Privileged);
    let (read, errors) = policy(&[("enforce", "strict"), ("audit-version", "v1.01")]);
    assert_eq!((read.enforce.level, read.warn.level), (Level::Restricted, Level::Privileged));
    assert_eq!(
        errors,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of \
             privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"v1.01\": must be \"latest\" \
             or \"v1.x\"",
        ]
    );
}

#[test]
fn a_plain_pod() {
    let spec = value!({"containers": [{"name": "c"}]});
    assert_eq!(detail(Level::Baseline, PolicyVersion::Latest, spec.clone()), "");
    assert_eq!(
        detail(Level::Restricted, PolicyVersion::Latest, spec.clone()),
        "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod \
         or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    assert_eq!(
        in_short(&violations(standard(Level::Restricted, PolicyVersion::Minor(7)), &Value::object(), &spec)),
        "runAsNonRoot != true"
    );
}

#[test]
fn a_hardened_pod_meets_restricted() {
    let good = value!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        }}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    assert_eq!(detail(Level::Restricted, PolicyVersion::Latest, good), "");
}

#[test]
fn baseline_violations_are_listed() {
    let bad = value!({
        "hostPID": true,
        "securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}], "seLinuxOptions": {"type": "t", "user": "u"}},
        "containers": [
            {"name": "c", "ports": [{"hostPort": 80}, {"hostPort": 443}], "securityContext": {"privileged": true}},
            {"name": "d", "securityContext": {"privileged": true, "capabilities": {"add": ["NET_ADMIN"]}}},
        ],
        "volumes": [{"name": "h", "hostPath": {"path": "/"}}],
    });
    let latest = detail(Level::Baseline, PolicyVersion::Latest, bad.clone());
    assert_eq!(
        latest,
        "non-default capabilities (container \"d\" must not include \"NET_ADMIN\" in \
         securityContext.capabilities.add), host namespaces (hostPID=true), hostPath volumes (volume \"h\"), hostPort \
         (container \"c\" uses hostPorts 443, 80), privileged (containers \"c\", \"d\" must not set \
         securityContext.privileged=true), seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \
         \"t\"; user may not be set)"
    );
    assert!(
        detail(Level::Baseline, PolicyVersion::Minor(31), bad).ends_with(", forbidden sysctls (net.ipv4.tcp_rmem)")
    );
}

#[test]
fn versions_matter() {
    let own_users = value!({
        "hostUsers": false,
        "containers": [{"name": "c", "securityContext": {
            "runAsUser": 0, "procMount": "Unmasked", "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "Localhost"},
        }}],
    });
    assert_eq!(
        detail(Level::Restricted, PolicyVersion::Latest, own_users.clone()),
        "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"
    );
    assert_eq!(detail(Level::Baseline, PolicyVersion::Latest, own_users.clone()), "");
    let before = detail(Level::Restricted, PolicyVersion::Minor(34), own_users);
    assert!(before.starts_with("procMount") && before.contains("runAsUser=0"), "{before}");
}

#[test]
fn significant_changes() {
    let old = value!({"spec": {"containers": [{"name": "c", "image": "a"}]}});
    let mut new = old.clone();
    new.set_at(&["metadata", "labels"], value!({"a": "b"}));
    assert!(!is_significant(&new, &old));
    new.set_at(&["spec", "ephemeralContainers"], value!([{"name": "e", "image": "x"}]));
    assert!(is_significant(&new, &old) && !is_significant(&new, &new.clone()));
}
