//! Ends a program at random moments and starts it again, until it is done.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_core::rng::{Domain, Seed};

/// The ways in which users, schedulers and machines end a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Kill,
    Interrupt,
    Terminate,
    TerminateTwice,
    HangUp,
    /// The reader of its output is gone; later it receives a request to stop.
    ClosedPipe,
    /// From that moment on no file takes another byte.
    FullDisk,
}

impl Way {
    fn start(self, mut command: Command) -> Child {
        if self == Self::FullDisk {
            // The system would end a program that writes beyond its limit; like this, the write fails.
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(command.get_program());
            shell.args(command.get_args()).stdout(Stdio::null()).stderr(Stdio::null());
            for (name, value) in command.get_envs() {
                if let Some(value) = value {
                    shell.env(name, value)
                } else {
                    shell.env_remove(name)
                };
            }
            command.get_current_dir().map(|folder| shell.current_dir(folder));
            return shell.spawn().unwrap();
        }
        if self == Self::ClosedPipe {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        command.spawn().unwrap()
    }

    /// Ends a process.
    fn end(self, child: &mut Child) {
        let id = child.id().to_string();
        let run = |program: &str, arguments: &[&str]| {
            // Fails where the process has ended meanwhile.
            let mut command = Command::new(program);
            command.args(arguments).arg(&id).stderr(Stdio::null()).status().unwrap();
        };
        match self {
            Self::Kill => run("kill", &["-s", "KILL"]),
            Self::Interrupt => run("kill", &["-s", "INT"]),
            Self::Terminate => run("kill", &["-s", "TERM"]),
            Self::TerminateTwice => {
                run("kill", &["-s", "TERM"]);
                run("kill", &["-s", "TERM"]);
            }
            Self::HangUp => run("kill", &["-s", "HUP"]),
            Self::ClosedPipe => {
                drop((child.stdout.take(), child.stderr.take()));
                sleep(Duration::from_millis(150));
                run("kill", &["-s", "TERM"]);
            }
            Self::FullDisk => run("prlimit", &["--fsize=0:0", "--pid"]),
        }
    }
}

/// Runs `command` once on `whole` to its end, unless that is there already, and again and again on `stopped`, each time
/// ended at a random moment in one of the `ways`, until it comes to its end; how many stops it took. After `most` stops it is
/// left alone. The same command begins a run and continues it. After a stop, `check` hears how the process ended, and how
/// long that took.
pub fn stop_until_done(
    command: &dyn Fn(&Path) -> Command,
    (whole, stopped): (&Path, &Path),
    round: u64,
    most: u32,
    ways: &dyn Fn(u32) -> Way,
    check: &mut dyn FnMut(Way, ExitStatus, Duration),
) -> u32 {
    // How long a run takes by itself, as busy as the machine is now: stops come anywhere in that time.
    let scratch = stopped.with_extension("timed");
    let timed = if whole.exists() { scratch.as_path() } else { whole };
    let began = Instant::now();
    assert!(command(timed).status().unwrap().success(), "without any stop");
    let takes = began.elapsed();
    let mut stops = 0;
    loop {
        let way = ways(stops);
        if stops == most {
            assert!(command(stopped).status().unwrap().success(), "round {round}, after {stops} stops");
            return stops;
        }
        let mut child = way.start(command(stopped));
        let mut moment = Seed(round).stream(Domain::Bootstrap, u64::from(stops), 0);
        let share = f64::from(moment.next_u32()) / f64::from(u32::MAX);
        sleep(Duration::from_secs_f64(takes.as_secs_f64() * share));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "round {round}, after {stops} stops: {status}");
            return stops;
        }
        let asked = Instant::now();
        way.end(&mut child);
        let status = child.wait().unwrap();
        stops += 1;
        check(way, status, asked.elapsed());
        if status.success() {
            return stops;
        }
    }
}
