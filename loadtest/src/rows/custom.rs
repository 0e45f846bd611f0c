//! Rows that create custom resources, with and without CEL rules.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use super::{Context, write};
use crate::connection::{Call, Client, Error};
use crate::limits;
use crate::operation::Operation;

const GROUP: &str = "loadtest.example.com";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A custom resource whose objects a row creates.
#[derive(Debug)]
pub struct Definition {
    plural: &'static str,
    kind: &'static str,
    has_rules: bool,
}

/// A custom resource with twenty rules that are typical of operators.
pub static RULED: Definition = Definition { plural: "ruledfleets", kind: "RuledFleet", has_rules: true };
/// The same resource without rules.
pub static UNRULED: Definition = Definition { plural: "unruledfleets", kind: "UnruledFleet", has_rules: false };

impl Definition {
    /// Creates the definition, and waits until the server serves the resource.
    pub async fn define(&self, client: &mut Client) -> Result<(), Error> {
        client.must(&Call::with_json(Method::POST, DEFINITIONS, self.stated().to_string()), &[409]).await?;
        let start = Instant::now();
        let list = Call::get(format!("/apis/{GROUP}/v1/{}?limit=1", self.plural));
        while !client.must(&list, &[404]).await?.status.is_success() {
            if start.elapsed() > limits::DEFINITION_WAIT {
                return Err(Error::Timeout);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Deletes the definition and its objects.
    pub async fn forget(&self, client: &mut Client) -> Result<(), Error> {
        let path = format!("{DEFINITIONS}/{}.{GROUP}", self.plural);
        client.must(&Call { method: Method::DELETE, ..Call::get(path) }, &[404]).await?;
        Ok(())
    }

    fn stated(&self) -> Value {
        let mut spec = spec_schema();
        if self.has_rules {
            spec["x-kubernetes-validations"] = rules();
        }
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{GROUP}", self.plural)},
            "spec": {
                "group": GROUP, "scope": "Namespaced", "names": {"plural": self.plural, "kind": self.kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        })
    }

    fn post(&'static self, context: &Context, number: usize) -> Box<dyn Operation> {
        let path = format!("/apis/{GROUP}/v1/namespaces/{}/{}", context.namespace, self.plural);
        let run = write::run_id();
        let mut count = 0;
        Box::new(move || {
            count += 1;
            Call::with_json(Method::POST, path.clone(), self.object(&format!("f-{run}-{number}-{count}")).to_string())
        })
    }

    fn object(&self, name: &str) -> Value {
        let port = |name: &str, number: u16| json!({"name": name, "port": number, "protocol": "TCP"});
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": self.kind, "metadata": {"name": name},
            "spec": {
                "replicas": 3, "minReplicas": 1, "maxReplicas": 10, "class": "standard", "host": "a.example.com",
                "schedule": "daily", "paths": ["/a", "/b", "/c"], "labels": {"app": "fleet", "tier": "front"},
                "ports": [port("http", 80), port("https", 443)], "template": {"name": "ship", "image": "ships/ship:1"},
                "budget": {"soft": 10, "hard": 20},
            },
        })
    }
}

fn spec_schema() -> Value {
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    let number = json!({"type": "integer"});
    let port = json!({"type": "object", "required": ["name"],
        "properties": {"name": text(63), "port": number, "protocol": text(4)}});
    json!({"type": "object", "required": ["replicas", "class"], "properties": {
        "replicas": number, "minReplicas": number, "maxReplicas": number,
        "class": text(63), "host": text(253), "schedule": text(63),
        "paths": {"type": "array", "maxItems": 16, "items": text(256)},
        "labels": {"type": "object", "maxProperties": 16, "additionalProperties": text(63)},
        "ports": {"type": "array", "maxItems": 16, "items": port,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "template": {"type": "object", "properties": {"name": text(63), "image": text(256)}},
        "budget": {"type": "object", "properties": {"soft": number, "hard": number}},
    }})
}

/// Returns twenty rules that the objects satisfy.
fn rules() -> Value {
    let rules = [
        "self.replicas >= self.minReplicas",
        "self.replicas <= self.maxReplicas",
        "self.minReplicas <= self.maxReplicas",
        "self.class in ['standard', 'large', 'small']",
        "!has(self.host) || self.host.endsWith('.example.com')",
        "!has(self.host) || !self.host.startsWith('.')",
        "self.paths.all(p, p.startsWith('/'))",
        "size(self.paths) > 0 || has(self.host)",
        "self.ports.all(p, p.port > 0 && p.port < 65536)",
        "self.ports.exists(p, p.name == 'http' || p.name == 'https')",
        "self.ports.all(p, p.protocol in ['TCP', 'UDP'])",
        "has(self.template) && self.template.name != ''",
        "self.template.image.contains('/')",
        "self.template.image.matches('^[a-z/]+:[a-z0-9.]+$')",
        "self.budget.soft <= self.budget.hard",
        "!('kubernetes.io/os' in self.labels)",
        "self.labels.all(k, size(k) <= 63)",
        "self.schedule == 'daily' || self.replicas == 1",
        "!has(oldSelf.class) || self.class == oldSelf.class",
        "self.class != 'small' ? true : self.replicas <= 2",
    ];
    rules.iter().map(|rule| json!({"rule": rule, "message": "is not as it should be"})).collect()
}

pub fn post_ruled(context: &Context, number: usize) -> Box<dyn Operation> {
    RULED.post(context, number)
}

pub fn post_unruled(context: &Context, number: usize) -> Box<dyn Operation> {
    UNRULED.post(context, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_differ_only_in_their_rules() {
        let rules = |of: &Definition| {
            let rules = &of.stated()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"];
            rules.as_array().map(Vec::len)
        };
        assert_eq!((rules(&RULED), rules(&UNRULED)), (Some(20), None));
        assert_eq!(RULED.object("a")["spec"], UNRULED.object("a")["spec"]);
    }
}
