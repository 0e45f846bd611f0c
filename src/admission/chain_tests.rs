use clap::Args;

use super::*;
use crate::admission::DynamicPlugin;
use crate::config::Config;
use crate::served::Resources;

fn switched(enabled: &[&str], disabled: &[&str]) -> Switches {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    Switches::new(&owned(enabled), &owned(disabled))
}

fn names(set: PluginSet) -> Vec<&'static str> {
    set.iter().map(|position| CHAIN[position].name).collect()
}

fn concerned(switches: &Switches, group: &str, resource: &str) -> Concerned {
    switches.concerned(&Resources::builtin().of_resource(group, resource).unwrap())
}

#[test]
fn plugins_are_found_by_name() {
    assert_eq!(find("Priority"), Some(Presence::On));
    assert_eq!(find("ImagePolicyWebhook"), Some(Presence::Off));
    assert_eq!(find("NoSuchPlugin"), None);
    let mut all: Vec<_> = CHAIN.iter().map(|plugin| plugin.name).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), CHAIN.len(), "each name is there once");
}

#[test]
fn only_quotas_and_a_final_refusal_follow_webhooks_and_policies() {
    let is_outside = |plugin: &Plugin| {
        matches!(plugin.mutating, Some(PluginStep { run: Mutating::Outside(_), .. }))
            || matches!(plugin.validating, Some(PluginStep { run: Validating::Outside(_), .. }))
    };
    let acting = || CHAIN.iter().filter(|plugin| plugin.mutating.is_some() || plugin.validating.is_some());
    let outside: Vec<_> = acting().skip_while(|plugin| !is_outside(plugin)).map(|plugin| plugin.name).collect();
    let expected = [
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
        "AlwaysDeny",
    ];
    assert_eq!(outside, expected);
}

#[test]
fn a_new_pod_passes_the_plugins_in_order() {
    let pods = concerned(&switched(&["NodeRestriction"], &[]), "", "pods");
    let steps = pods.own[Operation::Create as usize];
    let mutating = [
        "NamespaceLifecycle",
        "LimitRanger",
        "ServiceAccount",
        "NodeRestriction",
        "Priority",
        "DefaultTolerationSeconds",
        "RuntimeClass",
        "PodTopologyLabels",
    ];
    assert_eq!(names(steps.mutating), mutating);
    assert_eq!(names(steps.validating), ["LimitRanger", "ServiceAccount", "PodSecurity", "RuntimeClass"]);
    assert_eq!(names(steps.last), ["ResourceQuota"]);
    let resize = pods.of("resize").unwrap()[Operation::Update as usize];
    assert_eq!(
        names(resize.validating),
        ["LimitRanger", "PodSecurity", "NodeDeclaredFeatureValidator", "PodResizeValidator"]
    );
    let eviction = pods.of("eviction").unwrap()[Operation::Create as usize];
    assert_eq!(names(eviction.mutating), ["NamespaceLifecycle", "NodeRestriction"]);
}

#[test]
fn disabled_plugins_concern_nothing() {
    let pods = concerned(&switched(&[], &["ServiceAccount", "ResourceQuota"]), "", "pods");
    let steps = pods.own[Operation::Create as usize];
    assert!(!names(steps.mutating).contains(&"ServiceAccount"));
    assert!(!names(steps.mutating).contains(&"NodeRestriction"), "it is off unless it is enabled");
    assert_eq!(steps.last, PluginSet::NONE);
}

#[test]
fn webhooks_and_policies_can_be_disabled() {
    let switches = switched(&[], &["ValidatingAdmissionWebhook"]);
    let is_on = |plugin: DynamicPlugin| switches.is_on(plugin.plugin());
    assert!(!is_on(DynamicPlugin::ValidatingWebhook) && is_on(DynamicPlugin::MutatingWebhook));
}

#[test]
fn updates_of_config_maps_concern_no_plugin() {
    let updates = concerned(&Switches::default(), "", "configmaps").own[Operation::Update as usize];
    assert_eq!([updates.mutating, updates.validating, updates.last], [PluginSet::NONE; 3]);
}

#[test]
fn help_and_documentation_name_the_plugins_that_can_be_enabled() {
    let help = Config::augment_args(clap::Command::new("serve")).render_long_help().to_string();
    let page = include_str!("../../docs/flags.md");
    for plugin in CHAIN.iter().filter(|plugin| plugin.presence == Presence::Off) {
        assert!(help.contains(plugin.name), "the help of --enable-admission-plugins lacks {}", plugin.name);
        let row = format!("\n| `{}` | ", plugin.name);
        assert!(page.contains(&row), "docs/flags.md has no row for {}", plugin.name);
    }
}
