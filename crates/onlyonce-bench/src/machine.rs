//! What was measured on, without names.

use std::fs::read_to_string;

use crate::Failed;
use crate::runtime::cores;

/// The machine as a few lines of Markdown.
pub(crate) fn facts() -> Result<String, Failed> {
    let cpu = field(&read_to_string("/proc/cpuinfo")?, "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory = field(&read_to_string("/proc/meminfo")?, "MemTotal").unwrap_or_default();
    let kibibytes: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
    Ok(format!(
        "- processor: {cpu}, {} threads\n- memory: {} GiB\n- file system of the databases: {}\n- built for: {} {}\n",
        cores(),
        kibibytes.div_ceil(1024 * 1024),
        file_system(&std::env::current_exe()?.to_string_lossy()),
        std::env::consts::OS,
        std::env::consts::ARCH,
    ))
}

/// The value after `name … :` in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The kind of file system a path is on.
fn file_system(path: &str) -> String {
    let mounts = read_to_string("/proc/mounts").unwrap_or_default();
    let holds = |at: &str| at == "/" || path == at || path.starts_with(&format!("{at}/"));
    let found = mounts.lines().filter_map(|line| {
        let mut parts = line.split(' ');
        let (at, kind) = (parts.nth(1)?, parts.next()?);
        holds(at).then_some((at.len(), kind))
    });
    found.max_by_key(|(length, _)| *length).map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "MemFree: 1 kB\nMemTotal:       24684212 kB\n";
        assert_eq!(field(text, "MemTotal").as_deref(), Some("24684212 kB"));
        assert_eq!(field(text, "Mem"), None);
    }
}
