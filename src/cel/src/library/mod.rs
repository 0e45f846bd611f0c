//! The tables of functions, a library a file.

mod strings;

use crate::functions::Library;

/// Every library there is.
pub static LIBRARIES: &[&Library] = &[&strings::LIBRARY];
