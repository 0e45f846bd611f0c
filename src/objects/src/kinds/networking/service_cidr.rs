//! ServiceCIDRs and IPAddresses: the ranges of cluster IPs, and the owner of each address.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::fieldmanager::reset;
use crate::printing::{Printer, networking};
use crate::rules::{Generation, NameRule, Strategy, addresses, metadata, names};

const IMMUTABLE: &str = metadata::IMMUTABLE;

/// Rules of ServiceCIDRs.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::ClientOwned,
    name: NameRule::Subdomain,
    status: true,
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate: |object, errors| validate(object, errors),
    validate_update,
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(networking::service_cidr)),
    ..Strategy::DEFAULT
};

/// Rules of IPAddresses.
pub static ADDRESS_STRATEGY: Strategy = Strategy {
    generation: Generation::ClientOwned,
    name: NameRule::Own,
    validate: validate_address,
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Own, false, object, errors);
        validate_address(object, errors);
        let parent = |object: &Value| object.at(&["spec", "parentRef"]).clone();
        if parent(object) != parent(old) {
            errors.invalid(&Path::root("spec.parentRef"), &parent_shown(&parent(object)), IMMUTABLE);
        }
    },
    selectable: &[],
    printer: Some(Printer::of(networking::ip_address)),
    ..Strategy::DEFAULT
};

fn validate(object: &Value, errors: &mut Errors) {
    let path = Path::root("spec.cidrs");
    let all = object.at(&["spec", "cidrs"]);
    let blocks = object.list_at(&["spec", "cidrs"]);
    if blocks.is_empty() {
        errors.required(&path, "at least one CIDR required");
        return;
    }
    if blocks.len() > 2 {
        errors.invalid(&path, &value!({"CIDRs": (all.clone())}), "may only hold up to 2 values");
        return;
    }
    for (index, block) in blocks.iter().enumerate() {
        addresses::check_block(&path.index(index), block.as_str().unwrap_or(""), errors);
    }
    let family = |block: &Value| {
        let block = addresses::Block::parse_sloppy(block.as_str().unwrap_or(""));
        block.map(|block| addresses::is_v4(block.address))
    };
    if let [first, second] = blocks
        && family(first).is_some()
        && family(first) == family(second)
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(&path, all, why);
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::root("spec.cidrs");
    let (after, before) = (object.list_at(&["spec", "cidrs"]), old.list_at(&["spec", "cidrs"]));
    let grows = before.len() == 1 && after.len() == 2;
    if before.len() != after.len() && !grows {
        errors.invalid(&path, object.at(&["spec", "cidrs"]), IMMUTABLE);
        return;
    }
    for (index, (_, after)) in before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after) {
        errors.invalid(&path.index(index), after, IMMUTABLE);
    }
    if grows {
        validate(object, errors);
    }
}

fn validate_address(object: &Value, errors: &mut Errors) {
    for (field, path) in [("generateName", "metadata.generateName"), ("name", "metadata.name")] {
        let name = object.str_at(&["metadata", field]);
        if !name.is_empty() {
            addresses::check_address(&Path::root(path), name, errors);
        }
    }
    let (path, parent) = (Path::root("spec.parentRef"), object.at(&["spec", "parentRef"]));
    if parent.is_null() {
        errors.required(&path, "");
        return;
    }
    let group = parent.str_at(&["group"]);
    if !group.is_empty() {
        names::check(&path.child("group"), group, names::dns1123_subdomain, errors);
    }
    for (field, needed) in [("resource", true), ("name", true), ("namespace", false)] {
        match parent.str_at(&[field]) {
            "" if needed => errors.required(&path.child(field), ""),
            text => names::check(&path.child(field), text, names::path_segment, errors),
        }
    }
}

fn parent_shown(parent: &Value) -> Value {
    if parent.is_null() {
        return Value::Null;
    }
    let text = |field: &str| Value::from(parent.str_at(&[field]));
    let (group, resource) = (text("group"), text("resource"));
    let (namespace, name) = (text("namespace"), text("name"));
    value!({"Group": group, "Resource": resource, "Namespace": namespace, "Name": name})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_address_has_one_cause() {
        let address =
            value!({"metadata": {"name": "../x"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}});
        let mut errors = Errors::default();
        metadata::validate_create(ADDRESS_STRATEGY.name, false, &address, &mut errors);
        validate_address(&address, &mut errors);
        assert_eq!(errors.0.iter().map(|error| &*error.field).collect::<Vec<_>>(), ["metadata.name"]);
    }

    #[test]
    fn a_prefix_for_names_is_an_address_as_well() {
        let parent = value!({"resource": "services", "name": "s"});
        let address =
            value!({"metadata": {"generateName": "10.0.0.", "name": "10.0.0."}, "spec": {"parentRef": parent}});
        assert_eq!(ADDRESS_STRATEGY.broken_fields(address), ["metadata.generateName", "metadata.name"]);
    }

    #[test]
    fn a_range_may_be_added_but_not_changed() {
        let object = |blocks: Value| value!({"metadata": {"name": "r"}, "spec": {"cidrs": blocks}});
        let (one, two) = (object(value!(["10.0.0.0/24"])), object(value!(["10.0.0.0/24", "fd00::/112"])));
        let broken = |new: &Value, old: &Value| {
            let mut errors = Errors::default();
            validate_update(new, old, &mut errors);
            errors.0.len()
        };
        assert_eq!((broken(&two, &one), broken(&one, &two), broken(&one, &one)), (0, 1, 0));
        let mut errors = Errors::default();
        validate(&object(value!(["10.0.0.0/24", "10.1.0.0/24"])), &mut errors);
        assert_eq!(errors.0.len(), 1);
    }
}
