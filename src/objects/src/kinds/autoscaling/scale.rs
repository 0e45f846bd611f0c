//! Scales: the form in which the subresource `scale` shows objects of other kinds.

use crate::printing::{Printer, workloads};
use crate::rules::Strategy;

/// Rules of Scales.
pub static STRATEGY: Strategy = Strategy { printer: Some(Printer::of(workloads::scale)), ..Strategy::DEFAULT };
