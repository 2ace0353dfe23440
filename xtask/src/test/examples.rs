//! Examples whose output is checked: `examples/NAME.rs` with `NAME.stdout` beside it.

use std::path::{Path, PathBuf};

use super::tally::Tally;
use crate::proc::{cargo, root, stdout_of};

/// An example and what it has to print.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    package: String,
    name: String,
    expected: PathBuf,
}

/// Runs every example that matches a filter, and says what it printed wrongly.
pub(super) fn run(filters: &[String]) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for example in find(&root().join("crates")).map_err(|error| format!("cannot list examples: {error}"))? {
        if !filters.is_empty() && !filters.iter().any(|filter| example.name.contains(filter.as_str())) {
            tally.skipped += 1;
            continue;
        }
        match example.run() {
            Ok(()) => tally.passed += 1,
            Err(_) => tally.failed += 1,
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
            let expected = source.with_extension("stdout");
            if let (Some("rs"), Some(name)) = (extension(&source), stem(&source)) {
                let package = package.file_name().to_string_lossy().into_owned();
                found.push(Example { package, name: name.to_owned(), expected });
            }
        }
    }
    found.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    Ok(found)
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}

impl Example {
    fn run(&self) -> Result<(), ()> {
        let Self { package, name, .. } = self;
        let mut command = cargo(["run", "--quiet", "--package", package, "--example", name]);
        let verdict = stdout_of(&mut command).and_then(|printed| {
            let expected = std::fs::read_to_string(&self.expected)
                .map_err(|error| format!("there is no {name}.stdout beside it: {error}"))?;
            compare(&printed, &expected)
        });
        match verdict {
            Ok(()) => println!("example {package}::{name} ... ok"),
            Err(ref wrong) => println!("example {package}::{name} ... FAILED\n{wrong}"),
        }
        verdict.map_err(drop)
    }
}

/// The first line that differs, from both sides.
fn compare(printed: &str, expected: &str) -> Result<(), String> {
    if printed == expected {
        return Ok(());
    }
    let (mut ours, mut theirs) = (printed.lines(), expected.lines());
    let mut line = 1;
    loop {
        match (ours.next(), theirs.next()) {
            (Some(a), Some(b)) if a == b => line += 1,
            (None, None) => return Err("  only the line ends differ".to_owned()),
            (a, b) => {
                let shown =
                    |side: Option<&str>| side.map_or("the end".to_owned(), |text| format!("{text:?}"));
                return Err(format!("  line {line}: printed {}, expected {}", shown(a), shown(b)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(compare("a\nb\n", "a\nb\n"), Ok(()));
        assert_eq!(compare("a\nb\n", "a\nc\n").unwrap_err(), "  line 2: printed \"b\", expected \"c\"");
        assert_eq!(compare("a\n", "a\nc\n").unwrap_err(), "  line 2: printed the end, expected \"c\"");
        assert!(compare("a\n", "a").unwrap_err().contains("line ends"));
    }

    #[test]
    fn examples_are_found_with_their_package() {
        let here = std::env::temp_dir().join(format!("xtask-examples-{}", std::process::id()));
        std::fs::create_dir_all(here.join("alpha/examples")).unwrap();
        std::fs::create_dir_all(here.join("beta")).unwrap();
        for name in ["b.rs", "a.rs", "a.stdout"] {
            std::fs::write(here.join("alpha/examples").join(name), "").unwrap();
        }
        let found = find(&here).unwrap();
        std::fs::remove_dir_all(&here).unwrap();
        let names: Vec<_> = found.iter().map(|e| (e.package.as_str(), e.name.as_str())).collect();
        assert_eq!(names, [("alpha", "a"), ("alpha", "b")]);
    }
}
