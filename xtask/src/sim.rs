//! `cargo xtask sim`: the simulator, optimised.

use crate::proc::{cargo, run, stdout_of};

pub(crate) const HELP: &str = "\
usage: cargo xtask sim [--seeds N] [--seed N] [ARG ...]

Builds the simulator in release and runs it. `--seeds N` walks N seeds and stops at the first that breaks a
promise, with the seed printed; `--seed N` walks one again. All arguments go to the simulator.
";

/// What to say where there is none.
pub(crate) const MISSING: &str = "there is no simulator yet: onlyonce-testkit has no binary `onlyonce-sim`";

/// Whether the workspace has a simulator.
pub(crate) fn is_there() -> Result<bool, String> {
    has_target("onlyonce-sim")
}

pub(crate) fn command(args: &[String]) -> Result<(), String> {
    if !is_there()? {
        return Err(MISSING.to_owned());
    }
    let mut command =
        cargo(["run", "--release", "--package", "onlyonce-testkit", "--bin", "onlyonce-sim", "--"]);
    run(command.args(args))
}

/// Whether the workspace has a package or target of this name.
pub(crate) fn has_target(name: &str) -> Result<bool, String> {
    let metadata = stdout_of(&mut cargo(["metadata", "--no-deps", "--offline", "--format-version=1"]))?;
    Ok(metadata.contains(&format!("\"name\":\"{name}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_workspace_has_is_found() {
        assert_eq!(has_target("xtask"), Ok(true));
        assert_eq!(has_target("no-such-target"), Ok(false));
    }
}
