//! Counts what a test runner says at its end.

use std::ops::AddAssign;

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// What a runner said at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closing {
    /// The sum over all test binaries; zero when it never came to its end.
    pub(crate) tally: Tally,
    /// Nextest's own sum. The one line per binary of `cargo test` is not kept: repeated, it would count twice.
    pub(crate) summary: Option<String>,
}

/// Finds the closing lines in what a runner printed.
///
/// Nextest shows what a failed test printed, and that has closing lines too: where nextest speaks, it alone counts.
pub(crate) fn closing(text: &str) -> Closing {
    let mut closing = Closing::default();
    for line in text.lines().map(without_colour) {
        if let Some(tally) = nextest(&line) {
            closing = Closing { tally, summary: Some(line.trim().to_owned()) };
        } else if let (Some(tally), None) = (libtest(&line), &closing.summary) {
            closing.tally += tally;
        }
    }
    closing
}

/// `Summary [ 1.2s] 9/10 tests run: 7 passed (1 slow), 1 failed, 1 timed out, 2 skipped`.
fn nextest(line: &str) -> Option<Tally> {
    let (before, counts) = line.split_once("run: ")?;
    before.trim_start().starts_with("Summary [").then(|| count(counts, ','))
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s`.
fn libtest(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    Some(count(counts, ';'))
}

fn count(counts: &str, between: char) -> Tally {
    let mut tally = Tally::default();
    for part in counts.split(between) {
        let mut words = part.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else { continue };
        match words.next() {
            Some("passed") => tally.passed += number,
            Some("failed" | "exec" | "timed") => tally.failed += number,
            Some("skipped" | "ignored" | "filtered") => tally.skipped += number,
            _ => {}
        }
    }
    tally
}

fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut parts = line.split("\u{1b}[");
    plain.extend(parts.next());
    // Every further part starts with a colour code that ends with `m`.
    plain.extend(parts.filter_map(|part| part.split_once('m')).map(|(_, text)| text));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally { passed, failed, skipped }
    }

    #[test]
    fn nextest_is_read_with_and_without_colour() {
        let plain = "     Summary [   1.204s] 10 tests run: 7 passed (1 slow, 1 leaky), 1 failed, 1 exec failed, 1 timed out, 2 skipped";
        assert_eq!(closing(plain).tally, tally(7, 3, 2));
        let colour = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.004s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m";
        assert_eq!(closing(colour).tally, tally(3, 0, 0));
        let summary = closing(colour).summary;
        assert_eq!(summary.as_deref(), Some("Summary [   0.004s] 3 tests run: 3 passed, 0 skipped"));
    }

    #[test]
    fn a_run_that_was_cut_short_counts_what_ran() {
        let text = "     Summary [   0.010s] 2/9 tests run: 1 passed, 1 failed, 0 skipped";
        assert_eq!(closing(text).tally, tally(1, 1, 0));
        let one = "     Summary [   0.010s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(closing(one).tally, tally(1, 0, 0));
    }

    #[test]
    fn every_test_result_of_cargo_test_counts() {
        let text = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s\n\
                    noise: 9 passed\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(closing(text), Closing { tally: tally(6, 2, 3), summary: None });
    }

    #[test]
    fn what_a_failed_test_printed_does_not_count() {
        let inner = "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0s\n";
        let outer = "     Summary [   0.089s] 2 tests run: 1 passed, 1 failed, 7 skipped\n";
        let text = format!("{}{inner}{outer}{inner}{}", inner.trim_start(), inner.trim_start());
        assert_eq!(closing(&text).tally, tally(1, 1, 7));
        assert_eq!(closing(inner), Closing::default());
    }

    #[test]
    fn a_run_that_never_ended_has_no_closing_line() {
        assert_eq!(closing("error: could not compile `x`\n"), Closing::default());
    }
}
