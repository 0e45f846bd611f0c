//! The tables of functions, a library a file.

pub mod authorizer;
mod cidr;
mod form;
mod ip;
mod json_patch;
mod list_extensions;
mod lists;
mod named_format;
pub mod quantity;
mod regex;
mod semver;
mod sets;
mod strings;
mod table;
pub mod text_format;
mod text_number;
pub mod url;

use crate::functions::Library;

/// Every library there is.
pub static LIBRARIES: &[&Library] = &[
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
