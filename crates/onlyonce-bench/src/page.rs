//! The page: a table, how each row was measured, and the machine.

use std::fmt;

use crate::args::Scale;
use crate::{Bench, Failed, machine};

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    what: String,
    ours: String,
    reference: String,
    found: String,
    target: String,
    verdict: Verdict,
}

#[derive(Debug)]
enum Verdict {
    Met,
    Missed,
    NotRun(String),
    Told,
}

impl Row {
    pub(crate) fn new(what: String) -> Self {
        let empty = String::new;
        Self {
            what,
            ours: empty(),
            reference: empty(),
            found: empty(),
            target: empty(),
            verdict: Verdict::Told,
        }
    }

    /// What ours took, and what the other side took.
    pub(crate) fn sides(self, ours: String, reference: String) -> Self {
        Self { ours, reference, ..self }
    }

    /// Judged: so many times as fast, at least.
    pub(crate) fn at_least(self, found: f64, target: f64) -> Self {
        let row = Self { found: format!("{found:.2}x"), target: format!("at least {target}x"), ..self };
        row.judged(found >= target)
    }

    /// Judged: so many times as slow, at most.
    pub(crate) fn at_most(self, found: f64, target: f64) -> Self {
        let row = Self { found: format!("{found:.2}x"), target: format!("at most {target}x"), ..self };
        row.judged(found <= target)
    }

    /// Judged by a figure that is no ratio.
    pub(crate) fn within(self, found: String, target: &str, met: bool) -> Self {
        Self { found, target: target.to_owned(), ..self }.judged(met)
    }

    pub(crate) fn not_run(self, reason: &str) -> Self {
        Self { verdict: Verdict::NotRun(reason.to_owned()), ..self }
    }

    fn judged(self, met: bool) -> Self {
        Self { verdict: if met { Verdict::Met } else { Verdict::Missed }, ..self }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, ours, reference, found, target, verdict } = self;
        write!(f, "| {what} | {ours} | {reference} | {found} | {target} | ")?;
        match verdict {
            Verdict::Met => f.write_str("met |"),
            Verdict::Missed => f.write_str("**missed** |"),
            Verdict::NotRun(reason) => write!(f, "*not run*: {reason} |"),
            Verdict::Told => f.write_str("|"),
        }
    }
}

/// So many a second.
pub(crate) fn rate(ns_per_unit: f64, unit: &str) -> String {
    let per_second = 1e9 / ns_per_unit;
    match per_second {
        p if p >= 1e6 => format!("{:.2} M {unit}/s", p / 1e6),
        p if p >= 1e4 => format!("{:.0} k {unit}/s", p / 1e3),
        p if p >= 1e3 => format!("{:.1} k {unit}/s", p / 1e3),
        p => format!("{p:.0} {unit}/s"),
    }
}

const INTRODUCTION: &str = "\
# Benchmarks

Written by `cargo xtask bench`. Figures of a machine mean little, and this one does other work as well; ratios within \
one run mean something. The sides of a row do the same work in turn, round after round; a side is shown by its median \
round, and the row is judged by the median of the rounds' ratios.
";

const QUICK: &str = "\nA quick run: it shows that the bench works, and judges nothing.\n";

const TABLE: &str =
    "\n| what | ours | reference | found | target | |\n| --- | --- | --- | --- | --- | --- |\n";

pub(crate) fn page(scale: Scale, rows: &[(&Bench, Vec<Row>)]) -> Result<String, Failed> {
    let mut page = INTRODUCTION.to_owned();
    if scale == Scale::Quick {
        page.push_str(QUICK);
    }
    page.push_str(TABLE);
    for row in rows.iter().flat_map(|(_, rows)| rows) {
        page.push_str(&shown(scale, row));
    }
    page.push_str("\n## How\n\n");
    for (bench, _) in rows {
        page.push_str(&format!("- **{}**: {}\n", bench.name, bench.how));
    }
    page.push_str("\n## Machine\n\n");
    page.push_str(&machine::facts()?);
    Ok(page)
}

fn shown(scale: Scale, row: &Row) -> String {
    match (scale, &row.verdict) {
        (Scale::Quick, Verdict::Met | Verdict::Missed) => {
            let Row { what, ours, reference, found, target, .. } = row;
            format!("| {what} | {ours} | {reference} | {found} | {target} | not judged |\n")
        }
        _ => format!("{row}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_judged_by_its_target() {
        let shown = |row: Row| row.to_string();
        let row = || Row::new("a".to_owned()).sides("1".to_owned(), "2".to_owned());
        assert_eq!(shown(row().at_least(2.0, 1.5)), "| a | 1 | 2 | 2.00x | at least 1.5x | met |");
        assert!(shown(row().at_least(1.49, 1.5)).ends_with("**missed** |"));
        assert!(shown(row().at_most(4.01, 4.0)).ends_with("**missed** |"));
        assert!(shown(row().at_most(4.0, 4.0)).ends_with("| met |"));
        assert!(shown(row().not_run("offline")).ends_with("*not run*: offline |"));
    }

    #[test]
    fn a_quick_run_judges_nothing() {
        let row = Row::new("a".to_owned()).at_least(1.0, 2.0);
        assert!(super::shown(Scale::Quick, &row).ends_with("| not judged |\n"));
    }

    #[test]
    fn rates_are_readable() {
        assert_eq!(rate(100.0, "calls"), "10.00 M calls/s");
        assert_eq!(rate(25_000.0, "calls"), "40 k calls/s");
        assert_eq!(rate(625_000.0, "calls"), "1.6 k calls/s");
    }
}
