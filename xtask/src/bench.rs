//! `cargo xtask bench`: measures, and keeps the page it prints.

use crate::proc::{cargo, root, stdout_of};
use crate::sim::has_target;

pub(crate) const HELP: &str = "\
usage: cargo xtask bench [--quick] [--only NAME]...

Builds onlyonce-bench in release, runs it, prints its page of Markdown and keeps it as docs/benchmarks.md. Progress
goes to the terminal. `--only NAME` (replay, first, sqlite, sqlite-size, json, file, leases) measures that alone, and
`--quick` does a little of everything, to see that it works; both leave the page as it was, and so does a run that
fails.
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
    print!("{page}");
    // Part of a page is not the page.
    if args.is_empty() {
        std::fs::write(root().join(PAGE), &page).map_err(|error| format!("cannot write {PAGE}: {error}"))?;
        println!("\nwritten to {PAGE}");
    }
    Ok(())
}
