//! The `flotilla` program.

fn main() {}
