//! Several processes of one run on this machine: started together, and ended together.
//!
//! They are the same program with the variables that every launcher sets. Signals go to this one, which passes them on;
//! if it is killed itself, the others notice by their standard input, which ends, and stop as if they had been told to.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use calmix::train::launch::{Keeper, Launcher, Place};
use rustix::process::{Pid, Signal, kill_process};

use crate::exit::Exit;
use crate::failure::Mistake;
use crate::number::typed;
use crate::stop::{SOON, Stop};

/// Says to a process that its standard input ends when it should.
const SUPERVISED: &str = "CALMIX_SUPERVISED";
/// How long processes may take to notice that one of them is gone, before they are told.
const NOTICE: Duration = Duration::from_secs(5);
/// How long they may take to end once they were told, before they are killed.
const END: Duration = Duration::from_mins(1);

/// A process of the run.
struct Member {
    child: Child,
    /// What it has said, where that is not shown at once.
    said: Option<JoinHandle<String>>,
    ended: Option<(Instant, ExitStatus)>,
}

/// Runs `calmix ARGUMENTS` in so many processes, and says how it ended.
pub(crate) fn supervise(arguments: &[OsString], processes: usize, run: &Path, stop: &Stop) -> Result<Exit> {
    let program = std::env::current_exe().context("which program this is")?;
    let port =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).context("a free port")?.port();
    let mut members = Vec::with_capacity(processes);
    for rank in 0..processes {
        let place = Place {
            rank,
            world: processes,
            local_rank: rank,
            local_world: processes,
            master: ("127.0.0.1".to_owned(), port),
            attempt: 0,
            job: String::new(),
            keeper: Keeper::FirstRank,
            launcher: Launcher::Variables,
        };
        match Member::start(&program, arguments, &place) {
            Ok(member) => members.push(member),
            Err(error) => {
                signal_all(&members, Signal::KILL);
                return Err(error).context(format!("process {rank} could not be started"));
            }
        }
    }
    wait(&mut members, stop);
    verdict(members, run, processes)
}

impl Member {
    fn start(program: &Path, arguments: &[OsString], place: &Place) -> io::Result<Self> {
        let mut command = Command::new(program);
        // In a group of its own: Ctrl-C reaches this process alone, which passes it on once.
        command
            .args(arguments)
            .envs(place.variables())
            .env(SUPERVISED, "1")
            .process_group(0)
            .stdin(Stdio::piped());
        if std::env::var_os("TORCH_CPP_LOG_LEVEL").is_none() {
            // What c10d has to say about a lost connection is said better by whoever lost it.
            command.env("TORCH_CPP_LOG_LEVEL", "FATAL");
        }
        if place.rank > 0 {
            command.stdout(Stdio::null()).stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let said = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut said = Vec::new();
                // What cannot be read is not shown.
                let _ = stderr.read_to_end(&mut said);
                String::from_utf8_lossy(&said).into_owned()
            })
        });
        Ok(Self { child, said, ended: None })
    }

    fn signal(&self, signal: Signal) {
        if self.ended.is_none()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            // It may have ended in between.
            let _ = kill_process(pid, signal);
        }
    }
}

fn signal_all(members: &[Member], signal: Signal) {
    for member in members {
        member.signal(signal);
    }
}

/// Waits until all have ended. Signals are passed on; once one of them has failed, the others are ended too.
fn wait(members: &mut [Member], stop: &Stop) {
    let mut passed_on = false;
    let mut failed: Option<Instant> = None;
    let mut told = false;
    loop {
        for member in members.iter_mut().filter(|member| member.ended.is_none()) {
            if let Ok(Some(status)) = member.child.try_wait() {
                member.ended = Some((Instant::now(), status));
            }
        }
        let ended = |member: &Member| member.ended.is_some();
        if members.iter().all(ended) {
            return;
        }
        if stop.flag().load(Ordering::Relaxed) && !passed_on {
            let signal = if stop.is_by_term() { Signal::TERM } else { Signal::INT };
            signal_all(members, signal);
            passed_on = true;
        }
        let bad =
            |member: &Member| member.ended.filter(|(_, status)| !status.success()).map(|(when, _)| when);
        failed = failed.or_else(|| members.iter().filter_map(bad).min());
        if let Some(since) = failed {
            if since.elapsed() > NOTICE + END {
                signal_all(members, Signal::KILL);
            } else if since.elapsed() > NOTICE && !told {
                signal_all(members, Signal::TERM);
                told = true;
            }
        }
        thread::sleep(SOON / 5);
    }
}

/// How it ended, and if it ended badly, because of whom.
fn verdict(members: Vec<Member>, run: &Path, processes: usize) -> Result<Exit> {
    let ends: Vec<(usize, Instant, ExitStatus)> = members
        .iter()
        .enumerate()
        .filter_map(|(rank, member)| member.ended.map(|(when, status)| (rank, when, status)))
        .collect();
    let Some(&(rank, _, status)) =
        ends.iter().filter(|(_, _, status)| !status.success()).min_by_key(|end| end.1)
    else {
        return Ok(Exit::Done);
    };
    let all = [Exit::Requeue, Exit::Interrupted, Exit::Mistake];
    let alike = all.into_iter().find(|exit| ends.iter().all(|end| end.2.code() == Some(exit.code().into())));
    if let Some(exit) = alike {
        // All were told to stop, or all found the same mistake, which the first one has shown.
        return Ok(exit);
    }
    let said = members.into_iter().nth(rank).and_then(|member| member.said).and_then(|said| said.join().ok());
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, code) => format!("ended with code {}", code.unwrap_or(-1)),
    };
    let said = said
        .filter(|said| !said.trim().is_empty())
        .map(|said| format!(":\n{}", said.trim()))
        .unwrap_or_default();
    let what = format!("process {rank} of {processes} {how}; what was kept before is intact{said}");
    let next = format!("calmix resume {} --processes {processes}", typed(run));
    Err(Mistake::new(what).or_try(next).failed().into())
}

/// The arguments of this process without `--processes`.
pub(crate) fn own_arguments() -> Vec<OsString> {
    without(std::env::args_os().skip(1))
}

fn without(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == "--processes" {
            arguments.next();
        } else if !argument.as_encoded_bytes().starts_with(b"--processes=") {
            kept.push(argument);
        }
    }
    kept
}

/// In a process that is supervised: stops the run when nobody supervises it any more.
pub(crate) fn stop_when_orphaned() {
    if std::env::var_os(SUPERVISED).as_deref() != Some(OsStr::new("1")) {
        return;
    }
    thread::spawn(|| {
        let mut nothing = Vec::new();
        let _ = io::stdin().read_to_end(&mut nothing);
        // What a signal of the supervisor would have done.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
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
