//! Examples are run and checked: `examples/NAME.rs` with `NAME.session` beside it.

mod session;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use session::Session;

use super::tally::Tally;
use crate::proc::{cargo, root, stdout_of};

/// An example and what it has to print.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    package: String,
    name: String,
    session: PathBuf,
}

/// Runs every example that matches a filter, and says what it printed wrongly.
pub(super) fn run(filters: &[String]) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for example in find(&root().join("crates")).map_err(|error| format!("cannot list examples: {error}"))? {
        if !filters.is_empty() && !filters.iter().any(|filter| example.name.contains(filter.as_str())) {
            tally.skipped += 1;
            continue;
        }
        let label = format!("example {}::{}", example.package, example.name);
        match example.run() {
            Ok(()) => {
                println!("{label} ... ok");
                tally.passed += 1;
            }
            Err(wrong) => {
                println!("{label} ... FAILED\n{wrong}");
                tally.failed += 1;
            }
        }
    }
    Ok(tally)
}

/// Every example of these packages, in the order of their names.
fn find(packages: &Path) -> std::io::Result<Vec<Example>> {
    let mut found = Vec::new();
    for package in std::fs::read_dir(packages)? {
        let package = package?;
        let Ok(examples) = std::fs::read_dir(package.path().join("examples")) else { continue };
        for file in examples {
            let source = file?.path();
            let session = source.with_extension("session");
            if let (Some("rs"), Some(name)) = (part(source.extension()), part(source.file_stem())) {
                let package = package.file_name().to_string_lossy().into_owned();
                found.push(Example { package, name: name.to_owned(), session });
            }
        }
    }
    found.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    Ok(found)
}

fn part(of_path: Option<&std::ffi::OsStr>) -> Option<&str> {
    of_path?.to_str()
}

impl Example {
    /// Plays the session in a directory of its own.
    fn run(&self) -> Result<(), String> {
        let text = std::fs::read_to_string(&self.session)
            .map_err(|error| format!("  there is no {}.session beside it: {error}", self.name))?;
        let session = Session::read(&text, &self.name)?;
        let program = self.build()?;
        let place = std::env::temp_dir().join(format!("onlyonce-{}-{}", self.name, std::process::id()));
        std::fs::create_dir_all(&place).map_err(|error| format!("  cannot make a directory: {error}"))?;
        let played = session.play(|args| {
            let output = Command::new(&program).args(args).current_dir(&place).output();
            output.map(|output| transcript(&output)).map_err(|error| format!("  cannot run it: {error}"))
        });
        // What the example left there is of no use to anybody, and not ours to fail over.
        let _ = std::fs::remove_dir_all(&place);
        played
    }

    /// Builds the example, and gives its program.
    fn build(&self) -> Result<PathBuf, String> {
        let name = &self.name;
        // The whole workspace, as the tests were built: for one package cargo picks other features, and builds all anew.
        let mut build = cargo(["build", "--quiet", "--workspace", "--example", name]);
        let messages = stdout_of(build.arg("--message-format=json-render-diagnostics"))?;
        let own = messages.lines().filter(|line| line.contains(&format!("\"name\":\"{name}\"")));
        let program =
            own.filter_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"')).next_back();
        program.map(|(path, _)| path.into()).ok_or_else(|| "  cargo named no program".to_owned())
    }
}

/// What a program printed, and how it ended where that was not well.
fn transcript(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    match (output.status.code(), output.status.signal()) {
        (Some(0), _) => {}
        (Some(code), _) => text.push_str(&format!("(status {code})\n")),
        (None, signal) => text.push_str(&format!("(signal {})\n", signal.unwrap_or_default())),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_found_with_their_package() {
        let here = std::env::temp_dir().join(format!("xtask-examples-{}", std::process::id()));
        std::fs::create_dir_all(here.join("alpha/examples")).unwrap();
        std::fs::create_dir_all(here.join("beta")).unwrap();
        for name in ["b.rs", "a.rs", "a.session"] {
            std::fs::write(here.join("alpha/examples").join(name), "").unwrap();
        }
        let found = find(&here).unwrap();
        std::fs::remove_dir_all(&here).unwrap();
        let names: Vec<_> = found.iter().map(|e| (e.package.as_str(), e.name.as_str())).collect();
        assert_eq!(names, [("alpha", "a"), ("alpha", "b")]);
    }

    #[test]
    fn a_bad_end_is_part_of_the_transcript() {
        let run = |script| transcript(&Command::new("sh").args(["-c", script]).output().unwrap());
        assert_eq!(run("echo a"), "a\n");
        assert_eq!(run("echo a; exit 3"), "a\n(status 3)\n");
        assert_eq!(run("echo a; kill -9 $$"), "a\n(signal 9)\n");
    }
}
