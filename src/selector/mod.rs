//! `labelSelector` and `fieldSelector`: parsing and matching (Kubernetes docs, "Labels and Selectors", "Field
//! Selectors").

mod field;
mod label;

pub use field::{FieldOperator, FieldRequirement, FieldSelector};
pub use label::{LabelSelector, Operator, Requirement};

use flotilla_cluster::{TermFilter, Terms};

/// How many requirements, and values of one, are compared with the filters of objects. More would take longer than
/// looking at the objects, and those that are compared say enough.
const FILTERED_REQUIREMENTS_MAX: usize = 16;
const MARKED_VALUES_MAX: usize = 32;

/// What a request selects of a collection.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
}

impl Selection {
    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.0.is_empty() && self.fields.0.is_empty()
    }

    /// Whether an object of this key and these terms is selected.
    pub fn matches(&self, namespace: &str, name: &str, terms: &Terms) -> bool {
        self.labels.matches(|key| terms.label(key))
            && self.fields.0.iter().all(|requirement| {
                let value = match requirement.field.as_str() {
                    "metadata.name" => name,
                    "metadata.namespace" => namespace,
                    other => terms.field(other).unwrap_or(""),
                };
                requirement.matches(value)
            })
    }

    /// What the terms of a selected object are among, as far as the requirements say what must be there.
    pub fn term_filters(&self) -> Vec<Vec<TermFilter>> {
        let is_short = |values: &[_]| values.len() <= MARKED_VALUES_MAX;
        let labels = self.labels.0.iter().filter(|one| one.operator == Operator::In && is_short(&one.values));
        let labels = labels.map(|r| r.values.iter().map(|value| TermFilter::label(&r.key, value)).collect());
        let fields = self.fields.0.iter().filter(|requirement| requirement.demands_term());
        labels
            .chain(fields.map(|r| vec![TermFilter::field(&r.field, &r.value)]))
            .take(FILTERED_REQUIREMENTS_MAX)
            .collect()
    }

    /// The value that `field` must have, if the selection says so. Empty values are not indexed, so they are not told.
    pub fn exact_field(&self, field: &str) -> Option<&str> {
        let wanted =
            |r: &&FieldRequirement| r.field == field && r.operator == FieldOperator::Equals && !r.value.is_empty();
        self.fields.0.iter().find(wanted).map(|r| r.value.as_str())
    }
}
