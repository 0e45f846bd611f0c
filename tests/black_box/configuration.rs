//! Wrong flags, files and environment variables: the program exits with the code for misuse, and leaves the data
//! directory alone.

use std::fs;

use crate::support::DataDir;

/// Checks that the program ends with a configuration error that contains all `parts`, and that it changed nothing.
fn is_misuse(directory: &DataDir, flags: &[&str], parts: &[&str]) {
    let refusal = directory.try_start_with(flags).err().expect("a refusal");
    assert_eq!(refusal.code, Some(2), "{flags:?}: {}", refusal.messages);
    for part in parts {
        assert!(refusal.messages.contains(part), "{flags:?}: {part} is not in {}", refusal.messages);
    }
    assert!(!directory.path().exists(), "{flags:?}");
}

#[test]
fn wrong_flags_are_refused() {
    let directory = DataDir::new();
    is_misuse(&directory, &["--no-such-flag"], &["--no-such-flag"]);
    is_misuse(&directory, &["--advertise-address", "everywhere"], &["--advertise-address", "everywhere"]);
    is_misuse(&directory, &["--tls-cert-file", "/c"], &["--tls-private-key-file"]);
    is_misuse(&directory, &["--history-seconds", "0"], &["configuration: history-seconds"]);
    is_misuse(&directory, &["--log-level", "a=b=c"], &["configuration: log-level"]);
}

#[test]
fn wrong_files_of_flags_are_refused() {
    let directory = DataDir::new();
    let folder = directory.path().with_file_name("files");
    fs::create_dir_all(&folder).expect("a directory");
    let wrong = folder.join("wrong");
    fs::write(&wrong, "one,two\n").expect("a file");
    let (wrong, absent) = (wrong.display().to_string(), folder.join("absent").display().to_string());
    for option in
        ["client-ca-file", "service-account-signing-key-file", "service-account-key-file", "token-auth-file", "config"]
    {
        for path in [&wrong, &absent] {
            let named = if option == "config" { "configuration" } else { option };
            is_misuse(&directory, &[&format!("--{option}"), path], &[named, path]);
        }
    }
    for path in [&wrong, &absent] {
        is_misuse(&directory, &["--admission-control-config-file", path], &["admission", path]);
        let flags = ["--tls-cert-file", path, "--tls-private-key-file", path];
        is_misuse(&directory, &flags, &["configuration: tls-cert-file", path]);
    }
}

#[test]
fn wrong_variables_are_refused() {
    let directory = DataDir::new();
    let refusal = directory.try_start_in(&[("FLOTILLA_HISTORY_SECONDS", "long")]).err().expect("a refusal");
    assert_eq!(refusal.code, Some(2), "{}", refusal.messages);
    assert!(refusal.messages.contains("configuration: FLOTILLA_HISTORY_SECONDS: "), "{}", refusal.messages);
    assert!(!directory.path().exists());

    // A variable that is no option causes only a warning.
    let server = directory.try_start_in(&[("FLOTILLA_HISTORY_SECOND", "1")]).expect("a server");
    let messages = server.messages();
    let warned = messages.lines().find(|line| line.contains("unrecognized environment variable"));
    assert!(warned.is_some_and(|line| line.contains("WARN") && line.contains("FLOTILLA_HISTORY_SECOND")), "{messages}");
}
