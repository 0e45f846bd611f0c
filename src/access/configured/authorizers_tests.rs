//! Tests of authorizers by configuration.

use std::time::Duration;

use super::*;

fn errors(authorizers: &str) -> String {
    let text = format!("{{apiVersion: apiserver.config.k8s.io/v1, kind: {KIND}, authorizers: {authorizers}}}");
    match parse(&text, &["Node"]) {
        Ok(all) => format!("{all:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_authorizers_are_refused_in_the_words_of_kubernetes() {
    for (authorizers, expected) in [
        ("[]", "authorizers: Required value: at least one authorization mode must be defined"),
        ("[{name: x}]", "authorizers[0].type: Required value"),
        (
            "[{type: X, name: x}]",
            "authorizers[0].type: Unsupported value: \"X\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \
             \"Node\", \"RBAC\", \"Webhook\"",
        ),
        ("[{type: RBAC, name: rbac}, {type: RBAC, name: other}]", "authorizers[1].type: Duplicate value: \"RBAC\""),
        (
            "[{type: RBAC, name: x}]",
            "[expected name rbac for authorizer RBAC instead of x, missing required types: [Node]]",
        ),
        (
            "[{type: RBAC, name: x, webhook: {}}]",
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
        ),
        (
            "[{type: Webhook, name: w, webhook: {timeout: 31s, subjectAccessReviewVersion: v2, failurePolicy: Deny, \
              connectionInfo: {type: KubeConfigFile, kubeConfigFile: x}, matchConditions: [{expression: request.user}]}}]",
            "[authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s, \
             authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\", \
             authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are \
             specified, authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"x\": must be an absolute path, \
             authorizers[0].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool but \
             got string]",
        ),
    ] {
        assert_eq!(errors(authorizers), expected, "{authorizers}");
    }
}

#[test]
fn missing_fields_of_a_webhook_get_defaults() {
    let file = std::env::current_exe().unwrap();
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1beta1, kind: {KIND}, authorizers: [{{type: Node, name: node}}, {{type: \
         Webhook, name: w, webhook: {{timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, \
         cacheUnauthorizedRequests: false, connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}}}}}]}}",
        file.display()
    );
    let all = parse(&text, &["Node"]).unwrap();
    let webhook = AccessWebhookSettings {
        name: "w".into(),
        kubeconfig: file,
        version: "v1".into(),
        timeout: Duration::from_secs(3),
        authorized_ttl: Duration::from_secs(300),
        unauthorized_ttl: Duration::ZERO,
        on_error: Verdict::Deny,
        conditions: Vec::new(),
    };
    assert_eq!(all, [AuthorizerSettings::Mode(AuthorizationMode::Node), AuthorizerSettings::Webhook(webhook)]);
}
