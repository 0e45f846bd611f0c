//! Frames of WebSocket connections, from the client's side, and of SPDY connections, from the node's side.

use std::io;

use super::{Connection, Exchange};

/// Returns the headers of a request for a WebSocket connection.
pub fn websocket_headers(protocol: &str) -> Vec<(&str, &str)> {
    vec![
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Protocol", protocol),
    ]
}

/// Returns a client's WebSocket frame with a whole message. `kind` is 1 for text, 2 for bytes, 8 for close, 9 for ping.
pub fn client_frame(kind: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match u16::try_from(data.len()).expect("short enough") {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
    }
    let mask = [1, 2, 3, 4];
    frame.extend(mask);
    frame.extend(data.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Reads a server's next WebSocket frame: its kind and its data.
pub fn server_frame(connection: &mut Connection) -> io::Result<(u8, Vec<u8>)> {
    let head = connection.read_bytes(2)?;
    assert_eq!((head[0] & 0xf0, head[1] & 0x80), (0x80, 0), "whole messages, not masked");
    let length = match head[1] {
        126 => u16::from_be_bytes(connection.read_bytes(2)?.try_into().expect("two bytes")).into(),
        127 => u64::from_be_bytes(connection.read_bytes(8)?.try_into().expect("eight bytes")) as usize,
        length => length.into(),
    };
    Ok((head[0] & 0xf, connection.read_bytes(length)?))
}

/// Reads a SPDY frame on the node's side: the first word, the flags and the data.
pub fn spdy_frame(exchange: &mut Exchange) -> io::Result<(u32, u8, Vec<u8>)> {
    let head = exchange.read(8)?;
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let data = exchange.read((word(4) & 0xff_ffff) as usize)?;
    Ok((word(0), head[4], data))
}

/// Returns a SPDY frame with data of a stream.
pub fn spdy_data(stream: u32, is_last: bool, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32 | u32::from(is_last) << 24;
    [&stream.to_be_bytes()[..], &length.to_be_bytes()[..], data].concat()
}

/// Returns the SPDY frame SYN_REPLY, which accepts a stream.
pub fn spdy_reply(stream: u32) -> Vec<u8> {
    [&0x8003_0002_u32.to_be_bytes()[..], &4_u32.to_be_bytes()[..], &stream.to_be_bytes()[..]].concat()
}
