//! Objects that exist from the first start, and what they hold.
