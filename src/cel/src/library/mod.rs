//! The tables of functions, a library a file.

mod comprehensions;
mod optional;
pub mod standard;
mod strings;

use crate::functions::Library;

/// Every library there is.
pub static LIBRARIES: &[&Library] = &[
    &standard::LOGIC,
    &standard::ARITHMETIC,
    &standard::COMPARISON,
    &standard::MEMBERS,
    &standard::CONVERSIONS,
    &standard::TEXT,
    &standard::TIME,
    &optional::LIBRARY,
    &comprehensions::LIBRARY,
    &strings::LIBRARY,
];
