//! The repository as text: every file tidy looks at.

use std::path::Path;

use super::source::Source;

/// Directories that hold what was made, not what was written.
const MADE: [&str; 2] = ["target", ".git"];

/// The repository's text files, by path.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<File>,
    /// Every path, also of directories and of what is no text.
    paths: Vec<String>,
}

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root, with `/` between.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text as Rust, where it is Rust.
    pub(crate) source: Option<Source>,
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let source = path.ends_with(".rs").then(|| Source::read(&text));
        Self { path: path.to_owned(), text, source }
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The path without its last part; empty at the root.
    pub(crate) fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

impl Tree {
    /// Reads everything below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.read_directory(root, "").map_err(|error| format!("cannot read the repository: {error}"))?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if MADE.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.read_directory(&entry.path(), &format!("{path}/"))?;
            } else if let Ok(text) = String::from_utf8(std::fs::read(entry.path())?) {
                self.files.push(File::new(&path, text));
            }
            self.paths.push(path);
        }
        Ok(())
    }

    /// A tree made by hand.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(File::new(path, (*text).to_owned()));
            tree.paths.push((*path).to_owned());
            let ends = path.match_indices('/').map(|(end, _)| path[..end].to_owned());
            tree.paths.extend(ends);
        }
        tree
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Files whose name ends so.
    pub(crate) fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(end))
    }

    /// Every Rust file, with its source.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether there is such a file or directory.
    pub(crate) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.iter().any(|known| known == path)
    }
}

/// `to`, seen from the directory `from`; nothing when it leaves the repository.
pub(crate) fn join(from: &str, to: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_within_the_repository_only() {
        assert_eq!(join("docs/errors", "../stores.md").as_deref(), Some("docs/stores.md"));
        assert_eq!(join("", "./docs/").as_deref(), Some("docs"));
        assert_eq!(join("docs", "../../elsewhere"), None);
    }

    #[test]
    fn this_repository_is_read_without_what_was_made() {
        let tree = Tree::read(&crate::proc::root()).unwrap();
        assert!(tree.file("xtask/src/tidy/tree.rs").unwrap().source.is_some());
        assert!(tree.has("crates/onlyonce/src"));
        assert!(!tree.files().any(|file| file.path.starts_with("target/")));
    }
}
