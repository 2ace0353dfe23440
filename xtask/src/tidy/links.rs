//! Links between the repository's pages lead somewhere, anchors included.

use std::collections::BTreeMap;

use super::tree::{File, Tree, join};
use super::{Finding, Rule};

pub(super) const RULE: Rule =
    Rule { name: "links", check, broken: &[("docs/a.md", "see [the states](states.md#parked)\n")] };

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.ending(".md") {
        for (line, target) in links(&file.text) {
            if let Err(message) = resolve(tree, file, &target) {
                found.push(Finding::new(&file.path, line, format!("`{target}`: {message}")));
            }
        }
    }
    found
}

fn resolve(tree: &Tree, from: &File, target: &str) -> Result<(), String> {
    if ["http://", "https://", "mailto:"].iter().any(|start| target.starts_with(start)) {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = match path {
        "" => from.path.clone(),
        path => join(from.directory(), path).ok_or("leads out of the repository; link to what is in it")?,
    };
    if !tree.has(&path) {
        return Err(format!("there is no {path}; mend the link, or write the page"));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let known = tree.file(&path).map(|page| anchors(&page.text)).unwrap_or_default();
    if known.iter().any(|known| known == anchor) {
        return Ok(());
    }
    Err(format!("{path} has no heading for #{anchor}; it has: {}", known.join(", ")))
}

/// Every link with its line; what stands in code is none.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        for start in ["](", "href=\"", "src=\""] {
            let rests = text.match_indices(start).map(|(at, _)| &text[at + start.len()..]);
            found.extend(rests.filter_map(target).map(|target| (line, target.to_owned())));
        }
        let definition = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((name, rest)) = definition
            && !name.starts_with('^')
        {
            found.extend(rest.split_whitespace().next().map(|target| (line, target.to_owned())));
        }
    }
    found
}

/// The target at the start of `rest`, without a title.
fn target(rest: &str) -> Option<&str> {
    let end = rest.find([')', '"', ' '])?;
    Some(rest[..end].trim_start_matches('<').trim_end_matches('>'))
}

/// Lines outside code blocks, numbered from one, without what stands between backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, None) => lines.push((number + 1, line.split('`').step_by(2).collect())),
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
    }
    lines
}

/// The anchors a page has, as GitHub makes them from its headings.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    let lines: Vec<usize> = prose(text).into_iter().map(|(line, _)| line).collect();
    for line in text.lines().enumerate().filter(|(at, _)| lines.contains(&(at + 1))).map(|(_, line)| line) {
        if let Some((marks, heading)) = line.split_once(' ')
            && (1..=6).contains(&marks.len())
            && marks.chars().all(|c| c == '#')
        {
            let slug = slug(heading);
            let times = seen.entry(slug.clone()).or_default();
            anchors.push(if *times == 0 { slug } else { format!("{slug}-{times}") });
            *times += 1;
        }
        let named = line.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        anchors.extend(named.map(|(name, _)| name.to_owned()));
    }
    anchors
}

fn slug(heading: &str) -> String {
    let mut text = heading.trim().to_owned();
    // Of a link, the words stay: `[a](b)` is `a`.
    while let Some((before, rest)) = text.split_once("](") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        text = format!("{before}{after}");
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let pages =
            [("docs/a.md", text), ("docs/errors/b.md", "# A `b_c`, twice\n## Same\n## Same\n"), ("x.rs", "")];
        check(&Tree::of(&pages)).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        for text in [
            "[x](gone.md)",
            "[x](../../out.md)",
            "\n[x]: gone.md\n",
            "<a href=\"gone.md\">",
            "![x](gone.png)",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
        assert_eq!(found("one\n\n[x](gone.md \"title\")")[0].0, 3);
    }

    #[test]
    fn a_link_that_leads_somewhere_is_not() {
        for text in [
            "[x](errors/b.md)",
            "[x](errors)",
            "[x](../x.rs)",
            "[x](https://example.com/gone)",
            "[x]: errors/b.md",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn anchors_are_those_github_makes() {
        for anchor in ["a-b_c-twice", "same", "same-1"] {
            assert_eq!(found(&format!("[x](errors/b.md#{anchor})")), [], "{anchor}");
        }
        assert!(found("[x](errors/b.md#same-2)")[0].1.contains("it has: a-b_c-twice, same, same-1"));
        assert_eq!(found("# Here\n[x](#here)"), []);
        assert_eq!(found("# Here\n[x](#there)").len(), 1);
        assert_eq!(slug("The [socket](b.md): `trait Store`"), "the-socket-trait-store");
    }

    #[test]
    fn code_has_no_links_and_no_headings() {
        assert_eq!(found("```\n[x](gone.md)\n```\n`[x](gone.md)`\n"), []);
        assert_eq!(found("```\n# Here\n```\n[x](#here)").len(), 1);
    }
}
