//! A row that writes pods under admission policies.

use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use serde_json::json;

use super::{Context, write};
use crate::connection::{Call, Client, Error};
use crate::limits;
use crate::objects;

/// The number of policies.
const POLICIES: usize = 10;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// The collections of policies and of their bindings.
const COLLECTIONS: [&str; 2] = ["validatingadmissionpolicybindings", "validatingadmissionpolicies"];

/// The label of the pod with the number zero, by which policies decide.
const LABEL: &str = r#""app":"app-0""#;

/// Returns the value of this label that a policy refuses.
fn refused(number: usize) -> String {
    format!("refused-{number}")
}

fn name(number: usize) -> String {
    format!("loadtest-{number}")
}

/// Creates the policies, each with three expressions about the pods of the namespace for created pods, and waits until
/// the server enforces them.
pub async fn enforce(client: &mut Client, context: &Context) -> Result<(), Error> {
    lift(client).await?; // an earlier run may have been cut off
    let namespace = write::posted(context);
    for number in 0..POLICIES {
        let name = name(number);
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
                    }],
                },
                "validations": [
                    {"expression": format!("object.metadata.labels['app'] != '{}'", refused(number))},
                    {"expression": "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))"},
                    {"expression": "!has(object.spec.hostNetwork) || !object.spec.hostNetwork"},
                ],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        for (collection, object) in COLLECTIONS.into_iter().zip([binding, policy]) {
            let create = Call::with_json(Method::POST, format!("{GROUP}/{collection}"), object.to_string());
            client.must(&create, &[]).await?;
        }
    }
    for number in 0..POLICIES {
        wait(client, &namespace, number).await?;
    }
    Ok(())
}

/// Waits until the server enforces a policy.
async fn wait(client: &mut Client, namespace: &str, number: usize) -> Result<(), Error> {
    let pod = objects::pod("refused", 0).replacen(LABEL, &format!(r#""app":"{}""#, refused(number)), 1);
    let create = Call::with_json(Method::POST, format!("{}?dryRun=All", objects::pods(namespace)), pod);
    let start = Instant::now();
    while start.elapsed() < limits::PLUG_WAIT {
        if client.must(&create, &[422]).await?.status == StatusCode::UNPROCESSABLE_ENTITY {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(Error::Start(format!("the policy {} is not enforced", name(number))))
}

/// Deletes the policies.
pub async fn lift(client: &mut Client) -> Result<(), Error> {
    for collection in COLLECTIONS {
        for number in 0..POLICIES {
            let delete = Call { method: Method::DELETE, ..Call::get(format!("{GROUP}/{collection}/{}", name(number))) };
            client.must(&delete, &[404]).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_that_is_refused_has_the_label() {
        assert!(objects::pod("refused", 0).contains(LABEL));
    }
}
