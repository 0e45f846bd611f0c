//! NetworkPolicies.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{Printer, networking};
use crate::rules::{Generation, NameRule, Strategy, addresses, labels, names};

const SIDES: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// Rules of NetworkPolicies.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    default,
    validate: |object, errors| validate(object, labels::SelectorOptions::default(), &[], errors),
    validate_update,
    warnings,
    printer: Some(Printer::of(networking::network_policy)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    for (side, _) in SIDES {
        let rules = object.get_mut("spec").and_then(|spec| spec.get_mut(side)).and_then(Value::as_array_mut);
        let ports = rules.into_iter().flatten().filter_map(|rule| rule.get_mut("ports")?.as_array_mut()).flatten();
        for port in ports.filter(|port| port.at(&["protocol"]).is_null()) {
            port.set_at(&["protocol"], "TCP");
        }
    }
    if object.list_at(&["spec", "policyTypes"]).is_empty() {
        let mut types = vec![Value::from("Ingress")];
        if !object.list_at(&["spec", "egress"]).is_empty() {
            types.push("Egress".into());
        }
        object.set_at(&["spec", "policyTypes"], types);
    }
}

/// Returns the IP blocks of a policy with their positions.
fn blocks(object: &Value) -> impl Iterator<Item = (&'static str, usize, &'static str, usize, &Value)> {
    SIDES.into_iter().flat_map(move |(side, peers)| {
        object.list_at(&["spec", side]).iter().enumerate().flat_map(move |(rule_index, rule)| {
            let list = rule.list_at(&[peers]).iter().enumerate();
            list.filter(|(_, peer)| !peer.at(&["ipBlock"]).is_null())
                .map(move |(index, peer)| (side, rule_index, peers, index, peer.at(&["ipBlock"])))
        })
    })
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    let mut odd = Errors::default();
    let strict = labels::SelectorOptions::default();
    labels::validate_selector(old.at(&["spec", "podSelector"]), strict, &Path::root(""), &mut odd);
    let known: Vec<Value> = blocks(old)
        .flat_map(|(.., block)| std::iter::once(block.at(&["cidr"])).chain(block.list_at(&["except"])))
        .cloned()
        .collect();
    validate(object, labels::SelectorOptions { any_value: !odd.is_empty(), ..strict }, &known, errors);
}

fn validate(object: &Value, selector: labels::SelectorOptions, known: &[Value], errors: &mut Errors) {
    let path = Path::root("spec");
    labels::validate_selector(object.at(&["spec", "podSelector"]), selector, &path.child("podSelector"), errors);
    for (side, peers) in SIDES {
        for (index, rule) in object.list_at(&["spec", side]).iter().enumerate() {
            let path = path.child(side);
            let path = path.index(index);
            for (index, port) in rule.list_at(&["ports"]).iter().enumerate() {
                validate_port(port, &path.child("ports").index(index), errors);
            }
            for (index, peer) in rule.list_at(&[peers]).iter().enumerate() {
                validate_peer(peer, selector, known, &path.child(peers).index(index), errors);
            }
        }
    }
    let types = object.list_at(&["spec", "policyTypes"]);
    let path = path.child("policyTypes");
    if types.len() > 2 {
        errors.invalid(&path, object.at(&["spec", "policyTypes"]), "may not specify more than two policyTypes");
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        let kind = kind.as_str().unwrap_or("");
        if !matches!(kind, "Ingress" | "Egress") {
            errors.not_supported(&path.index(index), kind, &["Ingress", "Egress"]);
        }
    }
}

fn validate_port(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(protocol) = port.at(&["protocol"]).as_str()
        && !matches!(protocol, "TCP" | "UDP" | "SCTP")
    {
        errors.not_supported(&path.child("protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    }
    let (first, last) = (port.at(&["port"]), port.int_at(&["endPort"]));
    let end = path.child("endPort");
    match first {
        Value::Int(number) => {
            for message in names::port_number(*number) {
                errors.invalid(&path.child("port"), first, message);
            }
            if let Some(last) = last {
                if last < *number {
                    errors.invalid(&end, first, "must be greater than or equal to `port`");
                }
                for message in names::port_number(last) {
                    errors.invalid(&end, &last.into(), message);
                }
            }
        }
        Value::Str(name) => {
            if let Some(last) = last {
                errors.invalid(&end, &last.into(), "may not be specified when `port` is non-numeric");
            }
            names::check(&path.child("port"), name, names::port_name, errors);
        }
        _ => {
            if let Some(last) = last {
                errors.invalid(&end, &last.into(), "may not be specified when `port` is not specified");
            }
        }
    }
}

fn validate_peer(
    peer: &Value,
    selector: labels::SelectorOptions,
    known: &[Value],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        let value = peer.at(&[field]);
        if !value.is_null() {
            count += 1;
            labels::validate_selector(value, selector, &path.child(field), errors);
        }
    }
    let block = peer.at(&["ipBlock"]);
    if !block.is_null() {
        count += 1;
        validate_block(block, known, &path.child("ipBlock"), errors);
    }
    if count == 0 {
        errors.required(path, "must specify a peer");
    } else if count > 1 && !block.is_null() {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn validate_block(block: &Value, known: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let text = block.str_at(&["cidr"]);
    if text.is_empty() {
        errors.required(&path.child("cidr"), "");
        return;
    }
    addresses::check_block_legacy(&path.child("cidr"), text, known, errors);
    let Some(outer) = addresses::Block::parse_sloppy(text) else { return };
    for (index, except) in block.list_at(&["except"]).iter().enumerate() {
        let place = path.child("except");
        let (place, text) = (place.index(index), except.as_str().unwrap_or(""));
        addresses::check_block_legacy(&place, text, known, errors);
        let Some(inner) = addresses::Block::parse_sloppy(text) else { continue };
        if !outer.contains(inner.first()) || outer.bits >= inner.bits {
            errors.invalid_str(&place, text, "must be a strict subset of `cidr`");
        }
    }
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    let path = Path::root("spec");
    for (side, rule, peers, index, block) in blocks(object) {
        let path = path.child(side);
        let path = path.index(rule);
        let path = path.child(peers);
        let path = path.index(index);
        let path = path.child("ipBlock");
        addresses::warn_block(&path.child("cidr"), block.str_at(&["cidr"]), warnings);
        for (index, except) in block.list_at(&["except"]).iter().enumerate() {
            let path = path.child("except");
            addresses::warn_block(&path.index(index), except.as_str().unwrap_or(""), warnings);
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn policies_are_defaulted_and_checked() {
        let block = value!({"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "11.0.0.0/16"]});
        let mut object = value!({"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 80, "endPort": 79}],
            "to": [{"ipBlock": block}, {}]}]}});
        default(&mut object);
        assert_eq!(object.at(&["spec", "policyTypes"]), &value!(["Ingress", "Egress"]));
        let mut errors = Errors::default();
        (STRATEGY.validate)(&object, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            ["spec.egress[0].ports[0].endPort", "spec.egress[0].to[0].ipBlock.except[1]", "spec.egress[0].to[1]"]
        );
    }
}
