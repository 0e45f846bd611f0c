use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;

use super::packet::{CloseRequest, CloseResponse, Data, DialRequest, DialResponse, Packet, PacketType, Payload};
use super::*;
use crate::outbound::grpc;
use crate::scratch::Scratch;

fn settings(text: &str) -> Result<Egress, String> {
    let dir = Scratch::new();
    let path = dir.join("egress.yaml");
    std::fs::write(&path, text).unwrap();
    Egress::read(&path).map_err(|error| error.to_string())
}

const HEAD: &str = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n";

#[test]
fn networks_have_the_proxies_that_the_file_names() {
    let egress = settings(&format!(
        "{HEAD}- name: cluster\n  connection:\n    proxyProtocol: GRPC\n    transport: {{uds: {{udsName: /run/k.socket}}}}\n\
         - name: controlplane\n  connection: {{proxyProtocol: Direct}}\n- name: etcd\n  connection:\n    \
         proxyProtocol: HTTPConnect\n    transport: {{tcp: {{url: \"http://proxy:8131\"}}}}\n"
    ));
    let egress = egress.unwrap();
    assert!(egress.to(Network::ControlPlane).is_none());
    let proxy = egress.to(Network::Cluster).unwrap();
    assert_eq!((proxy.protocol, &*proxy.endpoint.shown()), (Protocol::Grpc, "/run/k.socket"));
}

#[test]
fn files_with_errors_are_refused_in_the_words_of_kube_apiserver() {
    let of = |connection: &str| settings(&format!("{HEAD}- name: cluster\n  connection: {connection}\n")).unwrap_err();
    for (connection, why) in [
        ("{proxyProtocol: http}", "service.connection.protocol: Unsupported value: \"http\""),
        ("{proxyProtocol: Direct, transport: {uds: {udsName: a}}}", "config must be absent for direct connect"),
        ("{proxyProtocol: GRPC}", "service.connection.transport: Required value: transport must be set for GRPC"),
        ("{proxyProtocol: GRPC, transport: {tcp: {url: \"http://a:1\"}}}", "UDS must be set with GRPC"),
        ("{proxyProtocol: HTTPConnect, transport: {}}", "One of TCP or UDS must be set"),
        ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: \"a:1\"}}}", "supported connection protocols are"),
        ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: \"https://a:1\"}}}", "TLSConfig must be present"),
        ("{proxyProtocol: HTTPConnect, transport: {uds: {}}}", "must be present for UDS connections"),
        ("{proxyProtocol: GRPC, transport: {uds: {udsname: a}}}", "unknown field"),
    ] {
        let error = of(connection);
        assert!(error.contains(why), "{connection}: {error}");
    }
    let twice = settings(&format!(
        "{HEAD}- name: cluster\n  connection: {{proxyProtocol: Direct}}\n- name: Cluster\n  connection: \
         {{proxyProtocol: Direct}}\n"
    ));
    assert_eq!(twice.unwrap_err(), "service.connection: Duplicate value: \"cluster\"");
    assert!(settings("kind: Other\napiVersion: v1\n").unwrap_err().contains("no kind \"Other\" is registered"));
}

/// Returns the address of a server that sends everything back, in capitals.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = vec![0; 100_000];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    buffer[..read].make_ascii_uppercase();
                    stream.write_all(&buffer[..read]).await.unwrap();
                }
            });
        }
    });
    address
}

/// Sends much through a connection and compares what returns.
async fn exchange(stream: Box<dyn Duplex>) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sent: Vec<u8> = (0..1_000_000_u32).map(|number| b'a' + (number % 26) as u8).collect();
    let mut returned = vec![0; sent.len()];
    let (written, read) = tokio::join!(writer.write_all(&sent), reader.read_exact(&mut returned));
    written.unwrap();
    read.unwrap();
    assert!(returned == sent.to_ascii_uppercase());
    writer.shutdown().await.unwrap();
    assert_eq!(reader.read(&mut [0; 10]).await.unwrap(), 0, "both sides close");
}

#[tokio::test]
async fn a_proxy_of_http_connects_to_the_address_or_says_why_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                head.push(client.read_u8().await.unwrap().into());
            }
            let address = head.split(' ').nth(1).unwrap().to_owned();
            match TcpStream::connect(&address).await {
                Ok(mut server) => {
                    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
                }
                Err(_) => client.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").await.unwrap(),
            }
        }
    });
    let endpoint = ProxyEndpoint::Address { host: "127.0.0.1".into(), port, tls: None };
    let proxy = Proxy { protocol: Protocol::HttpConnect, endpoint };
    exchange(proxy.dial(&echo().await).await.unwrap()).await;
    let forged = proxy.dial("127.0.0.1:1 HTTP/1.1\r\nX: y\r\n\r\n:80").await.err().unwrap().to_string();
    assert!(forged.ends_with("invalid host"), "{forged}");
    let refused = proxy.dial("127.0.0.1:1").await.err().unwrap().to_string();
    let text =
        format!("proxy error from 127.0.0.1:{port} while dialing 127.0.0.1:1, code 503: 503 Service Unavailable");
    assert_eq!(refused, text);
}

/// Answers one call as the konnectivity server does.
async fn serve(call: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    assert_eq!(call.uri().path(), "/ProxyService/Proxy");
    assert_eq!(call.headers()["content-type"], "application/grpc");
    let mut body = call.into_body();
    let (down, mut waiting) = mpsc::channel::<Bytes>(4);
    let mut answer: SendStream<Bytes> = respond.send_response(Response::new(()), false).unwrap();
    tokio::spawn(async move {
        while let Some(bytes) = waiting.recv().await {
            answer.send_data(bytes, false).unwrap();
        }
        let _ = answer.send_data(Bytes::new(), true); // the client may have closed the stream
    });
    let (mut received, mut server) = (BytesMut::new(), None);
    while let Some(Ok(bytes)) = body.data().await {
        body.flow_control().release_capacity(bytes.len()).unwrap();
        received.extend_from_slice(&bytes);
        while let Some(packet) = grpc::take::<Packet>(&mut received, 1 << 22).unwrap() {
            match packet.payload.unwrap() {
                Payload::DialRequest(dial) => server = connected(dial, &down).await,
                Payload::Data(data) => {
                    assert_eq!(data.connection, CONNECTION);
                    server.as_mut().unwrap().write_all(&data.data).await.unwrap();
                }
                Payload::CloseRequest(CloseRequest { connection }) => {
                    let answer = CloseResponse { error: String::new(), connection };
                    let frame = Packet::framed(PacketType::CloseResponse, Payload::CloseResponse(answer));
                    down.send(frame).await.unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The id of each connection: a call has one.
const CONNECTION: i64 = 7;

/// Answers a request for a connection, and sends the bytes that arrive on that connection.
async fn connected(dial: DialRequest, down: &mpsc::Sender<Bytes>) -> Option<OwnedWriteHalf> {
    assert_eq!(dial.protocol, "tcp");
    let made = TcpStream::connect(&dial.address).await.ok();
    let error = if made.is_some() { String::new() } else { "no such place".to_owned() };
    let answer = DialResponse { error, connection: CONNECTION, random: dial.random };
    let frame = Packet::framed(PacketType::DialResponse, Payload::DialResponse(answer));
    down.send(frame).await.unwrap();
    let (mut reader, writer) = made?.into_split();
    let down = down.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 9_999];
        while let Ok(read @ 1..) = reader.read(&mut buffer).await {
            let data = Bytes::copy_from_slice(&buffer[..read]);
            let data = Data { connection: CONNECTION, error: String::new(), data };
            let _ = down.send(Packet::framed(PacketType::Data, Payload::Data(data))).await;
        }
    });
    Some(writer)
}

#[tokio::test]
async fn a_konnectivity_server_connects_to_the_address_or_says_why_not() {
    let dir = Scratch::new();
    let path = dir.join("k.socket");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((call, respond))) = connection.accept().await {
                    tokio::spawn(serve(call, respond));
                }
            });
        }
    });
    let proxy = Proxy { protocol: Protocol::Grpc, endpoint: ProxyEndpoint::Socket(path) };
    exchange(proxy.dial(&echo().await).await.unwrap()).await;
    assert_eq!(proxy.dial("127.0.0.1:1").await.err().unwrap().to_string(), "no such place");
    let nowhere = Proxy { protocol: Protocol::Grpc, endpoint: ProxyEndpoint::Socket(dir.join("none")) };
    assert!(nowhere.dial("a:1").await.err().unwrap().to_string().starts_with("dial unix "));
}
