//! IP addresses and prefixes, parsed and formatted as Go's `net/netip` does.

mod addr;
mod parse;
mod prefix;

pub use addr::{Addr, AddrError, AddrFault};
pub use prefix::{Prefix, PrefixError, PrefixFault};

#[cfg(test)]
mod tests;
