//! Starts ranks, listens to them, and ends those that are left.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a crew does, and how.
pub(crate) struct Crew {
    pub(crate) size: usize,
    pub(crate) timeout: Duration,
    port: u16,
}

/// A process of a crew; ends with us.
pub(crate) struct Member {
    pub(crate) rank: usize,
    child: Child,
    lines: Receiver<String>,
}

/// A failure as a rank prints it.
#[derive(Debug)]
pub(crate) struct Noticed {
    /// Seconds since 1970.
    pub(crate) at: f64,
    /// Seconds that the operation took.
    pub(crate) took: f64,
    pub(crate) missing: String,
    pub(crate) sentence: String,
}

impl Crew {
    pub(crate) fn new(size: usize, timeout: Duration) -> Self {
        Self { size, timeout, port: free_port() }
    }

    /// The command of one rank.
    pub(crate) fn command(&self, task: &str, rank: usize) -> Command {
        let mut command = Command::new(program());
        command.args(ENTRY);
        command.env("CALMIX_TASK", task).env("CALMIX_TIMEOUT_MS", self.timeout.as_millis().to_string());
        command.env("MASTER_ADDR", "localhost").env("MASTER_PORT", self.port.to_string());
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", self.size.to_string());
        command
    }

    pub(crate) fn start(&self, task: &str, rank: usize) -> Member {
        Member::start(rank, self.command(task, rank))
    }

    pub(crate) fn start_all(&self, task: &str) -> Vec<Member> {
        (0..self.size).map(|rank| self.start(task, rank)).collect()
    }

    /// The last line of every rank.
    pub(crate) fn results(&self, task: &str) -> Vec<String> {
        self.start_all(task).into_iter().map(Member::result).collect()
    }
}

/// The arguments that make the test binary a rank.
pub(crate) const ENTRY: [&str; 4] = ["--exact", "processes::rank::entry", "--ignored", "--nocapture"];

pub(crate) fn program() -> PathBuf {
    std::env::current_exe().unwrap()
}

impl Member {
    pub(crate) fn start(rank: usize, mut command: Command) -> Self {
        // The machine may be small.
        command.env("OMP_NUM_THREADS", "1");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            // libtest writes `test rank::entry ... ` before the first line of ours.
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, ours)) = line.split_once("@ ") {
                    let _ = sender.send(ours.to_owned());
                }
            }
        });
        Self { rank, child, lines }
    }

    /// The next line that the rank writes.
    pub(crate) fn line(&mut self) -> String {
        let patience = Duration::from_mins(1);
        let line = self.lines.recv_timeout(patience);
        line.unwrap_or_else(|_| panic!("rank {} says nothing: {:?}", self.rank, self.child.try_wait()))
    }

    /// The last line, and a good end.
    pub(crate) fn result(mut self) -> String {
        let line = self.line();
        assert!(self.child.wait().unwrap().success(), "rank {}", self.rank);
        line
    }

    /// The failure that the rank prints, after which further operations were refused.
    pub(crate) fn noticed(mut self) -> Noticed {
        let line = self.line();
        let mut fields = line.splitn(4, '|').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_else(|| panic!("rank {} says {line}", self.rank));
        let noticed = Noticed {
            at: next().parse().unwrap_or_else(|_| panic!("rank {} says {line}", self.rank)),
            took: next().parse().unwrap(),
            missing: next(),
            sentence: next(),
        };
        println!("rank {}: {}", self.rank, noticed.sentence);
        assert!(self.child.wait().unwrap().success(), "rank {}", self.rank);
        noticed
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// `kill -STOP`.
    pub(crate) fn freeze(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
