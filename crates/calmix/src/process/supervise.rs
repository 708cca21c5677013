//! Starts the local processes of a run (`--processes N`), and ends them together.
//!
//! Each runs the same program with the environment variables of a launcher. This process receives the signals and forwards them.
//! If this process is killed, the standard input of the others closes, and they stop as on SIGTERM.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use calmix_io::process::launch::{LaunchInfo, Launcher, StoreHost};
use calmix_io::system::{self, EndSignal, Signal};

use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::shell_quoted;
use crate::process::stop::{POLL_INTERVAL, Stop};
use anyhow::{Context, Result};

/// The variable that makes a process stop when its standard input closes.
const SUPERVISED: &str = "CALMIX_SUPERVISED";
/// The time in which the other processes may notice a failed one by themselves before they get SIGTERM.
const FAILURE_NOTICE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which processes may exit after SIGTERM before they get SIGKILL.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_mins(1);

/// A process of the run.
struct Worker {
    child: Child,
    /// Collects the standard error of every rank except 0, which prints its own.
    stderr: Option<JoinHandle<String>>,
    ended: Option<(Instant, ExitStatus)>,
}

/// Runs `calmix ARGUMENTS` in `processes` local processes, and waits for them.
pub fn supervise(arguments: &[OsString], processes: usize, run: &Path, stop: &Stop) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find the calmix executable")?;
    let port = TcpListener::bind(("127.0.0.1", 0))
        .and_then(|free| free.local_addr())
        .context("cannot find a free port")?
        .port();
    let mut workers = Vec::with_capacity(processes);
    for rank in 0..processes {
        let launch = LaunchInfo {
            rank,
            world: processes,
            local_rank: rank,
            local_world: processes,
            master: ("127.0.0.1".to_owned(), port),
            job: String::new(),
            store_host: StoreHost::FirstRank,
            launcher: Launcher::Variables,
        };
        match Worker::start(&program, arguments, &launch) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                signal_all(&workers, Signal::Kill);
                return Err(error).context(format!("cannot start process {rank}"));
            }
        }
    }
    stop.leave_second_to_supervisor();
    wait(&mut workers, stop);
    if stop.is_insisted_on() {
        return Ok(Exit::Unsaved);
    }
    outcome(workers, run, processes)
}

impl Worker {
    fn start(program: &Path, arguments: &[OsString], launch: &LaunchInfo) -> io::Result<Self> {
        let mut command = Command::new(program);
        // A separate process group: Ctrl-C reaches only the supervisor, which forwards it once.
        command.args(arguments).envs(launch.variables()).env(SUPERVISED, "1").stdin(Stdio::piped());
        system::own_process_group(&mut command);
        if std::env::var_os("TORCH_CPP_LOG_LEVEL").is_none() {
            // Hide c10d's log: the error of the worker that lost a connection is clearer.
            command.env("TORCH_CPP_LOG_LEVEL", "FATAL");
        }
        if launch.rank > 0 {
            command.stdout(Stdio::null()).stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let stderr = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                // If reading fails, keep what was read before.
                let _ = stderr.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Self { child, stderr, ended: None })
    }

    fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            system::send_signal(self.child.id(), signal);
        }
    }
}

fn signal_all(workers: &[Worker], signal: Signal) {
    for worker in workers {
        worker.signal(signal);
    }
}

/// Waits until all processes have exited. Forwards signals; after a failure of one process, ends the others.
fn wait(workers: &mut [Worker], stop: &Stop) {
    let mut forwarded = false;
    let mut failed: Option<Instant> = None;
    let mut terminated = false;
    loop {
        for worker in workers.iter_mut().filter(|worker| worker.ended.is_none()) {
            if let Ok(Some(status)) = worker.child.try_wait() {
                worker.ended = Some((Instant::now(), status));
            }
        }
        if workers.iter().all(|worker| worker.ended.is_some()) {
            return;
        }
        if stop.flag().load(Ordering::Relaxed) && !forwarded {
            let signal = if stop.is_by_term() { Signal::Terminate } else { Signal::Interrupt };
            signal_all(workers, signal);
            forwarded = true;
        }
        if stop.is_insisted_on() {
            signal_all(workers, Signal::Kill);
        }
        let failure =
            |worker: &Worker| worker.ended.filter(|(_, status)| !status.success()).map(|(when, _)| when);
        failed = failed.or_else(|| workers.iter().filter_map(failure).min());
        if let Some(since) = failed {
            if since.elapsed() > FAILURE_NOTICE_TIMEOUT + SHUTDOWN_TIMEOUT {
                signal_all(workers, Signal::Kill);
            } else if since.elapsed() > FAILURE_NOTICE_TIMEOUT && !terminated {
                signal_all(workers, Signal::Terminate);
                terminated = true;
            }
        }
        thread::sleep(POLL_INTERVAL / 5);
    }
}

/// Returns the exit of the run, or an error that names the process that failed first.
fn outcome(workers: Vec<Worker>, run: &Path, processes: usize) -> Result<Exit> {
    let ends: Vec<(usize, Instant, ExitStatus)> = workers
        .iter()
        .enumerate()
        .filter_map(|(rank, worker)| worker.ended.map(|(when, status)| (rank, when, status)))
        .collect();
    let Some(&(rank, _, status)) =
        ends.iter().filter(|(_, _, status)| !status.success()).min_by_key(|end| end.1)
    else {
        return Ok(Exit::Done);
    };
    let common = [Exit::Requeue, Exit::Interrupted, Exit::Invalid];
    let common =
        common.into_iter().find(|exit| ends.iter().all(|end| end.2.code() == Some(exit.code().into())));
    if let Some(exit) = common {
        // Either a signal stopped all processes, or all found the same error, which rank 0 has printed.
        return Ok(exit);
    }
    let stderr = workers.into_iter().nth(rank).and_then(|worker| worker.stderr?.join().ok());
    let how = match (system::ended_by_signal(status), status.code()) {
        (Some(EndSignal::KilledOrOverTime(signal) | EndSignal::Other(signal)), _) => {
            format!("was killed by signal {signal}")
        }
        (None, code) => format!("exited with code {}", code.unwrap_or(-1)),
    };
    let stderr = stderr
        .filter(|stderr| !stderr.trim().is_empty())
        .map(|stderr| format!(":\n{}", stderr.trim()))
        .unwrap_or_default();
    let message = format!("process {rank} of {processes} {how}; earlier checkpoints are intact{stderr}");
    let hint = format!("calmix resume {} --processes {processes}", shell_quoted(run));
    Err(CliError::failed(message).hint(hint).into())
}

/// Returns the arguments of this process without `--processes`.
pub fn own_arguments() -> Vec<OsString> {
    without(std::env::args_os().skip(1))
}

fn without(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut remaining = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == "--processes" {
            arguments.next();
        } else if !argument.as_encoded_bytes().starts_with(b"--processes=") {
            remaining.push(argument);
        }
    }
    remaining
}

/// Returns whether a calmix with `--processes` started this process.
pub fn is_supervised() -> bool {
    std::env::var_os(SUPERVISED).as_deref() == Some(OsStr::new("1"))
}

/// Stops the run of a worker when the supervisor is gone.
pub fn stop_when_orphaned() {
    if !is_supervised() {
        return;
    }
    thread::spawn(|| {
        let mut nothing = Vec::new();
        let _ = io::stdin().read_to_end(&mut nothing);
        // The signal that the supervisor would have sent.
        system::send_signal(std::process::id(), Signal::Terminate);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_processes_is_not_passed_on() {
        let arguments = |text: &str| without(text.split(' ').map(OsString::from));
        assert_eq!(arguments("resume r --processes 4 -q"), ["resume", "r", "-q"]);
        assert_eq!(arguments("resume --processes=4 r"), ["resume", "r"]);
    }
}
