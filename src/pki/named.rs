//! Further serving certificates, for clients that ask for certain names (RFC 6066, section 3).

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::serving::ServingCertificate;
use super::{PkiError, serving_certificate};
use crate::config::NamedKey;

/// A certificate with the names of hosts for which it is shown.
#[derive(Debug)]
struct NamedCertificate {
    /// In lower case; `*` may stand for the first label.
    names: Vec<String>,
    key: Arc<CertifiedKey>,
}

/// Chooses the serving certificate by the name that a client asks for.
#[derive(Debug)]
pub struct NamedCertificates {
    usual: Arc<ServingCertificate>,
    named: RwLock<Vec<NamedCertificate>>,
}

impl NamedCertificates {
    /// Reads the files of further certificates. Clients that ask for none of their names get the usual one.
    ///
    /// # Errors
    /// As [`serving_certificate`].
    pub fn read(usual: Arc<ServingCertificate>, files: &[NamedKey]) -> Result<Self, PkiError> {
        Ok(Self { usual, named: RwLock::new(read(files)?) })
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    /// As [`serving_certificate`]; the certificates in use stay.
    pub fn refresh(&self, files: &[NamedKey]) -> Result<(), PkiError> {
        *self.named.write() = read(files)?;
        Ok(())
    }

    /// Returns the certificate for a name: the first that has exactly this name, else the first that has it with `*` as
    /// the first label, else the usual one.
    fn of(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let named = self.named.read();
        let Some(name) = name.filter(|_| !named.is_empty()) else { return self.usual.current() };
        let name = name.trim_end_matches('.').to_lowercase();
        let wild = name.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        let has = |wanted: &String| named.iter().find(|certificate| certificate.names.contains(wanted));
        let found = has(&name).or_else(|| has(wild.as_ref()?));
        found.map_or_else(|| self.usual.current(), |certificate| Arc::clone(&certificate.key))
    }
}

impl ResolvesServerCert for NamedCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.of(hello.server_name()))
    }
}

fn read(files: &[NamedKey]) -> Result<Vec<NamedCertificate>, PkiError> {
    let read = |file: &NamedKey| {
        let key = serving_certificate(&file.certificate, &file.key)?;
        let names = if file.names.is_empty() { names_in(&key) } else { file.names.clone() };
        let names = names.into_iter().map(|name| name.to_lowercase()).collect();
        Ok(NamedCertificate { names, key: Arc::new(key) })
    };
    files.iter().map(read).collect()
}

/// Returns the names of hosts in a certificate.
fn names_in(key: &CertifiedKey) -> Vec<String> {
    let parsed = key.cert.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
    let Some((_, certificate)) = parsed else { return Vec::new() };
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok().map(str::to_owned));
    let mut names: Vec<String> = common.collect();
    if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
        let hosts = alternative.value.general_names.iter();
        names.extend(hosts.filter_map(|name| match name {
            GeneralName::DNSName(host) => Some((*host).to_owned()),
            _ => None,
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Pki, PkiOptions};
    use crate::scratch::Scratch;

    /// Makes a serving certificate for `names`. Returns its files, to be shown for the names `asked`.
    fn made(dir: &Scratch, names: &[&str], asked: &str) -> NamedKey {
        let path = dir.join(names[0].trim_start_matches('*'));
        Pki::open(PkiOptions::in_one(&path, names)).unwrap();
        let file = |kind| path.join(format!("apiserver.{kind}")).display().to_string();
        format!("{},{}{asked}", file("crt"), file("key")).parse().unwrap()
    }

    #[test]
    fn the_first_certificate_with_the_name_is_shown_and_an_exact_name_goes_before_a_pattern() {
        let dir = Scratch::new();
        let usual = made(&dir, &["usual.example"], "");
        let usual = ServingCertificate::new(serving_certificate(&usual.certificate, &usual.key).unwrap());
        let files = [
            made(&dir, &["*.a.example"], ""),
            made(&dir, &["x.a.example"], ""),
            made(&dir, &["other"], ":b.example,*.B.example"),
            made(&dir, &["third"], ":b.example"),
        ];
        let certificates = NamedCertificates::read(Arc::new(usual), &files).unwrap();
        let shown = |name| names_in(&certificates.of(name)).pop().unwrap();
        for (name, expected) in [
            (None, "usual.example"),
            (Some("elsewhere"), "usual.example"),
            (Some("y.a.example"), "*.a.example"),
            (Some("X.a.example."), "x.a.example"),
            (Some("y.y.a.example"), "usual.example"),
            (Some("b.example"), "other"),
            (Some("c.b.example"), "other"),
            (Some("other"), "usual.example"),
        ] {
            assert_eq!(shown(name), expected, "{name:?}");
        }
    }
}
