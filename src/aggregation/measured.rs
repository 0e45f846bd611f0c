//! Measures whether aggregated group versions are available.

use flotilla_cluster::Selection;

use super::{GROUP, RESOURCE, availability};
use crate::prometheus::Page;
use crate::registry::Registry;
use crate::scan::scan;
use crate::tables::stored_value;

/// Appends the gauge of all APIServices.
pub fn write(registry: &Registry, page: &mut Page) {
    let Some(served) = registry.tables.resources.of_resource(GROUP, RESOURCE) else { return };
    let chunks = scan(&registry.tables.table(&served).snapshot(), Selection::default());
    let help = "Whether an aggregated group version is unavailable: 1 or 0.";
    let mut samples = page.gauge("aggregator_unavailable_apiservice", help);
    for object in chunks.map_while(Result::ok).flatten() {
        let Ok(service) = stored_value(&object) else { continue };
        let value = if availability::is_available(&service) { 0.0 } else { 1.0 };
        samples.sample(&[("name", object.key().name())], value);
    }
}
