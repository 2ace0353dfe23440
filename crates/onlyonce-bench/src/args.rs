//! What was typed.

use std::time::Duration;

use crate::{BENCHES, Failed};

const USAGE: &str = "usage: onlyonce-bench [--quick] [--only NAME]...";

/// What was typed.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) scale: Scale,
    only: Vec<String>,
}

/// How much is done: enough to judge, or enough to see that it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Full,
    Quick,
}

impl Scale {
    /// So many, or a hundredth of it.
    pub(crate) fn of(self, many: usize) -> usize {
        match self {
            Self::Full => many,
            Self::Quick => (many / 100).max(1),
        }
    }

    /// So many rounds, or two.
    pub(crate) fn rounds(self, many: usize) -> usize {
        match self {
            Self::Full => many,
            Self::Quick => many.min(2),
        }
    }

    /// So long, or the other.
    pub(crate) fn time(self, full: Duration, quick: Duration) -> Duration {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

impl Args {
    pub(crate) fn read(args: &[String]) -> Result<Self, Failed> {
        let mut read = Self { scale: Scale::Full, only: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => read.scale = Scale::Quick,
                "--only" => read.only.push(known(args.next())?),
                other => return Err(format!("{other:?} is no argument of this\n{USAGE}").into()),
            }
        }
        Ok(read)
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

fn known(name: Option<&String>) -> Result<String, Failed> {
    let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
    match name {
        Some(name) if names.contains(&name.as_str()) => Ok(name.clone()),
        _ => Err(format!("--only takes one of {}\n{USAGE}", names.join(", ")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Args, Failed> {
        Args::read(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn everything_unless_told() {
        let all = read(&[]).unwrap();
        assert!(all.wants("replay") && all.wants("leases") && all.scale == Scale::Full);
        let some = read(&["--quick", "--only", "json", "--only", "file"]).unwrap();
        assert!(some.wants("json") && some.wants("file") && !some.wants("first"));
        assert_eq!(some.scale, Scale::Quick);
    }

    #[test]
    fn a_wrong_name_is_told_the_right_ones() {
        for wrong in [&["--only", "jsno"][..], &["--only"], &["--fast"]] {
            assert!(read(wrong).unwrap_err().to_string().contains("usage:"), "{wrong:?}");
        }
        assert!(read(&["--only", "x"]).unwrap_err().to_string().contains("sqlite-size"));
    }
}
