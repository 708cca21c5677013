//! How long a command takes, and how much memory.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// No command may take longer on a hostile folder.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);
/// After this time a command is ended.
pub(crate) const HANGS: Duration = Duration::from_mins(1);
/// Bytes of memory above what the same command takes on the honest folder.
pub(crate) const MOST: u64 = 100 << 20;
/// Bytes of memory of any command on a tiny folder, honest or not.
pub(crate) const MOST_EVER: u64 = 1 << 30;
/// Time between two looks at the memory of a process.
pub(crate) const INTERVAL: Duration = Duration::from_millis(2);

/// How a command ended.
pub(crate) struct Ended {
    /// The exit code; `None` for a call of the library, and for a process that a signal ended.
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) took: Duration,
    pub(crate) peak: u64,
}

impl Ended {
    /// Fails if the command took too long or too much memory, or prints commands for a terminal.
    #[track_caller]
    pub(crate) fn is_modest(&self, honest: &Self, what: &str) {
        let Self { text, took, peak, .. } = self;
        // On a busy machine an honest command takes long, too.
        assert!(*took < LONGEST + 3 * honest.took, "{what}: took {took:?}\n{text}");
        let more = peak.saturating_sub(honest.peak);
        assert!(more < MOST, "{what}: {} MB more\n{text}", more >> 20);
        assert!(*peak < MOST_EVER, "{what}: {} MB\n{text}", peak >> 20);
        let control = text.chars().find(|&c| c.is_control() && c != '\n');
        assert_eq!(control, None, "{what}: {text:?}");
    }
}

/// The longest time and the most memory of several commands.
#[derive(Debug, Default)]
pub(crate) struct Worst {
    commands: u32,
    took: Duration,
    peak: u64,
}

impl Worst {
    pub(crate) fn count(&mut self, ended: &Ended) {
        self.commands += 1;
        self.took = self.took.max(ended.took);
        self.peak = self.peak.max(ended.peak);
    }
}

impl Display for Worst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { commands, took, peak } = self;
        write!(f, "{commands} commands, the longest {:.1} s, at most {} MB", took.as_secs_f64(), peak >> 20)
    }
}

/// Bytes of a process in memory. The pages of libraries do not count: how many of them are in memory is the system's choice.
pub(crate) fn memory(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// Runs a command with its peak of memory, and ends it if it hangs.
pub(crate) fn measured(command: Command) -> Ended {
    watched(command, HANGS, u64::MAX)
}

/// Runs a command with its peak of memory, and ends it if it takes longer or more memory.
pub(crate) fn watched(mut command: Command, longest: Duration, most: u64) -> Ended {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(memory(child.id()));
        if begun.elapsed() > longest || peak > most {
            child.kill().unwrap();
        }
        thread::sleep(INTERVAL);
    }
    let took = begun.elapsed();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    Ended { code: output.status.code(), text, took, peak }
}
