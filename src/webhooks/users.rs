//! The users whose credentials this server presents to webhooks. A kubeconfig names them by the host and port of the
//! webhook (Kubernetes documentation, "Dynamic Admission Control", "Authenticate apiservers").

use std::collections::HashMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flotilla_proto::value::{Map, Value};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::outbound::{Identity, Peer, Reread, escape_name};
use crate::pki::{KubeconfigError, KubeconfigFile, read_credential};

/// The header with the user that this server impersonates.
const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");
const IMPERSONATE_UID: HeaderName = HeaderName::from_static("impersonate-uid");
const IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const IMPERSONATE_EXTRA: &str = "impersonate-extra-";
/// The port that a name without a port stands for.
const DEFAULT_PORT: &str = "443";

/// The users of a kubeconfig.
#[derive(Debug, Default)]
pub struct Users {
    by_name: HashMap<String, User>,
    /// The name of the user of the current context.
    current: Option<String>,
}

/// The credentials that a webhook gets.
#[derive(Debug, Default)]
pub struct User {
    identity: Option<(Credential, Credential)>,
    token: Option<BearerToken>,
    /// Headers that are the same in all calls.
    headers: HeaderMap,
}

/// A credential in the kubeconfig itself, or in a file that may be replaced while the server runs.
#[derive(Debug)]
enum Credential {
    Here(Bytes),
    File(Reread),
}

impl Credential {
    fn get(&self) -> Bytes {
        match self {
            Self::Here(bytes) => bytes.clone(),
            Self::File(file) => file.get(),
        }
    }
}

impl Users {
    /// Reads a kubeconfig. The files that it names must exist.
    ///
    /// # Errors
    /// The kubeconfig or a file that it names cannot be read, or a user has a kind of credentials that is not
    /// supported.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let file = KubeconfigFile::read(path)?;
        let mut by_name = HashMap::new();
        for entry in file.users() {
            by_name.insert(entry.str_at(&["name"]).to_owned(), User::of(&file, entry)?);
        }
        let context = file.names_context().then(|| file.current_context().ok()).flatten();
        let current = context.map(|context| context.user_name().to_owned());
        Ok(Self { by_name, current })
    }

    /// Returns the user for a webhook at `host:port`. Looks for these names in turn: `host:port`; `*` with the part
    /// from one of its dots on, the longest part first; for port 443, the same without the port; `*`; the user of the
    /// current context. Returns `None` if no user has any of these names. The webhook then gets no credentials.
    pub fn of(&self, target: &str) -> Option<&User> {
        let portless = split(target).filter(|(_, port)| *port == DEFAULT_PORT).map(|(host, _)| host);
        let named = [Some(target), portless].into_iter().flatten().find_map(|name| self.named(name));
        let named = named.or_else(|| self.by_name.get("*"));
        named.or_else(|| self.by_name.get(self.current.as_deref()?))
    }

    fn named(&self, target: &str) -> Option<&User> {
        let ends = target.match_indices('.').map(|(at, _)| format!("*{}", &target[at..]));
        std::iter::once(target.to_owned()).chain(ends).find_map(|name| self.by_name.get(&name))
    }
}

impl User {
    pub(super) fn of(file: &KubeconfigFile<'_>, entry: &Value) -> Result<Self, KubeconfigError> {
        let (name, user) = (entry.str_at(&["name"]), entry.at(&["user"]));
        let lacks = |what: &str| file.lacks(&format!("user {name:?}: {what}"));
        for unknown in ["exec", "auth-provider"] {
            if !user.at(&[unknown]).is_null() {
                return Err(lacks(&format!("{unknown} is not supported here")));
            }
        }
        let certificate = credential(file, user, "client-certificate")?;
        let key = credential(file, user, "client-key")?;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(lacks("client-key is missing")),
            (None, Some(_)) => return Err(lacks("client-certificate is missing")),
        };
        let mut headers = HeaderMap::new();
        let (basic, password) = (user.str_at(&["username"]), user.str_at(&["password"]));
        let token = BearerToken::of(file, user)?;
        if !basic.is_empty() || !password.is_empty() {
            if token.is_some() {
                return Err(lacks("username/password or bearer token may be set, but not both"));
            }
            let value = format!("Basic {}", STANDARD.encode(format!("{basic}:{password}")));
            headers.insert(AUTHORIZATION, header(&value).ok_or_else(|| lacks("password"))?);
        }
        impersonate(user, &mut headers).map_err(lacks)?;
        if let Some(token) = &token {
            bearer(&token.here).ok_or_else(|| lacks("token"))?;
        }
        Ok(Self { identity, token, headers })
    }

    /// Makes connections with a peer present the user's certificate.
    pub fn identify(&self, peer: &mut Peer) {
        if let (Some((certificates, key)), Some(secure)) = (&self.identity, &mut peer.secure) {
            secure.identity = Some(Identity { certificates: certificates.get(), key: key.get() });
        }
    }

    /// Adds the user's headers.
    pub fn sign(&self, headers: &mut HeaderMap) {
        headers.extend(self.headers.clone());
        if let Some(value) = self.token.as_ref().and_then(|token| bearer(&token.get())) {
            headers.insert(AUTHORIZATION, value);
        }
    }
}

/// A bearer token, which may be in a file that is replaced while the server runs. As in the reference, the file takes
/// precedence as long as it can be read and is not empty.
#[derive(Debug)]
struct BearerToken {
    here: Bytes,
    file: Option<Reread>,
}

impl BearerToken {
    /// Reads the token of a user. Returns `None` if the user has none.
    fn of(file: &KubeconfigFile<'_>, user: &Value) -> Result<Option<Self>, KubeconfigError> {
        let here = Bytes::copy_from_slice(user.str_at(&["token"]).as_bytes());
        let path = file.file(user, "tokenFile");
        if let (Some(path), true) = (&path, here.is_empty()) {
            read_credential(path).map_err(KubeconfigError::Read)?;
        }
        let is_stated = path.is_some() || !here.is_empty();
        Ok(is_stated.then(|| Self { here, file: path.map(|path| Reread::new(&path)) }))
    }

    fn get(&self) -> Bytes {
        let read = self.file.as_ref().map(Reread::get).filter(|token| !token.trim_ascii().is_empty());
        read.unwrap_or_else(|| self.here.clone())
    }
}

/// Adds the headers for impersonation. As in the reference, groups are ignored without a user name.
///
/// # Errors
/// The name of the field whose value cannot be in a header.
fn impersonate(user: &Value, headers: &mut HeaderMap) -> Result<(), &'static str> {
    let texts = |of: &Value| of.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let name = user.str_at(&["as"]);
    if name.is_empty() {
        return Ok(());
    }
    headers.insert(IMPERSONATE, header(name).ok_or("as")?);
    let uid = user.str_at(&["as-uid"]);
    if !uid.is_empty() {
        headers.insert(IMPERSONATE_UID, header(uid).ok_or("as-uid")?);
    }
    let groups: Vec<String> = texts(user.at(&["as-groups"]));
    for group in groups {
        headers.append(IMPERSONATE_GROUP, header(&group).ok_or("as-groups")?);
    }
    for (key, values) in user.at(&["as-user-extra"]).as_object().into_iter().flat_map(Map::iter) {
        let name = format!("{IMPERSONATE_EXTRA}{}", escape_name(key));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "as-user-extra")?;
        let values: Vec<String> = texts(values);
        for value in values {
            headers.append(&name, header(&value).ok_or("as-user-extra")?);
        }
    }
    Ok(())
}

/// Splits host and port as Go does. An IPv6 address loses its brackets. Returns `None` unless both are present.
fn split(target: &str) -> Option<(&str, &str)> {
    let (host, port) = target.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|inner| !inner.contains(['[', ']'])).map(|inner| (inner, port)),
        None => (!host.contains([':', '[', ']'])).then_some((host, port)),
    }
}

fn credential(file: &KubeconfigFile<'_>, user: &Value, name: &str) -> Result<Option<Credential>, KubeconfigError> {
    if let Some(data) = file.data(user, name)? {
        return Ok(Some(Credential::Here(data.into())));
    }
    let Some(path) = file.file(user, name) else { return Ok(None) };
    read_credential(&path).map_err(KubeconfigError::Read)?;
    Ok(Some(Credential::File(Reread::new(&path))))
}

fn bearer(token: &[u8]) -> Option<HeaderValue> {
    header(&format!("Bearer {}", std::str::from_utf8(token).ok()?.trim()))
}

/// Returns a header value that logs do not show. Returns `None` if the text cannot be in a header.
fn header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn read(text: &str) -> Result<Users, KubeconfigError> {
        let dir = Scratch::new();
        let path = dir.join("config");
        std::fs::write(dir.join("token"), "of-a-file\n").unwrap();
        std::fs::write(&path, text).unwrap();
        Users::read(&path)
    }

    fn shown(user: Option<&User>) -> String {
        let mut headers = HeaderMap::new();
        user.unwrap().sign(&mut headers);
        headers[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_most_specific_name_counts() {
        let names = ["a.b.svc:8443", "*.b.svc:8443", "a.b.svc", "*.svc", "*"];
        let users: Vec<String> = names.iter().map(|n| format!("{{name: '{n}', user: {{token: '{n}'}}}}")).collect();
        let users = read(&format!("users: [{}]", users.join(", "))).unwrap();
        for (target, name) in [
            ("a.b.svc:8443", "a.b.svc:8443"),
            ("x.b.svc:8443", "*.b.svc:8443"),
            ("a.b.svc:443", "a.b.svc"),
            ("x.y.svc:443", "*.svc"),
            ("x.y.svc:8443", "*"),
            ("127.0.0.1:443", "*"),
            ("[2001:db8::2]:443", "*"),
        ] {
            assert_eq!(shown(users.of(target)), format!("Bearer {name}"), "{target}");
        }
    }

    #[test]
    fn addresses_of_ipv6_have_brackets_only_with_a_port() {
        let names = ["2001:db8::1", "[2001:db8::1]:8443", "[[2001:db8::2]]:443"];
        let users: Vec<String> = names.iter().map(|n| format!("{{name: '{n}', user: {{token: '{n}'}}}}")).collect();
        let users = read(&format!("users: [{}]", users.join(", "))).unwrap();
        assert_eq!(shown(users.of("[2001:db8::1]:443")), "Bearer 2001:db8::1");
        assert_eq!(shown(users.of("[2001:db8::1]:8443")), "Bearer [2001:db8::1]:8443");
        assert_eq!(shown(users.of("[[2001:db8::2]]:443")), "Bearer [[2001:db8::2]]:443");
        assert!(users.of("[[2001:db8::1]]:443").is_none() && users.of("[2001:db8::1]:1443").is_none());
    }

    #[test]
    fn all_headers_of_an_impersonated_user_are_sent() {
        let other = "{as: x, as-uid: u, as-groups: [a, b], as-user-extra: {example.org/k: [v, w]}}";
        let users = read(&format!("users: [{{name: '*', user: {other}}}]")).unwrap();
        let headers = &users.of("h:1").unwrap().headers;
        let all = |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!((all("impersonate-user"), all("impersonate-uid")), (vec!["x"], vec!["u"]));
        assert_eq!(all("impersonate-group"), ["a", "b"]);
        assert_eq!(all("impersonate-extra-example.org%2fk"), ["v", "w"]);
        assert!(read("users: [{name: '*', user: {as-groups: [a]}}]").unwrap().of("h:1").unwrap().headers.is_empty());
    }

    #[test]
    fn files_that_are_no_kubeconfig_are_refused() {
        for text in ["one,two", "[]", "kind: Pod", "{apiVersion: v2, kind: Config}"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("no usable kind"), "{text}: {error}");
        }
        read("").unwrap();
        read("{apiVersion: v1, kind: Config}").unwrap();
    }

    #[test]
    fn the_current_context_comes_last() {
        let text = "current-context: c\ncontexts: [{name: c, context: {user: u}}]\n\
            users: [{name: u, user: {username: me, password: secret}}, {name: h:1, user: {tokenFile: token, as: x}}]";
        let users = read(text).unwrap();
        assert_eq!(shown(users.of("other:443")), "Basic bWU6c2VjcmV0");
        assert_eq!(users.of("h:1").unwrap().headers[IMPERSONATE], "x");
        assert!(read("users: []").unwrap().of("h:1").is_none());
    }

    #[test]
    fn the_file_of_a_token_takes_precedence_while_it_has_one() {
        let dir = Scratch::new();
        let (config, token) = (dir.join("config"), dir.join("token"));
        std::fs::write(&config, "users: [{name: u, user: {token: here, tokenFile: token}}]").unwrap();
        let users = Users::read(&config).unwrap();
        assert_eq!(shown(users.of("u:443")), "Bearer here", "there is no file");
        for (content, expected) in [("of-a-file\n", "Bearer of-a-file"), (" \n", "Bearer here")] {
            std::fs::write(&token, content).unwrap();
            let users = Users::read(&config).unwrap();
            assert_eq!(shown(users.of("u:443")), expected, "{content:?}");
        }
    }

    #[test]
    fn unusable_kubeconfigs_are_reported() {
        for (user, part) in [
            ("{exec: {command: x}}", "exec is not supported"),
            ("{auth-provider: {name: x}}", "auth-provider is not supported"),
            ("{token: a, username: b}", "but not both"),
            ("{client-certificate-data: YQ==}", "client-key is missing"),
            ("{client-key-data: YQ==}", "client-certificate is missing"),
            ("{client-certificate-data: '?'}", "client-certificate"),
            ("{tokenFile: none}", "cannot be read"),
            ("{token: \"a\\nb\"}", "token"),
            ("{as: x, as-groups: [\"a\\nb\"]}", "as-groups"),
        ] {
            let error = read(&format!("users: [{{name: u, user: {user}}}]")).unwrap_err().to_string();
            assert!(error.contains(part), "{user}: {error}");
        }
    }
}
