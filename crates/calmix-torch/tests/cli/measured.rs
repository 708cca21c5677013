//! How long a command takes, and how much memory; the kernel refuses it more than a limit.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// No command may take longer on a hostile folder.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(10);
/// After this time a command is ended.
pub(crate) const HANGS: Duration = Duration::from_mins(1);
/// Bytes of memory above what the same command takes on the honest folder.
pub(crate) const MAX_EXTRA_BYTES: u64 = 100 << 20;
/// Bytes of memory of any command on a tiny folder, honest or not.
pub(crate) const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// Time between two looks at the memory of a process.
pub(crate) const INTERVAL: Duration = Duration::from_millis(2);

/// How a command ended.
pub(crate) struct Ended {
    /// The exit code; `None` for a call of the library, and for a process that a signal ended.
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) took: Duration,
    pub(crate) peak: u64,
    /// As `peak`, with the pages of libraries.
    pub(crate) resident: u64,
}

impl Ended {
    /// Fails if the command took too long or too much memory, or prints commands for a terminal.
    #[track_caller]
    pub(crate) fn is_modest(&self, honest: &Self, what: &str) {
        let Self { text, took, peak, resident, .. } = self;
        // On a busy machine an honest command takes long, too.
        assert!(*took < MAX_TIME + 3 * honest.took, "{what}: took {took:?}\n{text}");
        let more = peak.saturating_sub(honest.peak);
        assert!(more < MAX_EXTRA_BYTES, "{what}: {} MB more\n{text}", more >> 20);
        assert!(*resident < MAX_MEMORY_BYTES, "{what}: {} MB\n{text}", resident >> 20);
        let control = text.chars().find(|&c| c.is_control() && c != '\n');
        assert_eq!(control, None, "{what}: {text:?}");
    }
}

/// The longest time and the most memory of several commands.
#[derive(Debug, Default)]
pub(crate) struct Worst {
    commands: u32,
    took: Duration,
    resident: u64,
}

impl Worst {
    pub(crate) fn count(&mut self, ended: &Ended) {
        self.commands += 1;
        self.took = self.took.max(ended.took);
        self.resident = self.resident.max(ended.resident);
    }
}

impl Display for Worst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { commands, took, resident } = self;
        let seconds = took.as_secs_f64();
        write!(f, "{commands} commands, the longest {seconds:.1} s, at most {} MB resident", resident >> 20)
    }
}

/// Memory of a process, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Memory {
    /// Without the pages of libraries: how many of them are in memory is the system's choice.
    pub(crate) own: u64,
    /// The largest that it ever was, with them.
    pub(crate) resident: u64,
}

impl Memory {
    /// The memory of a process; zero if it has ended.
    pub(crate) fn of(process: u32) -> Self {
        let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kilobytes.unwrap_or(0) << 10
        };
        Self { own: bytes("RssAnon:"), resident: bytes("VmHWM:") }
    }

    /// The larger of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { own: self.own.max(other.own), resident: self.resident.max(other.resident) }
    }
}

/// Has the kernel refuse a process more memory of its own than this, so that not even a peak between two looks is larger. An
/// allocation beyond it ends the process by a signal. `RLIMIT_AS` would count the libraries of libtorch too.
pub(crate) fn limit(child: &Child, bytes: u64) {
    let process = Pid::from_child(child);
    let most = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    prlimit(Some(process), Resource::Data, most).unwrap();
}

/// Runs a command under the limit, with its peak of memory, and ends it if it hangs.
pub(crate) fn measured(command: Command) -> Ended {
    let ended = watched(command, HANGS, MAX_MEMORY_BYTES);
    assert!(ended.code.is_some(), "ended by a signal after {:?}\n{}", ended.took, ended.text);
    ended
}

/// Runs a command with its peak of memory, and ends it if it takes longer or more memory.
pub(crate) fn watched(mut command: Command, longest: Duration, most: u64) -> Ended {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    limit(&child, most);
    let mut peak = Memory::default();
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(Memory::of(child.id()));
        if begun.elapsed() > longest {
            child.kill().unwrap();
        }
        thread::sleep(INTERVAL);
    }
    let took = begun.elapsed();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    Ended { code: output.status.code(), text, took, peak: peak.own, resident: peak.resident }
}

/// Loading libtorch alone takes more than this.
#[test]
fn limit_of_memory_is_enforced() {
    let version = |most| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calmix-torch"));
        command.arg("--version");
        watched(command, HANGS, most)
    };
    assert_eq!(version(MAX_MEMORY_BYTES).code, Some(0));
    assert_ne!(version(4 << 20).code, Some(0));
}
