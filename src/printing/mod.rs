//! The Table representation: columns and cells of every kind.
