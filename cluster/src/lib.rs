//! The replicated, sharded store.
