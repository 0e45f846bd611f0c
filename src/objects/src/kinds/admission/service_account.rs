//! The plugin ServiceAccount: gives each pod a service account and mounts its token (KEP-1205).

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::tolerations::append;
use crate::rules::defaulting::objects;

/// The account of pods that name none.
const DEFAULT: &str = "default";
/// Where tokens are mounted.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Beginning of the name of the volume with the token.
const VOLUME_PREFIX: &str = "kube-api-access-";
/// Life of the token in seconds. The odd seconds beyond an hour mark tokens whose life the server may extend.
const TOKEN_SECONDS: i64 = 3607;
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Returns whether a pod is a mirror pod of a static pod of the kubelet; such pods have no service account.
pub fn is_mirror_pod(pod: &Value) -> bool {
    pod.at(&["metadata", "annotations", MIRROR]).as_str().is_some()
}

/// Writes the name of its account into both fields of a new pod: the default account if the pod names none.
fn name_account(pod: &mut Value) {
    let name = match pod.str_at(&["spec", "serviceAccountName"]) {
        "" => Value::from(DEFAULT),
        name => Value::from(name),
    };
    for key in ["serviceAccountName", "serviceAccount"] {
        pod.set_at(&["spec", key], name.clone());
    }
}

/// Gives a pod its account, the account's token and pull secrets. `lookup` finds an account by name; `suffix` is
/// random text of five characters that completes the volume's name.
pub fn set_service_account(
    pod: &mut Value,
    namespace: &str,
    suffix: &str,
    lookup: impl FnOnce(&str) -> Option<Value>,
) -> Result<(), String> {
    name_account(pod);
    let name = pod.str_at(&["spec", "serviceAccountName"]);
    let account = lookup(name).ok_or_else(|| missing_account(namespace, name))?;
    let flag = |object: &Value, path: &[&str]| object.at(path).as_bool();
    let key = "automountServiceAccountToken";
    if flag(pod, &["spec", key]).or(flag(&account, &[key])).unwrap_or(true) {
        mount_token(pod, suffix);
    }
    if pod.list_at(&["spec", "imagePullSecrets"]).is_empty() {
        let secrets = account.list_at(&["imagePullSecrets"]).iter();
        append(pod, &["spec", "imagePullSecrets"], secrets.map(|s| value!({"name": (s.str_at(&["name"]))})).collect());
    }
    check_account(pod, &account)
}

/// Returns the reason of a refusal: there is no such account.
pub fn missing_account(namespace: &str, name: &str) -> String {
    failed_look_up(namespace, name, &format!("serviceaccount {} not found", crate::field::quote(name)))
}

/// Returns the reason of a refusal: the account was not found, because of `why`.
pub fn failed_look_up(namespace: &str, name: &str, why: &str) -> String {
    format!("error looking up service account {namespace}/{name}: {why}")
}

fn mount_token(pod: &mut Value, suffix: &str) {
    let volumes = pod.list_at(&["spec", "volumes"]).iter();
    let own = volumes.map(|volume| volume.str_at(&["name"])).find(|name| name.starts_with(VOLUME_PREFIX));
    let has_volume = own.is_some();
    let name = own.map_or_else(|| format!("{VOLUME_PREFIX}{suffix}"), str::to_owned);
    let mut mounted = false;
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for list in ["initContainers", "containers"] {
        for container in objects(spec, list) {
            mounted |= mount(container, &name);
        }
    }
    if mounted && !has_volume {
        append(pod, &["spec", "volumes"], vec![token_volume(&name)]);
    }
}

/// Mounts the token, unless another volume is mounted at that path; returns whether it did.
fn mount(container: &mut Map, name: &str) -> bool {
    let mounts = container.entry("volumeMounts");
    if mounts.is_null() {
        *mounts = Value::Array(Vec::new());
    }
    let Some(mounts) = mounts.as_array_mut() else { return false };
    if mounts.iter().any(|mount| mount.str_at(&["mountPath"]) == MOUNT_PATH) {
        return false;
    }
    mounts.push(value!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
    true
}

fn token_volume(name: &str) -> Value {
    let token = value!({"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}});
    let authority = value!({"configMap": {
        "name": "kube-root-ca.crt",
        "items": [{"key": "ca.crt", "path": "ca.crt"}]
    }});
    let reference = value!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let namespace = value!({"downwardAPI": {"items": [{"path": "namespace", "fieldRef": reference}]}});
    value!({"name": name, "projected": {"sources": [token, authority, namespace], "defaultMode": 0o644}})
}

fn check_secrets(pod: &Value, account: &Value) -> Result<(), String> {
    let account_name = account.str_at(&["metadata", "name"]);
    let mountable = names(account, "secrets");
    for volume in pod.list_at(&["spec", "volumes"]) {
        let secret = volume.str_at(&["secret", "secretName"]);
        if volume.get("secret").is_some() && !mountable.contains(secret) {
            let why = format!("is not allowed because service account {account_name} does not reference that secret");
            return Err(format!("volume with secret.secretName=\"{secret}\" {why}"));
        }
    }
    let lists = [("initContainers", "init container"), ("containers", "container")];
    lists.into_iter().try_for_each(|(list, kind)| check_containers(pod, account, list, kind))?;
    let pulls = names(account, "imagePullSecrets");
    for (n, reference) in pod.list_at(&["spec", "imagePullSecrets"]).iter().enumerate() {
        let name = reference.str_at(&["name"]);
        if !pulls.contains(name) {
            let why = format!("because service account {account_name} does not reference that imagePullSecret");
            return Err(format!("imagePullSecrets[{n}].name=\"{name}\" is not allowed {why}"));
        }
    }
    Ok(())
}

/// Returns the names in a list of references.
fn names<'v>(account: &'v Value, list: &str) -> HashSet<&'v str> {
    account.list_at(&[list]).iter().map(|reference| reference.str_at(&["name"])).collect()
}

/// Checks that the containers of a list take variables only from secrets that the account references.
fn check_containers(pod: &Value, account: &Value, list: &str, kind: &str) -> Result<(), String> {
    let (account_name, mountable) = (account.str_at(&["metadata", "name"]), names(account, "secrets"));
    let refused = |what: String, secret: &str| {
        let why = format!("is not allowed because service account {account_name} does not reference that secret");
        Err(format!("{what} secret.secretName=\"{secret}\" {why}"))
    };
    for container in pod.list_at(&["spec", list]) {
        let name = container.str_at(&["name"]);
        for variable in container.list_at(&["env"]) {
            let secret = variable.at(&["valueFrom", "secretKeyRef"]);
            let key = secret.str_at(&["name"]);
            if !secret.is_null() && !mountable.contains(key) {
                let variable = variable.str_at(&["name"]);
                return refused(format!("{kind} {name} with envVar {variable} referencing"), key);
            }
        }
        for source in container.list_at(&["envFrom"]) {
            let secret = source.str_at(&["secretRef", "name"]);
            if source.get("secretRef").is_some() && !mountable.contains(secret) {
                return refused(format!("{kind} {name} with envFrom referencing"), secret);
            }
        }
    }
    Ok(())
}

/// Checks the ephemeral containers of a pod: if its account demands it, they may use only the secrets that the account
/// references.
///
/// # Errors
/// The secret that the account does not reference.
pub fn check_ephemeral_containers(pod: &Value, account: &Value) -> Result<(), String> {
    if demands_references(account) {
        check_containers(pod, account, "ephemeralContainers", "ephemeral container")?;
    }
    Ok(())
}

/// Returns whether the pods of an account may use only the secrets that it references.
fn demands_references(account: &Value) -> bool {
    let enforced = account.str_at(&["metadata", "annotations", ENFORCE]);
    matches!(enforced, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Checks a finished pod with its account.
///
/// # Errors
/// The secret that the account does not reference.
pub fn check_account(pod: &Value, account: &Value) -> Result<(), String> {
    if demands_references(account) { check_secrets(pod, account) } else { Ok(()) }
}

/// Checks a mirror pod: since the kubelet made it, it must have no service account and no secrets.
pub fn check_mirror_pod(pod: &Value) -> Result<(), String> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".into());
    }
    let spec = pod.at(&["spec"]);
    let pulls = spec.list_at(&["imagePullSecrets"]).iter().any(|secret| !secret.str_at(&["name"]).is_empty());
    let mut has_secrets = pulls || spec.list_at(&["volumes"]).iter().any(|volume| volume.get("secret").is_some());
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.list_at(&[list]) {
            let mut variables = container.list_at(&["env"]).iter();
            has_secrets |= variables.any(|variable| !variable.at(&["valueFrom", "secretKeyRef"]).is_null());
            has_secrets |= container.list_at(&["envFrom"]).iter().any(|source| source.get("secretRef").is_some());
        }
    }
    if has_secrets {
        return Err("a mirror pod may not reference secrets".into());
    }
    let sources = spec.list_at(&["volumes"]).iter().flat_map(|volume| volume.list_at(&["projected", "sources"]));
    if sources.into_iter().any(|source| source.get("serviceAccountToken").is_some()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".into());
    }
    Ok(())
}
