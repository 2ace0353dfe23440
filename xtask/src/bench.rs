//! `cargo xtask bench`: measures, and keeps the page it prints.

use crate::proc::{cargo, root, stdout_of};
use crate::sim::has_target;

pub(crate) const HELP: &str = "\
usage: cargo xtask bench [ARG ...]

Builds onlyonce-bench in release, runs it and writes what it prints (a page of Markdown) to
docs/benchmarks.md. Progress goes to the terminal. All arguments go to the bench. A run that fails leaves the
page as it was.
";

const PAGE: &str = "docs/benchmarks.md";

pub(crate) fn command(args: &[String]) -> Result<(), String> {
    if !has_target("onlyonce-bench")? {
        return Err("there is no bench yet: the workspace has no package `onlyonce-bench`".to_owned());
    }
    let mut command = cargo(["run", "--release", "--package", "onlyonce-bench", "--"]);
    let page = stdout_of(command.args(args))?;
    if !page.starts_with('#') {
        return Err(format!("the bench printed no page (it must start with a title); {PAGE} is unchanged"));
    }
    std::fs::write(root().join(PAGE), &page).map_err(|error| format!("cannot write {PAGE}: {error}"))?;
    print!("{page}");
    println!("\nwritten to {PAGE}");
    Ok(())
}
