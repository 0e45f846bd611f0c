//! ComponentStatuses: they are not stored, so they have no rules but those of their Tables.

use crate::printing::{Printer, nodes};
use crate::rules::Strategy;

/// Rules of ComponentStatuses.
pub static STRATEGY: Strategy = Strategy { printer: Some(Printer::of(nodes::component_status)), ..Strategy::DEFAULT };
