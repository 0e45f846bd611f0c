//! Requests without credentials.

/// The requests that are allowed without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anonymous {
    /// None.
    Nowhere,
    /// All.
    Everywhere,
    /// Those for these paths.
    At(Vec<String>),
}

impl Anonymous {
    /// Returns whether a request for this path is allowed.
    pub(super) fn is_at(&self, path: &str) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Everywhere => true,
            Self::At(paths) => {
                let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
                paths.iter().any(|own| *own == path)
            }
        }
    }
}
