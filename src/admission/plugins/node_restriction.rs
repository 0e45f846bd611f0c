//! Restricts nodes to their own objects (NodeRestriction). The rules are in
//! [`crate::kinds::admission::node_restriction`]; this module looks up the objects that they need.

use flotilla_proto::value::Value;

use crate::access::nodes::node_of;
use crate::access::{Attributes, ResourceAttributes};
use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::quote;
use crate::kinds::admission::node_restriction as rules;
use crate::kinds::certificates::certificate;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_tree;

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin { applies, ..Plugin::new("NodeRestriction", Presence::Off).mutating(decides_by, mutate) };

/// Namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";
/// CSI drivers that now mount volumes of these types, which were once built in.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// A node whose name is not known may write nothing, so this concerns every resource. Other objects are read as this
/// member has them, since the reference reads cached copies.
fn decides_by(_: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (operation != Operation::Connect).then_some(DecidesBy::Object)
}

fn applies(write: &BuiltInAttributes<'_>, _: &Value) -> bool {
    node_of(write.caller.identity.user()).is_some()
}

/// Refuses a write by a node to objects that are not its own.
fn mutate(write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
    let Some(node) = node_of(write.caller.identity.user()) else { return Ok(()) };
    let object = (write.operation != Operation::Delete).then_some(&*object);
    let shown = object.or(write.old).unwrap_or(&Value::Null);
    if node.is_empty() {
        let why = format!("could not determine node from user {}", quote(&write.caller.identity.user().name));
        return Err(write.refuse(shown, &why));
    }
    NodeWrite { write, node, object, old: write.old }.check().map_err(|why| match why {
        Why::Forbidden(why) => write.refuse(shown, &why),
        Why::Other(error) => error,
    })
}

/// The reason of a refusal: a text in the wording of the plugin, or an error of another kind.
enum Why {
    Forbidden(String),
    Other(ApiError),
}

impl From<String> for Why {
    fn from(why: String) -> Self {
        Self::Forbidden(why)
    }
}

impl From<ApiError> for Why {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

type WriteCheck = Result<(), Why>;

/// A write by a node, and the objects before and after it.
struct NodeWrite<'a> {
    write: &'a BuiltInAttributes<'a>,
    node: &'a str,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
}

fn refuse(why: impl Into<String>) -> WriteCheck {
    Err(Why::Forbidden(why.into()))
}

impl NodeWrite<'_> {
    fn check(&self) -> WriteCheck {
        let target = self.write.target;
        let is_status = target.subresource == "status";
        match (target.served.group(), &*target.served.resource.name) {
            ("", "pods") => self.pod(),
            ("", "nodes") => self.own_node(),
            ("", "persistentvolumeclaims") if !is_status => refuse("may only update PVC status"),
            ("", "persistentvolumeclaims") => match (self.object, self.old) {
                (Some(claim), Some(old)) => Ok(rules::claim_status(self.node, claim, old)?),
                _ => refuse(format!("unexpected operation {}", quote(self.operation()))),
            },
            ("", "serviceaccounts") if target.subresource == "token" => self.token(),
            ("coordination.k8s.io", "leases") => self.lease(),
            ("storage.k8s.io", "csinodes") if self.name() != self.node => {
                refuse("can only access CSINode with the same name as the requesting node")
            }
            ("resource.k8s.io", "resourceslices") => self.slice(),
            ("certificates.k8s.io", "podcertificaterequests") => {
                refuse("PodCertificateRequest feature gate is disabled")
            }
            ("certificates.k8s.io", "certificatesigningrequests") => self.certificate(),
            _ => Ok(()),
        }
    }

    const fn operation(&self) -> &'static str {
        self.write.operation.name()
    }

    /// Returns the name of the object, also of a new one.
    fn name(&self) -> &str {
        match self.write.target.name {
            "" => self.object.map_or("", |object| object.str_at(&["metadata", "name"])),
            name => name,
        }
    }

    fn pod(&self) -> WriteCheck {
        let (node, target) = (self.node, self.write.target);
        match (target.subresource, self.object, self.old) {
            ("", Some(pod), None) => self.new_pod(pod),
            ("", None, Some(old)) if old.str_at(&["spec", "nodeName"]) == node => Ok(()),
            ("", None, Some(_)) => {
                refuse(format!("node {} can only delete pods with spec.nodeName set to itself", quote(node)))
            }
            ("", ..) => refuse(format!(
                "unexpected operation {}, node {} can only create and delete mirror pods",
                quote(self.operation()),
                quote(node)
            )),
            ("status", Some(pod), Some(old)) => Ok(rules::pod_status(node, pod, old)?),
            ("eviction", Some(_), None) => {
                let pod = self.found("pods", "pod", target.namespace, target.name)?;
                if pod.str_at(&["spec", "nodeName"]) == node {
                    return Ok(());
                }
                refuse(format!("node {node} can only evict pods with spec.nodeName set to itself"))
            }
            (part, ..) => {
                refuse(format!("unexpected pod subresource {}, only 'status' and 'eviction' are allowed", quote(part)))
            }
        }
    }

    fn new_pod(&self, pod: &Value) -> WriteCheck {
        let (node, uid) = (self.node, rules::mirror_pod(self.node, pod)?);
        let found = self.found("nodes", "node", "", node)?;
        let own = found.str_at(&["metadata", "uid"]);
        if uid != own {
            return refuse(format!("node {node} UID mismatch: expected {uid} got {own}"));
        }
        Ok(rules::refers_to_nothing(node, pod)?)
    }

    fn own_node(&self) -> WriteCheck {
        let name = self.name();
        if name != self.node {
            return refuse(format!("node {} is not allowed to modify node {}", quote(self.node), quote(name)));
        }
        match (self.object, self.old) {
            (Some(node), None) => Ok(rules::new_node(self.node, node)?),
            (Some(node), Some(old)) => Ok(rules::changed_node(self.node, node, old)?),
            _ => Ok(()),
        }
    }

    fn lease(&self) -> WriteCheck {
        if self.write.target.namespace != LEASES {
            return refuse(format!("can only access leases in the {} system namespace", quote(LEASES)));
        }
        if self.name() != self.node {
            return refuse("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn slice(&self) -> WriteCheck {
        let is_own = |slice: &Value| slice.str_at(&["spec", "nodeName"]) == self.node;
        match (self.object, self.old) {
            (Some(slice), None) if !is_own(slice) => {
                refuse("can only create ResourceSlice with the same NodeName as the requesting node")
            }
            (None, Some(slice)) if !is_own(slice) => {
                refuse("can only delete ResourceSlice with the same NodeName as the requesting node")
            }
            _ => Ok(()),
        }
    }

    fn certificate(&self) -> WriteCheck {
        let (Some(asked), None) = (self.object, self.old) else { return Ok(()) };
        let signer = asked.str_at(&["spec", "signerName"]);
        if !["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"].contains(&signer) {
            return Ok(());
        }
        let name = certificate::requested_name(asked).map_err(|why| format!("unable to parse csr: {why}"))?;
        if name != format!("system:node:{}", self.node) {
            return refuse(format!("can only create a node CSR with CN=system:node:{}", self.node));
        }
        Ok(())
    }

    /// Allows a token for a service account only for a pod on this node, and only for audiences that the pod uses.
    fn token(&self) -> WriteCheck {
        let (Some(asked), namespace) = (self.object, self.write.target.namespace) else { return Ok(()) };
        let bound = asked.at(&["spec", "boundObjectRef"]);
        let (kind, name, uid) = (bound.str_at(&["kind"]), bound.str_at(&["name"]), bound.str_at(&["uid"]));
        if bound.str_at(&["apiVersion"]) != "v1" || kind != "Pod" || name.is_empty() {
            return refuse("node requested token not bound to a pod");
        }
        if uid.is_empty() {
            return refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.found("pods", "pod", namespace, name)?;
        if uid != pod.str_at(&["metadata", "uid"]) {
            return refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            ));
        }
        if pod.str_at(&["spec", "nodeName"]) != self.node {
            return refuse("node requested token bound to a pod scheduled on a different node");
        }
        let audience = match asked.list_at(&["spec", "audiences"]) {
            [] => "",
            [audience] => audience.as_str().unwrap_or(""),
            _ => return refuse("node may only request 0 or 1 audiences"),
        };
        self.audience(&pod, audience)
    }

    fn audience(&self, pod: &Value, audience: &str) -> WriteCheck {
        if pod.list_at(&["spec", "volumes"]).iter().any(|volume| self.wants(pod, volume, audience)) {
            return Ok(());
        }
        let target = self.write.target;
        let of = ResourceAttributes {
            verb: "request-serviceaccounts-token-audience",
            version: "v1",
            namespace: target.namespace,
            resource: audience,
            name: target.name,
            ..ResourceAttributes::default()
        };
        let user = self.write.caller.identity.user();
        if self.write.admission.tables.authorizer.allows(user, &Attributes::Resource(of), &self.write.caller.inquiry) {
            return Ok(());
        }
        refuse(format!(
            "audience {} not found in pod spec volume, {} is not authorized to request tokens for this audience",
            quote(audience),
            user.name
        ))
    }

    /// Returns whether a volume of a pod needs tokens for an audience: by a projected token, or by its CSI driver.
    fn wants(&self, pod: &Value, volume: &Value, audience: &str) -> bool {
        let mut sources = volume.list_at(&["projected", "sources"]).iter();
        let token = |source: &Value| {
            let token = source.at(&["serviceAccountToken"]);
            !token.is_null() && token.str_at(&["audience"]) == audience
        };
        if sources.any(token) {
            return true;
        }
        let namespace = self.write.target.namespace;
        let of_claim = |claim: &str| {
            let claim = self.glance("", "persistentvolumeclaims", namespace, claim)?;
            let volume = self.glance("", "persistentvolumes", "", claim.str_at(&["spec", "volumeName"]))?;
            driver_of(volume.at(&["spec"]))
        };
        let driver = if !volume.at(&["ephemeral", "volumeClaimTemplate"]).is_null() {
            of_claim(&format!("{}-{}", pod.str_at(&["metadata", "name"]), volume.str_at(&["name"])))
        } else if let Some(claim) = volume.at(&["persistentVolumeClaim", "claimName"]).as_str() {
            of_claim(claim)
        } else {
            driver_of(volume)
        };
        let driver = driver.and_then(|driver| self.glance("storage.k8s.io", "csidrivers", "", &driver));
        driver.is_some_and(|driver| {
            let mut requests = driver.list_at(&["spec", "tokenRequests"]).iter();
            requests.any(|request| request.str_at(&["audience"]) == audience)
        })
    }

    /// Returns an object as this replica knows it, without catching up: the reference reads its own cached copy, too.
    fn glance(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let tables = &self.write.admission.tables;
        let served = tables.resources.of_resource(group, resource)?;
        let object = tables.current(&served, namespace, name)?;
        stored_tree(&object).ok()
    }

    /// Returns an object of the core group as [`NodeWrite::glance`] does, or 404 when the object does not exist.
    fn found(&self, resource: &str, kind: &str, namespace: &str, name: &str) -> Result<Value, Why> {
        let found = self.glance("", resource, namespace, name);
        found.ok_or_else(|| Why::Other(ApiError::not_found("", kind, name)))
    }
}

/// Returns the driver that mounts a volume of a pod or a persistent volume. Returns `None` if no driver does.
fn driver_of(volume: &Value) -> Option<String> {
    if let Some(driver) = volume.at(&["csi", "driver"]).as_str() {
        return Some(driver.to_owned());
    }
    MIGRATED.iter().find(|(sort, _)| !volume.at(&[sort]).is_null()).map(|(_, driver)| (*driver).to_owned())
}
