//! The HTTP server of the stand-in, at the addresses of etcd.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use flotilla_golang::strconv;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;

use super::flags::EtcdFlags;
use super::{RELEASE, WHAT};
use crate::limits;
use crate::parent::Parent;
use crate::pki::{client_authorities, provider, serving_certificate};

/// The default address of etcd.
const CLIENTS: &str = "http://localhost:2379";

/// The environment variable of the API server's flag `--end-with-parent`.
const END_WITH_PARENT: &str = "FLOTILLA_END_WITH_PARENT";

/// The facts about this server that its answers state.
#[derive(Debug, Clone)]
struct ServedMember {
    name: String,
    urls: Vec<String>,
}

/// Serves until a signal stops the process.
pub(super) async fn serve(given: &EtcdFlags) -> io::Result<()> {
    let mut urls = given.urls("listen-client-urls");
    if urls.is_empty() {
        urls.push(CLIENTS.to_owned());
    }
    urls.extend(given.urls("listen-client-http-urls"));
    urls.extend(given.urls("listen-metrics-urls"));
    urls.sort();
    urls.dedup();
    let name = given.one("name").unwrap_or_else(|| "default".to_owned());
    let member = web::Data::new(ServedMember { name, urls: given.urls("advertise-client-urls") });
    let mut server = HttpServer::new(move || App::new().app_data(member.clone()).default_service(web::to(answer)))
        .workers(1)
        .max_connections(limits::STAND_IN_CONNECTIONS)
        .shutdown_timeout(1);
    for url in &urls {
        let address = address_of(url)?;
        server = match url.starts_with("https://") {
            true => server.bind_rustls_0_23(address, tls(given)?)?,
            false => server.bind_auto_h2c(address)?,
        };
        eprintln!("flotilla etcd: answers at {url}");
    }
    let serving = server.run();
    if !ends_with_parent(given) {
        return serving.await;
    }
    let parent = Parent::find()?;
    tokio::select! {
        served = serving => served,
        ended = parent.ended() => ended,
    }
}

/// Returns whether to end with the process that has started this one, as the API server does with the same flag.
fn ends_with_parent(given: &EtcdFlags) -> bool {
    let variable = || std::env::var(END_WITH_PARENT).ok();
    given.is("end-with-parent") || variable().is_some_and(|value| strconv::parse_bool(&value) == Ok(true))
}

/// Returns the address to listen on for a URL.
fn address_of(url: &str) -> io::Result<SocketAddr> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, format!("{url} is not http:// or https://HOST:PORT"));
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).ok_or_else(wrong)?;
    rest.trim_end_matches('/').to_socket_addrs()?.next().ok_or_else(wrong)
}

/// Returns the TLS configuration for URLs of `https`.
fn tls(given: &EtcdFlags) -> io::Result<ServerConfig> {
    let file = |name: &str| {
        given.one(name).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("https needs --{name}")))
    };
    let certified =
        serving_certificate(Path::new(&file("cert-file")?), Path::new(&file("key-file")?)).map_err(io::Error::other)?;
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let builder = match given.one("trusted-ca-file").filter(|_| given.is("client-cert-auth")) {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in client_authorities(Path::new(&path)).map_err(io::Error::other)? {
                roots.add(authority).map_err(io::Error::other)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            builder.with_client_cert_verifier(verifier.map_err(io::Error::other)?)
        }
    };
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    Ok(builder.with_cert_resolver(Arc::new(resolver)))
}

async fn answer(request: HttpRequest, member: web::Data<ServedMember>) -> HttpResponse {
    let is_grpc =
        request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    if is_grpc {
        // The gRPC status UNIMPLEMENTED, in the headers, since no body follows.
        return HttpResponse::Ok()
            .insert_header(("content-type", "application/grpc"))
            .insert_header(("grpc-status", "12"))
            .insert_header(("grpc-message", WHAT))
            .finish();
    }
    let header = json!({"cluster_id": "1", "member_id": "1", "revision": "1", "raft_term": "1"});
    match request.path() {
        "/health" => HttpResponse::Ok().json(json!({"health": "true", "reason": ""})),
        "/livez" | "/readyz" => HttpResponse::Ok().content_type("text/plain").body("ok\n"),
        "/version" => {
            HttpResponse::Ok().json(json!({"etcdserver": RELEASE, "etcdcluster": "3.6.0", "storage": "3.6.0"}))
        }
        "/metrics" => HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(format!(
            "# HELP etcd_server_has_leader Whether there is a leader.\n# TYPE etcd_server_has_leader gauge\n\
             etcd_server_has_leader 1\n# HELP etcd_server_version The release.\n# TYPE etcd_server_version gauge\n\
             etcd_server_version{{server_version=\"{RELEASE}\"}} 1\n"
        )),
        "/v3/maintenance/status" => HttpResponse::Ok().json(json!({
            "header": header, "version": RELEASE, "dbSize": "0", "leader": "1", "raftIndex": "1", "raftTerm": "1",
            "raftAppliedIndex": "1", "dbSizeInUse": "0", "storageVersion": "3.6.0",
        })),
        "/v3/cluster/member/list" => HttpResponse::Ok().json(json!({
            "header": header, "members": [{"ID": "1", "name": member.name, "clientURLs": member.urls}],
        })),
        _ => HttpResponse::NotFound().content_type("text/plain").body(format!("404: {WHAT}\n")),
    }
}
