//! `tercel completions` and `tercel man`, as a package is made of them.

use crate::configuration::run;
use std::process::Command;
use tempfile::TempDir;

/// Deleted, a shell could complete flags that are no more, or stumble over its script.
#[test]
fn shells_are_told_the_commands_and_their_flags() {
    let place = TempDir::new().expect("a folder");
    for (shell, is_of_shell, flag) in [
        ("bash", "complete -F _tercel", "--drain-timeout"),
        ("zsh", "#compdef tercel", "--drain-timeout"),
        ("fish", "complete -c tercel", "-l drain-timeout"),
    ] {
        let output = run(place.path(), &["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && script.contains(is_of_shell) && script.contains(flag), "{shell}");
        assert!(script.contains("doctor") && script.contains("reload"), "{shell}");
        let file = place.path().join(shell);
        std::fs::write(&file, &output.stdout).expect("written");
        // Without the shell nothing can judge its script.
        if let Ok(judged) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(judged.status.success(), "{judged:?}");
        }
    }
    assert_eq!(run(place.path(), &["completions", "tcsh"]).status.code(), Some(2));
}

/// Deleted, `man tercel-serve` could be empty, or lead operators to the flags of the laboratory.
#[test]
fn each_command_has_a_page() {
    let place = TempDir::new().expect("a folder");
    let output = run(place.path(), &["man", "pages/man1"]);
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(place.path().join("pages/man1").join(name)).expect(name);
    for name in [
        "tercel.1",
        "tercel-get.1",
        "tercel-check.1",
        "tercel-reload.1",
        "tercel-config-show.1",
        "tercel-doctor.1",
    ] {
        assert!(page(name).contains(".TH "), "{name}");
    }
    let serve = page("tercel-serve.1");
    assert!(serve.contains("\\-\\-drain\\-timeout") && serve.contains("\\-\\-config tercel.toml"), "{serve}");
    assert!(!serve.contains("ack\\-every"), "the laboratory's");
    std::fs::write(place.path().join("file"), "").expect("written");
    let refused = run(place.path(), &["man", "file"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(1) && said.starts_with("tercel: cannot write pages to file: "),
        "{said}"
    );
}
