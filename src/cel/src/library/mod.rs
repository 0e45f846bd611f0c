//! The tables of functions, one file for each library.

pub mod authorizer;
mod cidr;
mod comprehensions;
pub mod form;
mod ip;
pub mod json_patch;
mod list_extensions;
mod lists;
mod named_format;
mod optional;
pub mod quantity;
mod regex;
mod semver;
mod sets;
pub mod standard;
mod strings;
mod table;
pub mod text_format;
mod text_number;
pub mod url;

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
    &url::LIBRARY,
    &regex::LIBRARY,
    &lists::LIBRARY,
    &authorizer::LIBRARY,
    &quantity::LIBRARY,
    &strings::LIBRARY,
    &strings::JOIN,
    &strings::LATER,
    &sets::LIBRARY,
    &ip::LIBRARY,
    &cidr::LIBRARY,
    &named_format::LIBRARY,
    &authorizer::SELECTORS,
    &semver::LIBRARY,
    &list_extensions::LIBRARY,
    &json_patch::LIBRARY,
];

#[cfg(test)]
mod tests;
