//! What the system says of this process.

use std::fs::read_to_string;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::Failed;

/// A directory of its own beside the program, on a disk: a temporary directory is often in memory.
pub(crate) fn scratch() -> Result<TempDir, Failed> {
    let program = std::env::current_exe()?;
    Ok(tempfile::tempdir_in(program.parent().unwrap_or(Path::new(".")))?)
}

/// Memory of this process that is in use, in bytes.
pub(crate) fn resident() -> Result<u64, Failed> {
    let status = read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: u64 = line.ok_or("no VmRSS")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

/// Processor time this process has used, in steps of 10 ms.
pub(crate) fn processor() -> Result<Duration, Failed> {
    let stat = read_to_string("/proc/self/stat")?;
    // The second field is the program's name, and may hold spaces.
    let after_name = stat.rsplit_once(") ").ok_or("no name in /proc/self/stat")?.1;
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_time() {
        assert!(resident().unwrap() > 100_000);
        assert!(processor().unwrap() < Duration::from_secs(3600));
    }
}
