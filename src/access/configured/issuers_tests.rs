//! Tests of issuers by configuration.

use super::*;

fn read(rest: &str) -> Result<Stated, String> {
    let text = format!("{{apiVersion: apiserver.config.k8s.io/v1, kind: {KIND}, {rest}}}");
    parse(&text, &["https://own".to_owned()]).map_err(|error| error.to_string())
}

fn wrong(issuer: &str, more: &str) -> String {
    read(&format!("jwt: [{{issuer: {{{issuer}}}, {more}}}]")).err().unwrap_or_default()
}

const GOOD: &str = "url: 'https://i', audiences: [a]";
const NAME: &str = "claimMappings: {username: {claim: sub, prefix: ''}}";

#[test]
fn wrong_issuers_are_refused_in_the_words_of_kubernetes() {
    assert_eq!(wrong(GOOD, NAME), "");
    for (issuer, expected) in [
        ("audiences: [a]", "jwt[0].issuer.url: Required value"),
        ("url: 'http://i', audiences: [a]", "jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https"),
        (
            "url: 'https://own', audiences: [a]",
            "jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: \
             [https://own]",
        ),
        (
            "url: 'https://i', discoveryURL: 'https://i/', audiences: [a]",
            "jwt[0].issuer.discoveryURL: Invalid value: \"https://i/\": discoveryURL must be different from URL",
        ),
        (
            "url: 'https://i', audiences: [a, b]",
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple \
             audiences",
        ),
        (
            "url: 'https://i', audiences: [a, a], audienceMatchPolicy: MatchAny",
            "jwt[0].issuer.audiences[1]: Duplicate value: \"a\"",
        ),
    ] {
        assert_eq!(wrong(issuer, NAME), expected, "{issuer}");
    }
    for (more, expected) in [
        ("x: 1", "strict decoding error: unknown field \"jwt[0].x\""),
        ("claimMappings: {}", "jwt[0].claimMappings.username: Required value: claim or expression is required"),
        (
            "claimMappings: {username: {claim: sub}}",
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to \
             an empty string to disable prefixing",
        ),
        (
            "claimMappings: {username: {expression: claims.email}}",
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must be \
             used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or \
             claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression",
        ),
        (
            "claimMappings: {username: {expression: claims.sub}, extra: [{key: a.k8s.io/x, valueExpression: claims.x}]}",
            "jwt[0].claimMappings.extra[0].key: Invalid value: \"a.k8s.io/x\": k8s.io, kubernetes.io and their \
             subdomains are reserved for Kubernetes use",
        ),
        (
            "claimMappings: {username: {expression: claims.sub}}, userValidationRules: [{expression: user.username}]",
            "jwt[0].userValidationRules[0].expression: Invalid value: \"user.username\": must evaluate to bool",
        ),
    ] {
        assert_eq!(wrong(GOOD, more), expected, "{more}");
    }
    let twice = read(&format!("jwt: [{{issuer: {{{GOOD}}}, {NAME}}}, {{issuer: {{{GOOD}}}, {NAME}}}]"));
    assert_eq!(twice.err().unwrap(), "jwt[1].issuer.url: Duplicate value: \"https://i\"");
}

#[test]
fn the_file_says_which_paths_need_no_credentials() {
    let anonymous = |text: &str| read(&format!("anonymous: {text}")).map(|stated| stated.anonymous.unwrap());
    assert_eq!(anonymous("{enabled: true}"), Ok(Anonymous::Everywhere));
    assert_eq!(anonymous("{enabled: false}"), Ok(Anonymous::Nowhere));
    assert_eq!(anonymous("{enabled: true, conditions: [{path: /livez}]}"), Ok(Anonymous::At(vec!["/livez".into()])));
    let why = anonymous("{enabled: false, conditions: [{path: /livez}]}").unwrap_err();
    assert!(why.ends_with("enabled should be set to true when conditions are defined"), "{why}");
    assert_eq!(read("jwt: []").unwrap().anonymous, None);
    assert_eq!(parse("", &[]).err(), Some(Wrong::Document("empty config data".into())));
}

#[test]
fn an_issuer_in_a_network_without_configuration_is_refused() {
    let open = |network: &str| {
        let stated = read(&format!("jwt: [{{issuer: {{{GOOD}, egressSelectorType: '{network}'}}, {NAME}}}]"))?;
        opened(stated.issuers, &Outbound::default()).map(|opened| opened.len()).map_err(|error| error.to_string())
    };
    assert_eq!(open(""), Ok(1));
    assert_eq!(open("cluster"), Err("oidc: egress lookup for \"cluster\" is not configured".into()));
    let why = open("etcd").unwrap_err();
    assert!(why.ends_with("egress selector must be either controlplane or cluster"), "{why}");
}
