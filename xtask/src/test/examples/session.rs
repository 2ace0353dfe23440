//! What is typed and what has to come out, as one would see it on a terminal.
//!
//! ```text
//! $ charge 4711
//! charging order 4711: attempt 1, once_…
//! ran: receipt for order 4711
//! $ charge 4712 --die
//! charging order 4712: attempt 1, once_…
//! (signal 6)
//! ```
//!
//! `…` stands for any text within its line. Standard output counts; a bad end is its last line.

/// Commands in order, each with the lines it has to print.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Session<'a> {
    steps: Vec<Step<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Step<'a> {
    line: usize,
    args: Vec<&'a str>,
    expected: Vec<&'a str>,
}

impl<'a> Session<'a> {
    /// Reads a session in which every command is `name`.
    pub(super) fn read(text: &'a str, name: &str) -> Result<Self, String> {
        let mut steps: Vec<Step<'_>> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let (typed, last) = (line.strip_prefix("$ "), steps.last_mut());
            match (typed, last) {
                (Some(typed), _) => {
                    let mut words = typed.split_whitespace();
                    if words.next() != Some(name) {
                        return Err(format!("  line {}: a command starts with `{name}`", at + 1));
                    }
                    steps.push(Step { line: at + 1, args: words.collect(), expected: Vec::new() });
                }
                (None, Some(step)) => step.expected.push(line),
                (None, None) => return Err(format!("  line 1: a session begins with `$ {name}`")),
            }
        }
        if steps.is_empty() { Err(format!("  it is empty; write `$ {name}`")) } else { Ok(Self { steps }) }
    }

    /// Runs the commands, and stops at the first line that differs.
    pub(super) fn play(&self, mut run: impl FnMut(&[&str]) -> Result<String, String>) -> Result<(), String> {
        self.steps.iter().try_for_each(|step| step.compare(&run(&step.args)?))
    }
}

impl Step<'_> {
    fn compare(&self, printed: &str) -> Result<(), String> {
        let printed: Vec<&str> = printed.lines().collect();
        for at in 0..printed.len().max(self.expected.len()) {
            let (ours, theirs) = (printed.get(at), self.expected.get(at));
            let same = matches!((ours, theirs), (Some(ours), Some(theirs)) if fits(ours, theirs));
            if !same {
                let shown =
                    |side: Option<&&str>| side.map_or("the end".to_owned(), |text| format!("{text:?}"));
                let line = self.line + at + 1;
                return Err(format!("  line {line}: printed {}, expected {}", shown(ours), shown(theirs)));
            }
        }
        Ok(())
    }
}

/// Whether a line is what is expected, where `…` is any text.
fn fits(line: &str, expected: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else { return line == expected };
    let Some(mut left) = line.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "$ charge 1\nran: …\nend\n$ charge 1 --die\n(signal 6)\n";

    #[test]
    fn a_session_is_read_as_typed() {
        let session = Session::read(TEXT, "charge").unwrap();
        let steps: Vec<_> =
            session.steps.iter().map(|s| (s.line, s.args.clone(), s.expected.clone())).collect();
        assert_eq!(
            steps,
            [(1, vec!["1"], vec!["ran: …", "end"]), (4, vec!["1", "--die"], vec!["(signal 6)"])]
        );
        for bad in ["", "ran\n", "$ other 1\n"] {
            assert!(Session::read(bad, "charge").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_first_difference_is_shown_with_its_line() {
        let play = |first: &str, second: &str| {
            let mut answers = [second.to_owned(), first.to_owned()].to_vec();
            Session::read(TEXT, "charge").unwrap().play(|_| answers.pop().ok_or_else(String::new))
        };
        assert_eq!(play("ran: x\nend\n", "(signal 6)\n"), Ok(()));
        assert_eq!(play("ran: x\n", "").unwrap_err(), "  line 3: printed the end, expected \"end\"");
        assert_eq!(
            play("ran: x\nend\nmore\n", "").unwrap_err(),
            "  line 4: printed \"more\", expected the end"
        );
        assert_eq!(
            play("ran: x\nend\n", "x\n").unwrap_err(),
            "  line 5: printed \"x\", expected \"(signal 6)\""
        );
    }

    #[test]
    fn dots_stand_for_any_text_in_their_line() {
        for (line, expected) in [("a1b", "a…b"), ("ab", "a…b"), ("a1b2c", "a…b…c"), ("x", "…"), ("", "…")]
        {
            assert!(fits(line, expected), "{line:?} {expected:?}");
        }
        for (line, expected) in [("a1", "a…b"), ("b", "a…b"), ("a1c", "a…b…c"), ("ab", "a"), ("a", "ab")]
        {
            assert!(!fits(line, expected), "{line:?} {expected:?}");
        }
    }
}
