//! The values of extensions. The evaluator knows them only through the trait [`Opaque`].

use std::any::Any;
use std::fmt;

use crate::types::Type;

/// A value of an extension.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// Returns its type, as the checker declares it.
    fn type_of(&self) -> Type;

    /// Returns whether the two values are equal. `None` if `other` cannot be compared with this value.
    fn equals(&self, other: &dyn Opaque) -> Option<bool>;

    /// Returns its size for the cost of calls. `None` counts as 1.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Returns whether it is the zero value of its type.
    fn is_zero(&self) -> bool {
        false
    }

    /// Returns its text, as errors and recorded answers show it.
    fn text(&self) -> String;
}
