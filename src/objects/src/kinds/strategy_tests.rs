//! Strategies against the catalogue: what both say about a kind must agree.

use flotilla_proto::catalogue;

use super::strategy;

#[test]
fn objects_leave_their_status_to_the_subresource_that_writes_it() {
    for resource in catalogue::resources() {
        let place = format!("{}/{}", resource.group, resource.name);
        let has_status = resource.subresources.iter().any(|subresource| subresource.name == "status");
        let strategy = strategy(&resource.group, &resource.name);
        let leaves = |subresource: &str, field: &str| {
            strategy.reset_fields(subresource).iter().any(|path| *path == [field].as_slice())
        };
        assert_eq!(leaves("", "status"), has_status, "{place}");
        assert_eq!(leaves("status", "spec"), has_status, "{place}");
        assert!(has_status || !strategy.status, "{place}");
        for (name, _) in strategy.resets.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(resource.subresources.iter().any(|subresource| subresource.name == *name), "{place}/{name}");
        }
    }
}
