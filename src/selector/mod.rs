//! `labelSelector` and `fieldSelector`: parsing and matching (Kubernetes docs, "Labels and Selectors", "Field
//! Selectors").

mod field;
mod label;

pub use field::{FieldOperator, FieldRequirement, FieldSelector};
pub use label::{LabelSelector, Operator, Requirement};

use flotilla_cluster::{TermFilter, Terms};

use crate::limits;

/// The part of a collection that a request selects.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The label selector.
    pub labels: LabelSelector,
    /// The field selector.
    pub fields: FieldSelector,
    /// The part of the field selector that objects must meet in the version of the request, because a webhook converts
    /// them: the stored objects may lack these fields, or have other values in them.
    pub converted: FieldSelector,
}

impl Selection {
    /// Returns whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.0.is_empty() && self.fields.0.is_empty() && self.converted.0.is_empty()
    }

    /// Returns the largest number of requirements with which one object is compared.
    pub fn requirements(&self) -> usize {
        self.labels.0.len() + self.fields.0.len() + self.converted.0.len()
    }

    /// Returns whether an object with this key and these terms is selected, as far as its stored form decides that.
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

    /// Returns filters by which the store skips objects. A selected object has, for each returned list, a term with one
    /// of its filters. Requirements that do not demand a term are left out.
    pub fn term_filters(&self) -> Vec<Vec<TermFilter>> {
        let is_short = |values: &[_]| values.len() <= limits::FILTERED_VALUES;
        let labels = self.labels.0.iter().filter(|one| one.operator == Operator::In && is_short(&one.values));
        let labels = labels.map(|r| r.values.iter().map(|value| TermFilter::label(&r.key, value)).collect());
        let fields = self.fields.0.iter().filter(|requirement| requirement.demands_term());
        labels
            .chain(fields.map(|r| vec![TermFilter::field(&r.field, &r.value)]))
            .take(limits::FILTERED_REQUIREMENTS)
            .collect()
    }

    /// Returns the value that the selection demands for `field`. Returns `None` if it demands no value, or an empty
    /// one, because empty values are not indexed.
    pub fn exact_field(&self, field: &str) -> Option<&str> {
        let wanted =
            |r: &&FieldRequirement| r.field == field && r.operator == FieldOperator::Equals && !r.value.is_empty();
        self.fields.0.iter().find(wanted).map(|r| r.value.as_str())
    }
}
