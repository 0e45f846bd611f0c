//! Measures whether aggregated group versions are available.

use flotilla_cluster::Selection;

use super::{GROUP, RESOURCE, availability};
use crate::limits;
use crate::prometheus::Page;
use crate::registry::{Registry, stored_value};

/// Appends the gauge of all APIServices.
pub fn write(registry: &Registry, page: &mut Page) {
    let Some(served) = registry.resources.of_resource(GROUP, RESOURCE) else { return };
    let mut cursor = registry.table(&served).snapshot().cursor(Selection::default(), None);
    let help = "Whether an aggregated group version is unavailable: 1 or 0.";
    let mut samples = page.gauge("aggregator_unavailable_apiservice", help);
    let mut objects = Vec::new();
    loop {
        let more = cursor.read(limits::LIST_CHUNK_OBJECTS, &mut objects);
        for object in objects.drain(..) {
            let Ok(service) = stored_value(&object) else { continue };
            let value = if availability::is_available(&service) { 0.0 } else { 1.0 };
            samples.sample(&[("name", object.key().name())], value);
        }
        if !matches!(more, Ok(true)) {
            return;
        }
    }
}
