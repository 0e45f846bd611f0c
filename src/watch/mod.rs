//! Watch streams.
