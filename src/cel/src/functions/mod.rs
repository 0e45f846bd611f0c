//! The table of functions: each states its name, its overloads, what they cost, what they do; each library states since
//! when it is there. The tables themselves lie in [`crate::library`].

use crate::cost::Cost;
use crate::error::Outcome;
use crate::value::Value;

/// Functions that came into the language together.
#[derive(Debug)]
pub struct Library {
    /// Its name, as in `strings`.
    pub name: &'static str,
    /// When it became part of Kubernetes' environment.
    pub since: Since,
    /// Its functions. A name may stand in several libraries; its overloads add up.
    pub functions: &'static [Function],
}

/// Since which version of Kubernetes something is part of its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It always was.
    Always,
    /// Since 1.N.
    Minor(u16),
    /// Never: part of CEL's extensions, which others use.
    Never,
}

impl Since {
    /// Whether it is there in 1.`minor`.
    pub fn includes(self, minor: u16) -> bool {
        match self {
            Self::Always => true,
            Self::Minor(since) => since <= minor,
            Self::Never => false,
        }
    }
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name: `size`, `_+_`, `ip.isCanonical`.
    pub name: &'static str,
    /// Its overloads, in the order in which the checker tries them.
    pub overloads: &'static [Overload],
}

/// One of the types that a function can be called with.
#[derive(Debug)]
pub struct Overload {
    /// Its name, unique among all functions, as upstream calls it.
    pub id: &'static str,
    /// As [`crate::types::Signature::read`] reads it: `string.(string): bool`, `(list(A)): int`.
    pub signature: &'static str,
    /// What a call costs.
    pub cost: Cost,
    /// What it does.
    pub call: Call,
}

/// An implementation. Arguments are there, the receiver first, and none of them is an error; they need not be of the
/// types that the signature says where the checker knew only `dyn`, but for those of the first overload that fits.
pub type Native = for<'a> fn(&[Value<'a>]) -> Outcome<Value<'a>>;

/// What an overload does when it is called.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// A function of the arguments.
    Native(Native),
    /// A function of the arguments that all overloads share, called whatever their types are.
    Shared(Native),
    /// A function of the arguments in which one, where it is a constant, is prepared once when the call is planned: a
    /// regular expression. The preparation fails the compilation.
    Prepared {
        /// Which argument it is.
        argument: usize,
        /// Prepares it.
        prepare: fn(&Value<'_>) -> Outcome<Preparation>,
        /// Calls with the preparation, which is made for the call where the argument is no constant.
        call: for<'a> fn(&Preparation, &[Value<'a>]) -> Outcome<Value<'a>>,
    },
    /// The planner knows it: operators that look at their arguments one after the other.
    Planned,
}

/// What was prepared of a constant argument.
pub type Preparation = Box<dyn std::any::Any + Send + Sync>;
