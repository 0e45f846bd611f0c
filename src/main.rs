//! The flotilla server.
fn main() {}
