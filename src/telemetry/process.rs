//! Metrics of the process, with the names that the client libraries of Prometheus use.
//!
//! They are read when they are requested. What the system does not tell is left out: outside of Linux that is all but
//! the time of the CPU.

use std::fs;
use std::sync::OnceLock;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::Metric;

/// Reads the metrics of this process.
pub fn process_metrics() -> Vec<Metric> {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let mut metrics = vec![Metric::seconds(
        "process_cpu_seconds",
        "CPU time of the process, of the user and the system",
        cpu,
    )];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let gauges = [
        (
            "process_resident_memory_bytes",
            "Memory of the process that is resident",
            status_bytes(&status, "VmRSS"),
        ),
        (
            "process_virtual_memory_bytes",
            "Size of the address space of the process",
            status_bytes(&status, "VmSize"),
        ),
        (
            "process_threads",
            "Threads of the process",
            status_number(&status, "Threads"),
        ),
        ("process_open_fds", "Open file descriptors", open_files()),
        (
            "process_max_fds",
            "Maximum number of open file descriptors",
            getrlimit(Resource::Nofile)
                .current
                .map(|limit| limit as f64),
        ),
        (
            "process_start_time_seconds",
            "Unix time at which the process started",
            start_time(),
        ),
    ];
    let known = gauges.into_iter();
    metrics.extend(known.filter_map(|(name, help, value)| Some(Metric::gauge(name, help, value?))));
    metrics
}

/// Returns the number of a line `NAME: NUMBER ..` of `/proc/self/status`.
fn status_number(status: &str, name: &str) -> Option<f64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns the size of a line `NAME: NUMBER kB`.
fn status_bytes(status: &str, name: &str) -> Option<f64> {
    status_number(status, name).map(|kib| kib * 1024.0)
}

/// Counts the open files. Their folder has their number as its size since Linux 6.2; reading it with ten thousand
/// connections occupies a thread for some 5 ms.
fn open_files() -> Option<f64> {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).ok()?.len() {
        // Without the folder that is read.
        0 => Some(fs::read_dir(FOLDER).ok()?.count().saturating_sub(1) as f64),
        open => Some(open as f64),
    }
}

/// The time at which the process started. It does not change, so it is read once.
fn start_time() -> Option<f64> {
    static START: OnceLock<Option<f64>> = OnceLock::new();
    *START.get_or_init(|| {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot: f64 = system
            .lines()
            .find_map(|line| line.strip_prefix("btime "))?
            .trim()
            .parse()
            .ok()?;
        Some(boot + ticks_since_boot(&stat)? / clock_ticks_per_second() as f64)
    })
}

/// Returns field 22 of `/proc/self/stat`, in clock ticks. Field 2 is the name of the program in parentheses, which can
/// contain spaces and parentheses itself.
fn ticks_since_boot(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;
    use crate::telemetry::MetricValues;

    fn value(name: &str) -> f64 {
        let metrics = process_metrics();
        let metric = metrics.iter().find(|metric| metric.name == name);
        match &metric.expect(name).values {
            MetricValues::Gauge(values) | MetricValues::Seconds(values) => values[0].1,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_is_measured() {
        assert!(value("process_cpu_seconds") > 0.0);
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(
            value("process_threads") >= 2.0,
            "this test runs on a thread"
        );
        assert!(value("process_max_fds") >= value("process_open_fds"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - value("process_start_time_seconds");
        assert!((-2.0..3600.0).contains(&age), "{age}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn open_files_are_counted() {
        // Other tests open and close files at the same time.
        let files: Vec<_> = (0..200)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        let many = value("process_open_fds");
        assert!(many >= files.len() as f64, "{many}");
    }

    #[test]
    fn the_name_of_a_program_may_look_like_fields() {
        let stat = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(ticks_since_boot(stat), Some(4242.0));
        assert_eq!(ticks_since_boot("7 (a) S"), None);
        assert_eq!(
            status_bytes("VmRSSX: 1 kB\nVmRSS:\t  12 kB\n", "VmRSS"),
            Some(12_288.0)
        );
    }
}
