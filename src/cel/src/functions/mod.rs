//! The form of the tables of functions. A function has a name and overloads with their costs and implementations; a
//! library has the version of Kubernetes since which it is available. The tables themselves are in [`crate::library`].

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

/// The version of Kubernetes since which a library is part of its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It always was.
    Always,
    /// Since 1.N.
    Minor(u16),
    /// Never. Only the environments of certain expressions add the library.
    Never,
}

impl Since {
    /// Returns whether the library is part of Kubernetes' environment in 1.`minor`.
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

/// One of the signatures of a function, with its cost and implementation.
#[derive(Debug)]
pub struct Overload {
    /// Its name, unique among all functions, as upstream calls it.
    pub id: &'static str,
    /// The signature, as [`crate::types::Signature::read`] parses it: `string.(string): bool`, `(list(A)): int`.
    pub signature: &'static str,
    /// The cost of a call.
    pub cost: Cost,
    /// The implementation.
    pub call: Call,
}

/// An implementation. It gets all arguments, the receiver first, and none of them is an error. If the checker knew an
/// argument only as `dyn`, its type may differ from the signature. If there are several overloads, the evaluator calls
/// the first one that fits.
pub type Native = for<'a> fn(&[Value<'a>]) -> Outcome<Value<'a>>;

/// How an overload is called.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// A function of the arguments.
    Native(Native),
    /// A function of the arguments that all overloads share, called for any types.
    Shared(Native),
    /// A function that prepares one argument, a regular expression. A constant argument is prepared once when the call
    /// is planned, and an error then fails the compilation.
    Prepared {
        /// The index of the argument.
        argument: usize,
        /// Prepares it.
        prepare: fn(&Value<'_>) -> Outcome<Preparation>,
        /// Calls with the preparation, which is computed for each call if the argument is not constant.
        call: for<'a> fn(&Preparation, &[Value<'a>]) -> Outcome<Value<'a>>,
    },
    /// The planner implements it: operators that evaluate their arguments one after the other.
    Planned,
}

/// A prepared argument.
pub type Preparation = Box<dyn std::any::Any + Send + Sync>;
