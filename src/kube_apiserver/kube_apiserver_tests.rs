use std::collections::BTreeSet;

use super::table::{FlagEffect, SECTIONS, flags};
use super::*;

fn given(line: &[&str]) -> Result<ParsedFlags, String> {
    parse(line.iter().map(|word| (*word).to_owned())).map_err(|misuse| misuse.to_string())
}

fn translated(line: &[&str]) -> Result<Translation, String> {
    translate(&given(line).unwrap()).map_err(|misuse| misuse.to_string())
}

#[test]
fn the_table_of_flags_is_consistent() {
    let names: BTreeSet<&str> = flags().map(|flag| flag.name).collect();
    assert_eq!(names.len(), flags().count(), "each flag stands there once");
    let upstream = flags().filter(|flag| flag.effect != FlagEffect::Own).count();
    assert_eq!(upstream, 172, "as many as kube-apiserver 1.36.3 has");
    for section in &SECTIONS {
        for pair in section.flags.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
    }
    for flag in flags().filter(|flag| !flag.default.is_empty()) {
        assert!(value::parts(flag.kind, flag.default).is_ok(), "{}", flag.name);
    }
}

#[test]
fn flags_have_the_syntax_of_pflag() {
    let found = given(&["--secure-port=1", "--secure_port", "2", "--profiling", "-v4", "--api-audiences=a,b"]).unwrap();
    assert_eq!(found.one("secure-port"), Some("2"));
    assert!(found.is("profiling"));
    assert_eq!(found.one("v"), Some("4"));
    let found = given(&["--api-audiences=a,\"b,c\"", "--api-audiences", "d", "-v", "1", "--runtime-config="]).unwrap();
    assert_eq!(found.all("api-audiences"), ["a", "b,c", "d"]);
    assert_eq!(found.one("v"), Some("1"));
    assert_eq!(given(&["--version=T"]).unwrap().one("version"), Some("true"));
    let wrong = |line: &[&str]| given(line).unwrap_err();
    assert_eq!(wrong(&["--nope=1"]), "unknown flag: --nope");
    assert_eq!(wrong(&["--insecure-port=0"]), "unknown flag: --insecure-port");
    assert_eq!(wrong(&["-q"]), "unknown shorthand flag: 'q' in -q");
    assert_eq!(wrong(&["--secure-port"]), "flag needs an argument: --secure-port");
    assert_eq!(wrong(&["a", "b"]), "\"kube-apiserver\" does not take any arguments, got [\"a\" \"b\"]");
    assert_eq!(
        wrong(&["--secure-port=abc"]),
        "invalid argument \"abc\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"abc\": invalid syntax"
    );
    assert_eq!(
        wrong(&["--profiling=maybe"]),
        "invalid argument \"maybe\" for \"--profiling\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax"
    );
    assert_eq!(
        wrong(&["--event-ttl=5"]),
        "invalid argument \"5\" for \"--event-ttl\" flag: time: missing unit in duration \"5\""
    );
    assert_eq!(
        wrong(&["--advertise-address=foo"]),
        "invalid argument \"foo\" for \"--advertise-address\" flag: failed to parse IP: \"foo\""
    );
    assert_eq!(
        wrong(&["--service-node-port-range=abc"]),
        "invalid argument \"abc\" for \"--service-node-port-range\" flag: strconv.Atoi: parsing \"abc\": invalid syntax"
    );
    assert_eq!(
        wrong(&["--version=v1.36.5"]),
        "invalid argument \"v1.36.5\" for \"--version\" flag: version \"v1.36.5\" must match major/minor/patch of \
         default version \"v1.36.3\""
    );
}

#[test]
fn flags_that_are_dangerous_to_ignore_are_refused() {
    for (line, part) in [
        ("--authorization-mode=RBAC,Webhook", "authorization-mode Webhook's authorization config file not passed"),
        ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
        ("--authorization-policy-file=/a", "cannot specify --authorization-policy-file without mode ABAC"),
        ("--authorization-webhook-config-file=/a", "cannot specify --authorization-webhook-config-file without mode"),
        ("--authorization-mode=Foo", "authorization-mode \"Foo\" is not a valid mode"),
        ("--authorization-mode=RBAC,RBAC", "more than once"),
        ("--enable-admission-plugins=Foo", "enable-admission-plugins plugin \"Foo\" is unknown"),
        ("--feature-gates=Foo=true", "unrecognized feature gate: Foo"),
        ("--feature-gates=AllAlpha", "missing bool value for AllAlpha"),
        ("--feature-gates=AllAlpha=true,foo:A=true", "component not registered: foo"),
        (
            "--feature-gates=ConsistentListFromCache=false",
            "cannot set feature gate ConsistentListFromCache to false, feature is locked to true",
        ),
        ("--secure-port=0", "--secure-port 0 must be between 1 and 65535"),
    ] {
        let why = translated(&[line]).unwrap_err();
        assert!(why.contains(part), "{line}: {why}");
    }
}

#[test]
fn flags_become_options_of_serve() {
    let line = [
        "--data-dir=/d",
        "--bind-address=127.0.0.1",
        "--secure-port=7000",
        "--authorization-mode=Node,RBAC",
        "--shutdown-delay-duration=1500ms",
        "--service-cluster-ip-range=10.1.0.0/16",
    ];
    let found = translated(&line).unwrap();
    for argument in [
        "--listen=127.0.0.1:7000",
        "--authorization-mode=Node,RBAC",
        "--shutdown-delay-seconds=2",
        "--service-cluster-ip-range=10.1.0.0/16",
        "--embedded-controllers=false",
        "--cert-dir=/var/run/kubernetes",
        "--data-dir=/d",
    ] {
        assert!(found.arguments.iter().any(|given| given == argument), "{argument} is not in {:?}", found.arguments);
    }
    assert_eq!(found.log_lines, [""; 0]);
    assert!(!found.arguments.iter().any(|given| given.starts_with("--reported-version")));
    let found = translated(&["--version=v1.36.3-mine"]).unwrap();
    assert!(found.arguments.iter().any(|given| given == "--reported-version=v1.36.3-mine"), "{:?}", found.arguments);
    let gates =
        "--feature-gates=kube:AllAlpha=true,APIResponseCompression=true,ConsistentListFromCache=true,AllBeta=false";
    let log_lines =
        translated(&["--data-dir=/d", "--service-cluster-ip-range=::/108", "--authorization-mode=RBAC", gates]);
    assert_eq!(log_lines.unwrap().log_lines, ["--feature-gates=AllAlpha=true: features are as by default"]);
    let found = translated(&["--data-dir=/d", "--etcd-servers=http://a,http://b", "--service-cluster-ip-range=::/108"]);
    let log_lines = found.unwrap().log_lines;
    assert_eq!(log_lines.len(), 2, "{log_lines:?}");
    assert!(log_lines.iter().any(|line| line.contains("no etcd is used")), "{log_lines:?}");
    assert!(log_lines.iter().any(|line| line.contains("AlwaysAllow")), "{log_lines:?}");
}

#[test]
fn help_has_every_flag() {
    let text = help();
    for flag in flags() {
        assert!(text.lines().any(|line| line.contains(&format!("--{}", flag.name))), "{}", flag.name);
    }
    assert!(!text.lines().any(|line| line.trim_start().starts_with("--insecure-port")));
    assert!(version("true").starts_with("Kubernetes v1.36.3+flotilla"));
}
