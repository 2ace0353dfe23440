//! The `onlyonce` command.

mod args;
mod commands;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let answer = match args.command {
        Command::Key(key) => commands::key::run(key),
        Command::Explain { code } => commands::explain::run(&code),
    };
    match answer {
        Ok(text) => print(&text),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "onlyonce: {error}\n(onlyonce explain {})", error.code());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Help is an answer; a wrong word is 64, as for every command of ours.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(64),
    }
}

/// Whoever closed the pipe has read enough.
fn print(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(74),
    }
}
