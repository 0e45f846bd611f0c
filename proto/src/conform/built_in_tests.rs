//! Objects of built-in kinds, and the errors about them.

use super::{Error, conform};
use crate::catalogue::kind;
use crate::value::Value;
use crate::{json, value, yaml};

#[test]
fn errors_name_the_structs_in_between() {
    let of = &kind("networking.k8s.io", "v1", "Ingress").unwrap().of;
    let mut ingress = value!({"spec": {"rules": [{"http": {"paths": [{"path": 1}]}}]}});
    let error = conform(of, &mut ingress).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number into Go struct field HTTPIngressPath.spec.rules.IngressRuleValue.http.paths.path \
         of type string"
    );
}

#[test]
fn the_error_of_a_type_that_decodes_itself_comes_first() {
    let error = |kind_of: &str, mut body: Value| {
        let of = &kind("", "v1", kind_of).unwrap().of;
        conform(of, &mut body).unwrap_err().to_string()
    };
    let node = value!({"spec": {"podCIDR": 1}, "status": {"capacity": {"cpu": "x"}}});
    assert!(error("Node", node).starts_with("quantities must match"));
    let two = value!({"spec": {"podCIDR": 1, "unschedulable": "x"}});
    assert_eq!(
        error("Node", two),
        "json: cannot unmarshal number into Go struct field NodeSpec.spec.podCIDR of type string"
    );
    let port = value!({"spec": {"ports": [{"port": true, "targetPort": {}}]}});
    assert_eq!(
        error("Service", port),
        "json: cannot unmarshal object into Go struct field ServicePort.spec.ports.targetPort of type int32"
    );
}

#[test]
fn schemas_of_another_form_are_read_as_the_reference_reads_them() {
    let of = &kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap().of;
    let definition =
        |schema: Value| value!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
    let mut neither = definition(value!({"items": "x", "dependencies": {"a": 1}}));
    assert!(conform(of, &mut neither).is_ok());
    let mut wrong = definition(value!({"additionalItems": 1, "title": 1}));
    assert_eq!(conform(of, &mut wrong).unwrap_err().to_string(), "boolean or JSON schema expected");
}

/// Returns the amounts of a quota whose body states an amount in this form.
fn amounts(mut quota: Value) -> Result<String, Error> {
    let of = &kind("", "v1", "ResourceQuota").expect("a kind").of;
    conform(of, &mut quota)?;
    Ok(quota.str_at(&["spec", "hard", "a"]).to_owned())
}

#[test]
fn quantities_that_are_numbers_keep_their_text() {
    let in_json = |stated: &str| {
        let text = format!(r#"{{"spec":{{"hard":{{"a":{stated}}}}}}}"#);
        amounts(json::parse_tracking(text.as_bytes()).expect("JSON").value)
    };
    let in_yaml = |stated: &str| {
        let text = format!("spec:\n  hard:\n    a: {stated}\n");
        amounts(yaml::parse(text.as_bytes()).expect("YAML").value)
    };
    for (stated, of_json, of_yaml) in [
        ("1e3", "1e3", "1k"),
        ("1E3", "1E3", "1k"),
        ("1.500", "1.500", "1500m"),
        ("1.0", "1", "1"),
        ("1e30", "1e30", "1e+30"),
        ("5e-1", "500e-3", "500m"),
        ("1e-400", "1e-9", "0"),
        ("9223372036854775808", "9223372036854775808", "9223372036854775808"),
        ("18446744073709551615", "18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "18446744073709551616", "18446744073709552k"),
        ("123456789012345678901234567890", "123456789012345678901234567890", "123456789012345680e12"),
    ] {
        assert_eq!(in_json(stated).as_deref(), Ok(of_json), "{stated} in JSON");
        assert_eq!(in_yaml(stated).as_deref(), Ok(of_yaml), "{stated} in YAML");
    }
    // A number has the meaning of the same text in quotes.
    let mut seed = 7_u64;
    let mut digits = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (length, of) = (1 + (seed >> 33) % most, seed >> 11);
        (0..length).map(|n| char::from_digit(((of >> (n % 40)) % 10) as u32, 10).unwrap_or('0')).collect::<String>()
    };
    for round in 0..5_000 {
        let sign = if round % 7 == 0 { "-" } else { "" };
        let mut number = format!("{sign}{}{}", 1 + round % 9, digits(24));
        if round % 2 == 0 {
            number = format!("{number}.{}", digits(24));
        }
        if round % 3 == 0 {
            number = format!("{number}{}{}", ["e", "E", "e+", "e-"][round % 4], digits(2));
        }
        assert_eq!(in_json(&number), in_json(&format!("\"{number}\"")), "{number}");
    }
}
