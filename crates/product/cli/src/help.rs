//! `--help-lab`: the flags for experiments, which `--help` hides from operators.

use clap::Command;

/// The heading of flags for experiments. They are hidden from `--help`.
pub(crate) const LABORATORY: &str = "Laboratory";

/// The flag.
const FLAG: &str = "--help-lab";

/// The help for the laboratory's flags of the command that `words` name, if they ask for it. `words` begin behind the program's name.
pub(crate) fn laboratory(mut command: Command, words: &[String]) -> Option<String> {
    if !words.iter().take_while(|word| *word != "--").any(|word| word == FLAG) {
        return None;
    }
    let mut name = command.get_name().to_owned();
    for word in words {
        let Some(found) = command.find_subcommand(word) else { break };
        name = format!("{name} {word}");
        command = found.clone();
    }
    if !command.get_arguments().any(|flag| flag.get_help_heading() == Some(LABORATORY)) {
        return Some(format!("{name} has no flags for experiments; see {name} --help\n"));
    }
    let command = command
        .mut_args(|flag| {
            let is_laboratory = flag.get_help_heading() == Some(LABORATORY);
            flag.hide(!is_laboratory)
        })
        .bin_name(&name)
        .override_usage(format!("{name} [OPTIONS] ..."))
        .about(
            "Flags for experiments. They change how QUIC behaves. Serving and downloading need none of them.",
        )
        .long_about(None)
        .after_help("")
        .after_long_help(format!("All other flags: {name} --help"))
        .disable_help_flag(true)
        .disable_help_subcommand(true);
    Some(command.clone().render_long_help().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn command(line: &str) -> Command {
        let mut command = crate::Cli::command();
        command.build();
        let found =
            words(line).iter().try_fold(command, |command, word| command.find_subcommand(word).cloned());
        found.unwrap()
    }

    const COMMANDS: [&str; 6] = ["serve", "get", "load", "dash", "perf serve", "perf client"];

    /// Deleted, an operator could have to find his dozen flags among those of experiments.
    #[test]
    fn help_shows_the_operators_flags_and_help_lab_the_laboratorys() {
        for line in COMMANDS {
            let help = command(line).render_long_help().to_string();
            let lab = laboratory(crate::Cli::command(), &words(&format!("{line} --help-lab"))).unwrap();
            for flag in ["--without", "--hold-received", "--pacing-burst-us", "--ack-every", "--mtu-floor"] {
                assert!(!help.contains(flag), "{line} {flag}");
                assert!(lab.contains(flag), "{line} {flag}: {lab}");
            }
            assert!(help.contains("--help-lab") && help.contains("--congestion"), "{help}");
            assert!(!lab.contains("--congestion") && lab.contains(&format!("tercel {line} --help")), "{lab}");
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let lines = COMMANDS.map(|line| (line, command(line).render_help().to_string().lines().count()));
        assert!(lines.iter().all(|(_, count)| *count <= 60), "{lines:?}");
    }

    #[test]
    fn who_does_not_ask_gets_none_and_a_command_without_such_flags_says_so() {
        let ask = |line: &str| laboratory(crate::Cli::command(), &words(line));
        assert_eq!(ask("serve --help"), None);
        assert_eq!(ask("lab -- echo --help-lab"), None);
        assert!(ask("doctor --help-lab").unwrap().contains("tercel doctor has no flags for experiments"));
    }
}
