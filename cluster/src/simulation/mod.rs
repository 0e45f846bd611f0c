//! Clusters that run on one thread, in time that does not pass by itself, with everything that happens drawn from a
//! seed.

pub(crate) mod chance;
pub(crate) mod runtime;
