//! The project's own chores: `cargo xtask <command>`.

mod bench;
mod ci;
mod proc;
mod sim;
mod test;
mod tidy;

use std::process::ExitCode;

/// One chore.
struct Command {
    name: &'static str,
    /// One line, for the list.
    what: &'static str,
    /// The whole page, for `cargo xtask help <name>`.
    help: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        what: "run every test this machine can run",
        help: test::HELP,
        run: test::command,
    },
    Command { name: "ci", what: "everything a change must pass", help: ci::HELP, run: ci::command },
    Command {
        name: "tidy",
        what: "check the repository against its own rules",
        help: tidy::HELP,
        run: tidy::command,
    },
    Command { name: "sim", what: "run the simulator", help: sim::HELP, run: sim::command },
    Command {
        name: "bench",
        what: "measure, and write docs/benchmarks.md",
        help: bench::HELP,
        run: bench::command,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<(), String> {
    let Some((name, rest)) = args.split_first() else {
        print!("{}", overview());
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print!("{}", page(rest.first())?);
        return Ok(());
    }
    let command = find(name)?;
    if rest.iter().any(|arg| arg == "-h" || arg == "--help") {
        print!("{}", command.help);
        return Ok(());
    }
    (command.run)(rest)
}

fn find(name: &str) -> Result<&'static Command, String> {
    COMMANDS
        .iter()
        .find(|command| command.name == name)
        .ok_or_else(|| format!("there is no `cargo xtask {name}`\n\n{}", overview()))
}

fn page(name: Option<&String>) -> Result<String, String> {
    name.map_or_else(|| Ok(overview()), |name| find(name).map(|command| command.help.to_owned()))
}

fn overview() -> String {
    let mut text = String::from("usage: cargo xtask <command>\n\n");
    for command in COMMANDS {
        text.push_str(&format!("  {:<8}{}\n", command.name, command.what));
    }
    text.push_str("  help    a page about one command: cargo xtask help test\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_line_and_a_page() {
        for command in COMMANDS {
            assert!(overview().contains(command.what), "{}", command.name);
            assert!(command.help.starts_with("usage: cargo xtask "), "{}", command.name);
            assert_eq!(page(Some(&command.name.to_owned())).unwrap(), command.help);
        }
    }

    #[test]
    fn an_unknown_command_shows_the_list() {
        let message = dispatch(&["tset".to_owned()]).unwrap_err();
        assert!(message.contains("no `cargo xtask tset`") && message.contains("usage:"), "{message}");
    }
}
