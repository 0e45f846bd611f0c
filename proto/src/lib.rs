//! Wire contracts.
