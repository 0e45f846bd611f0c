//! The conditions under which Kubernetes' own signers issue the certificate that a request asks for (Kubernetes
//! documentation, "Certificate Signing Requests", section "Kubernetes signers").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use crate::rules::key_pair;

/// The signer of client certificates.
pub const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of client certificates of nodes.
pub const NODE_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of serving certificates of nodes.
pub const NODE_SERVING: &str = "kubernetes.io/kubelet-serving";

/// The group of nodes.
const NODES: &str = "system:nodes";
/// The beginning of the user name of a node.
const NODE: &str = "system:node:";

/// The content of a certificate request: its subject and its alternative names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requested {
    /// The request in DER.
    pub der: Vec<u8>,
    /// The common name: a user.
    pub common_name: String,
    /// The organizations: groups.
    organizations: Vec<String>,
    names: NameCounts,
}

/// The number of alternative names of each type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct NameCounts {
    dns: usize,
    email: usize,
    ip: usize,
    uri: usize,
}

impl Requested {
    /// Reads the request in a CertificateSigningRequest.
    ///
    /// # Errors
    /// If it cannot be parsed.
    pub fn of(object: &Value) -> Result<Self, String> {
        let pem = STANDARD.decode(object.str_at(&["spec", "request"])).map_err(|error| error.to_string())?;
        let block = key_pair::pem_blocks(&pem).into_iter().next();
        let Some(block) = block.filter(|block| block.label == "CERTIFICATE REQUEST") else {
            return Err("PEM block type must be CERTIFICATE REQUEST".into());
        };
        let (_, parsed) = X509CertificationRequest::from_der(&block.der).map_err(|error| error.to_string())?;
        let subject = &parsed.certification_request_info.subject;
        let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().unwrap_or("").to_owned();
        let mut names = NameCounts::default();
        for extension in parsed.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(alternatives) = extension {
                alternatives.general_names.iter().for_each(|name| names.count(name));
            }
        }
        let common_name = subject.iter_common_name().last().map(text).unwrap_or_default();
        let organizations = subject.iter_organization().map(text).collect();
        Ok(Self { common_name, organizations, names, der: block.der })
    }

    /// Checks whether a signer issues this certificate for these usages. Returns `None` if this server does not know
    /// the signer.
    ///
    /// # Errors
    /// The reason why the signer refuses.
    pub fn check(&self, signer: &str, usages: &[Value]) -> Option<Result<(), String>> {
        Some(match signer {
            CLIENT => check_client_usages(usages),
            NODE_CLIENT => self.check_node_client(usages),
            NODE_SERVING => self.check_node_serving(usages),
            _ => return None,
        })
    }

    fn check_node_client(&self, usages: &[Value]) -> Result<(), String> {
        let NameCounts { dns, email, ip, uri } = self.names;
        let refused = [(dns, "DNS"), (email, "Email"), (ip, "IP"), (uri, "URI")];
        self.check_organization()?;
        if let Some((_, sort)) = refused.iter().find(|(count, _)| *count > 0) {
            return Err(format!("{sort} subjectAltNames are not allowed"));
        }
        self.check_node_name()?;
        check_usages(usages, &["client auth", "digital signature", "key encipherment"])
    }

    fn check_node_serving(&self, usages: &[Value]) -> Result<(), String> {
        let NameCounts { dns, email, ip, uri } = self.names;
        self.check_organization()?;
        if dns + ip == 0 {
            return Err("DNS or IP subjectAltName is required".into());
        }
        if let Some((_, sort)) = [(email, "Email"), (uri, "URI")].iter().find(|(count, _)| *count > 0) {
            return Err(format!("{sort} subjectAltNames are not allowed"));
        }
        check_usages(usages, &["digital signature", "key encipherment", "server auth"])?;
        self.check_node_name()
    }

    fn check_organization(&self) -> Result<(), String> {
        if self.organizations == [NODES] { Ok(()) } else { Err(format!("subject organization is not {NODES}")) }
    }

    fn check_node_name(&self) -> Result<(), String> {
        if self.common_name.starts_with(NODE) {
            return Ok(());
        }
        Err(format!("subject common name does not begin with {NODE}"))
    }
}

impl NameCounts {
    fn count(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(_) => self.dns += 1,
            GeneralName::RFC822Name(_) => self.email += 1,
            GeneralName::IPAddress(_) => self.ip += 1,
            GeneralName::URI(_) => self.uri += 1,
            _ => {}
        }
    }
}

/// Checks that the usages are `wanted`, in any order. `key encipherment` may be missing, since only RSA keys have it.
fn check_usages(usages: &[Value], wanted: &[&str]) -> Result<(), String> {
    let has = |usage: &&str| usages.iter().any(|value| value.as_str() == Some(usage));
    let known = |value: &Value| value.as_str().is_some_and(|usage| wanted.contains(&usage));
    let complete = wanted.iter().filter(|usage| **usage != "key encipherment").all(has);
    if complete && usages.iter().all(known) {
        Ok(())
    } else {
        Err(format!("usages did not match [{}]", wanted.join(" ")))
    }
}

fn check_client_usages(usages: &[Value]) -> Result<(), String> {
    let mut authenticates = false;
    for usage in usages.iter().filter_map(Value::as_str) {
        match usage {
            "digital signature" | "key encipherment" => {}
            "client auth" => authenticates = true,
            other => return Err(format!("invalid usage for client certificate: {other}")),
        }
    }
    if authenticates { Ok(()) } else { Err("missing required usage for client certificate: client auth".into()) }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    /// Returns a request with organizations separated by blanks.
    fn requested(name: &str, organization: &str, alternatives: &[&str]) -> Requested {
        let alternatives: Vec<String> = alternatives.iter().copied().map(String::from).collect();
        let mut params = CertificateParams::new(alternatives).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        let object = value!({"spec": {"request": (STANDARD.encode(request.pem().unwrap()))}});
        Requested::of(&object).unwrap()
    }

    #[test]
    fn each_signer_has_its_own_rules() {
        let (client, serving) = (["client auth", "digital signature"], ["server auth", "digital signature"]);
        let cases: [(&str, Requested, &[&str], &str); 11] = [
            (CLIENT, requested("ann", "staff", &["x.example"]), &["client auth", "key encipherment"], ""),
            (CLIENT, requested("ann", "staff", &[]), &["digital signature"], "missing required usage for"),
            (CLIENT, requested("ann", "staff", &[]), &["client auth", "server auth"], "invalid usage for client"),
            (NODE_CLIENT, requested("system:node:a", NODES, &[]), &client, ""),
            (NODE_CLIENT, requested("system:node:a", "other", &[]), &client, "subject organization is not system"),
            (NODE_CLIENT, requested("a", NODES, &[]), &client, "subject common name does not begin with"),
            (NODE_CLIENT, requested("system:node:a", NODES, &["a"]), &client, "DNS subjectAltNames are not allowed"),
            (NODE_CLIENT, requested("system:node:a", NODES, &["1.2.3.4"]), &client, "IP subjectAltNames are not"),
            (NODE_CLIENT, requested("system:node:a", NODES, &[]), &serving, "usages did not match [client auth dig"),
            (NODE_SERVING, requested("system:node:a", NODES, &["a", "1.2.3.4"]), &serving, ""),
            (NODE_SERVING, requested("system:node:a", NODES, &[]), &serving, "DNS or IP subjectAltName is required"),
        ];
        for (signer, requested, usages, refusal) in cases {
            let usages: Vec<Value> = usages.iter().map(|usage| (*usage).into()).collect();
            let checked = requested.check(signer, &usages).unwrap();
            let why = checked.err().unwrap_or_default();
            assert!(why.starts_with(refusal) && why.is_empty() == refusal.is_empty(), "{signer} {why}");
        }
        assert_eq!(requested("a", "b", &[]).check("example.com/s", &[]), None);
    }

    #[test]
    fn a_body_that_is_no_request_is_refused() {
        for pem in ["", "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"] {
            assert!(Requested::of(&value!({"spec": {"request": (STANDARD.encode(pem))}})).is_err());
        }
    }
}
