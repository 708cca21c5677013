//! CPU cores, and a warning if there are more threads than free cores.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use crate::format::counted;
use crate::terminal::warn;

/// How long the other programs are watched: short for a person, and ten ticks of the system's clock.
const WATCHED: Duration = Duration::from_millis(200);
/// Ticks of the CPU times in `/proc`, in a second.
const TICKS: f64 = 100.0;

/// The threads of a command on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadUse {
    /// Threads of each process.
    pub(crate) threads: u32,
    /// Processes of the run on this machine.
    pub(crate) processes: usize,
    /// Whether a launcher started the other processes, which then run already.
    pub(crate) is_launched: bool,
}

/// The number of cores that this process may use.
pub(crate) fn available() -> u64 {
    available_parallelism().map_or(1, NonZeroUsize::get) as u64
}

/// Warns if there are more threads than cores, or than other programs leave free: libtorch's threads spin while they wait
/// for each other.
pub(crate) fn warn_if_oversubscribed(planned: ThreadUse) {
    let (threads, processes) = (u64::from(planned.threads), planned.processes.max(1) as u64);
    let message = more_than_cores(threads, processes, available()).or_else(|| {
        // With one thread there is nothing to advise.
        let others = (threads > 1).then(|| Others::watch(planned.is_launched))??;
        more_than_free(threads, processes, available(), others)
    });
    if let Some(message) = message {
        warn(&message);
    }
}

fn more_than_cores(threads: u64, processes: u64, cores: u64) -> Option<String> {
    if threads * processes <= cores {
        return None;
    }
    let on = format!("{} on {}", counted(threads, "thread"), counted(cores, "core"));
    Some(match processes {
        1 => format!("{on}: much slower than --threads {cores}"),
        _ if processes > cores => {
            format!(
                "{processes} processes of {on}: much slower than {} of 1 thread",
                counted(cores, "process")
            )
        }
        _ => format!("{processes} processes of {on}: much slower than --threads {}", cores / processes),
    })
}

fn more_than_free(threads: u64, processes: u64, cores: u64, others: Others) -> Option<String> {
    let Others { busy, calmix } = others;
    let free = cores as f64 - busy.min(cores as f64);
    let each = ((free / processes as f64).round() as u64).max(1);
    if (threads * processes) as f64 <= free + 0.5 || each >= threads {
        return None;
    }
    let who = match calmix {
        0 => "other programs use".to_owned(),
        _ => format!("other programs, {} among them, use", counted(calmix, "calmix process")),
    };
    let cores = counted(cores, "core");
    Some(format!("{who} {busy:.1} of {cores}: --threads {each} may be faster than {threads}"))
}

/// What the other programs of this machine do.
#[derive(Debug, Clone, Copy)]
struct Others {
    /// Cores that they use.
    busy: f64,
    /// How many of them are processes of calmix, of other runs.
    calmix: u64,
}

impl Others {
    /// Watches them for a moment; none where the system does not tell. The load average would tell of programs that ended
    /// a minute ago, and of the processes of this run.
    fn watch(is_launched: bool) -> Option<Self> {
        let (began, before) = (Instant::now(), processes(is_launched)?);
        thread::sleep(WATCHED);
        let after = processes(is_launched)?;
        let ticks = after.iter().map(|(pid, now)| {
            let used = before.get(pid).map_or(0, |then| now.ticks.saturating_sub(then.ticks));
            (used, u64::from(used > 0 && now.is_calmix))
        });
        let (used, calmix) = ticks.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Some(Self { busy: used as f64 / TICKS / began.elapsed().as_secs_f64(), calmix })
    }
}

/// A process of another program.
struct OtherProcess {
    ticks: u64,
    is_calmix: bool,
}

/// The processes that are not of this run.
fn processes(is_launched: bool) -> Option<BTreeMap<u32, OtherProcess>> {
    let parent = is_launched.then(std::os::unix::process::parent_id);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((its_parent, process)) = read_stat(&stat) else { continue };
        let is_ours = pid == std::process::id() || (process.is_calmix && Some(its_parent) == parent);
        if !is_ours {
            found.insert(pid, process);
        }
    }
    Some(found)
}

/// The parent of a process, and what it is, from a line of `/proc/PID/stat`.
fn read_stat(stat: &str) -> Option<(u32, OtherProcess)> {
    // The name stands in brackets, and may contain brackets.
    let (before, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let mut times = fields.skip(9).map_while(|field| field.parse::<u64>().ok());
    let ticks = times.next()? + times.next()?;
    Some((parent, OtherProcess { ticks, is_calmix: before.split_once('(')?.1 == "calmix" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_cores() {
        let said = |threads, processes, cores| more_than_cores(threads, processes, cores).unwrap_or_default();
        assert_eq!(said(3, 1, 2), "3 threads on 2 cores: much slower than --threads 2");
        assert_eq!(said(2, 2, 2), "2 processes of 2 threads on 2 cores: much slower than --threads 1");
        assert_eq!(
            said(1, 3, 2),
            "3 processes of 1 thread on 2 cores: much slower than 2 processes of 1 thread"
        );
        assert_eq!([said(2, 1, 2), said(1, 2, 2), said(2, 4, 8)], [""; 3]);
    }

    #[test]
    fn more_threads_than_others_leave_free() {
        let said = |threads, processes, cores, busy, calmix| {
            more_than_free(threads, processes, cores, Others { busy, calmix }).unwrap_or_default()
        };
        assert_eq!(
            said(4, 1, 4, 2.1, 0),
            "other programs use 2.1 of 4 cores: --threads 2 may be faster than 4"
        );
        assert_eq!(
            said(4, 2, 8, 4.0, 1),
            "other programs, 1 calmix process among them, use 4.0 of 8 cores: --threads 2 may be faster than 4"
        );
        assert_eq!([said(2, 1, 2, 0.3, 0), said(1, 1, 2, 9.0, 0), said(2, 1, 4, 2.4, 0)], [""; 3]);
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let line = "7 (a) b (c) S 5 7 7 0 -1 4194304 1 2 3 4 30 12 9 9 20 0 1 0 99\n";
        let (parent, process) = read_stat(line).unwrap();
        assert_eq!((parent, process.ticks, process.is_calmix), (5, 42, false));
        assert!(read_stat("7 (calmix) S 5 7 7 0 -1 4194304 1 2 3 4 30 12 9").unwrap().1.is_calmix);
        assert!(read_stat("").is_none());
    }
}
