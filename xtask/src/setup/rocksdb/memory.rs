//! How much memory a build may take here.

use std::fs;

/// Memory that is free or can be freed, and no more than the container has; `None` where the system does not say.
pub(super) fn available_bytes() -> Option<u64> {
    let read = |path| fs::read_to_string(path).ok();
    let of_system = read("/proc/meminfo").as_deref().and_then(available_in);
    let of_container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .map(|path| read(path)?.trim().parse().ok());
    of_container.into_iter().chain([of_system]).flatten().min()
}

/// `MemAvailable` in the text of `/proc/meminfo`.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::available_in;

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal:       24663012 kB\nMemFree:        21999999 kB\nMemAvailable:      1024 kB\n";
        assert_eq!(available_in(text), Some(1_048_576));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
        assert_eq!(available_in("MemAvailable: 99999999999999999999 kB\n"), None);
    }
}
