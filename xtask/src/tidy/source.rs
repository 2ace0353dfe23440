//! Rust text taken apart into code, comments and literals, without a parser.
//!
//! Rules that look for words must not find them in strings, and brackets in comments must not count. A full
//! parser would know more, and would cost this command its fast build.

/// A Rust file's code and comments, each as long as the file, with blanks where the other stands.
#[derive(Debug)]
pub(crate) struct Source {
    /// Without comments and without what is inside string and character literals.
    pub(crate) code: String,
    /// Comments and doc comments alone.
    pub(crate) comments: String,
}

/// A function and how long it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    /// Where its `fn` stands in the text.
    pub(crate) offset: usize,
    pub(crate) lines: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Comment,
    Literal,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let classes = classify(text.as_bytes());
        let only = |class| mask(text, &classes, class);
        Self { code: only(Class::Code), comments: only(Class::Comment) }
    }

    /// Where each of these words stands in the code, as a word of its own.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        words_in(&self.code, word)
    }

    /// Every function that has a body.
    pub(crate) fn functions(&self) -> Vec<Function<'_>> {
        self.words("fn").filter_map(|offset| self.function_at(offset)).collect()
    }

    fn function_at(&self, offset: usize) -> Option<Function<'_>> {
        let name = identifier(self.code[offset + 2..].trim_start());
        let open = body_start(&self.code, offset)?;
        let end = closing_brace(&self.code, open)?;
        let lines = self.code[offset..end].matches('\n').count() + 1;
        (!name.is_empty()).then_some(Function { name, offset, lines })
    }
}

/// The line of an offset, counted from one.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The identifier `text` starts with; empty when it starts with something else.
pub(crate) fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    &text[..end]
}

/// Where `word` stands in `text` with no letter, digit or `_` next to it.
pub(crate) fn words_in<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back().is_some_and(is_word);
        let after = text[at + word.len()..].chars().next().is_some_and(is_word);
        let (starts, ends) = (word.starts_with(is_word), word.ends_with(is_word));
        !(before && starts || after && ends)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The brace that opens the body of the function at `from`; nothing for one that ends with `;`.
fn body_start(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in code[from..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(from + at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The end of the block that opens at `open`.
pub(crate) fn closing_brace(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return Some(open + at + 1);
        }
    }
    None
}

fn mask(text: &str, classes: &[Class], keep: Class) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if c == '\n' || classes[at] == keep {
            out.push(c);
        } else {
            // One blank per byte, so that offsets stay the same.
            out.extend(std::iter::repeat_n(' ', c.len_utf8()));
        }
    }
    out
}

fn classify(bytes: &[u8]) -> Vec<Class> {
    let mut classes = Vec::with_capacity(bytes.len());
    while classes.len() < bytes.len() {
        let at = classes.len();
        let (class, len) = token(bytes, at);
        classes.resize(usize::min(at + len, bytes.len()), class);
    }
    classes
}

/// What starts at `at`, and how many bytes it has.
fn token(bytes: &[u8], at: usize) -> (Class, usize) {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => (Class::Comment, rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => (Class::Comment, block_comment(rest)),
        [b'"', ..] => (Class::Literal, quoted(rest, b'"')),
        [b'r', b'"' | b'#', ..] if !in_word => raw_string(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !in_word => raw_string(rest, 2),
        [b'\'', ..] => character(rest),
        _ => (Class::Code, 1),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Up to and with the closing quote; a backslash hides what follows it.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`; `r#name` is an identifier.
fn raw_string(rest: &[u8], prefix: usize) -> (Class, usize) {
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return (Class::Code, 1);
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = rest[open + 1..].windows(end.len()).position(|window| window == end);
    (Class::Literal, body.map_or(rest.len(), |body| open + 1 + body + end.len()))
}

/// `'x'` and `'\n'` are literals, `'a` is a lifetime.
fn character(rest: &[u8]) -> (Class, usize) {
    match rest {
        [_, b'\\', ..] => (Class::Literal, quoted(rest, b'\'')),
        [_, first, ..] => {
            let len = match first {
                0..0x80 => 1,
                0x80..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0.. => 4,
            };
            if rest.get(1 + len) == Some(&b'\'') { (Class::Literal, len + 2) } else { (Class::Code, 1) }
        }
        _ => (Class::Code, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = Source::read(text);
        assert_eq!((source.code.len(), source.comments.len()), (text.len(), text.len()));
        source.code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn literals_and_comments_are_no_code() {
        assert_eq!(code(r#"a("x // y \" {", 'é', '"', '\'', b"{")"#), "a( , , , , b )");
        assert_eq!(code("a /* b /* c */ d */ e // f\ng"), "a e g");
        assert_eq!(code("x(r#\"a \" b\"#, br\"c\") + r#type"), "x( , ) + r#type");
        assert_eq!(
            code("fn f<'a>(x: &'a str, c: char) { c == 'a' }"),
            "fn f<'a>(x: &'a str, c: char) { c == }"
        );
    }

    #[test]
    fn comments_are_kept_apart() {
        let source = Source::read("let x = \"// no\"; // yes\n/// doc\n");
        assert_eq!(source.comments.split_whitespace().collect::<Vec<_>>(), ["//", "yes", "///", "doc"]);
    }

    #[test]
    fn what_never_closes_ends_with_the_file() {
        for text in ["\"abc", "/* abc", "r#\"abc\"", "'\\", "'", "fn f() {", "fn", "\"\\"] {
            assert!(Source::read(text).functions().is_empty(), "{text}");
        }
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let text = "trait T { fn declared(&self) -> [u8; 2]; }\nfn long(\n  x: u8,\n) {\n  \"}\";\n}\nfn short() {}\n";
        let source = Source::read(text);
        let found: Vec<_> =
            source.functions().iter().map(|f| (f.name, f.lines, line_at(text, f.offset))).collect();
        assert_eq!(found, [("long", 5, 2), ("short", 1, 7)]);
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert_eq!(words_in("Store MemoryStore Stored dyn Store", "Store").count(), 2);
        assert_eq!(words_in("x.await y.awaited", ".await").count(), 1);
    }
}
