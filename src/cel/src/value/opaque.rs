//! Values of extensions, which the language knows by this trait only.

use std::any::Any;
use std::fmt;

use crate::types::Type;

/// A value of an extension.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// Its type, as the checker declares it.
    fn type_of(&self) -> Type;

    /// Whether both are equal. None where `other` is of another extension, or one that this cannot be compared with.
    fn equals(&self, other: &dyn Opaque) -> Option<bool>;

    /// What the cost of a call takes for its size. None counts as 1.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Whether it is the empty value of its type.
    fn is_zero(&self) -> bool {
        false
    }

    /// Its text, as errors and recorded answers show it.
    fn text(&self) -> String;
}
