//! Options that are texts in files and in the environment.

/// Lets serde read and write a type as the text that its `FromStr` reads and its `Display` writes, for
/// `#[serde(try_from = "String", into = "String")]`.
macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl TryFrom<String> for $type {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    )+};
}

pub(crate) use as_text;
