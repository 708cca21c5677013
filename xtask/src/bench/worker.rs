//! A process that repeats one case on command.
//!
//! # Protocol
//!
//! One line at a time, text. A worker reads its case from its arguments and prepares it.
//!
//! | xtask writes | the worker does | the worker writes |
//! |---|---|---|
//! | | prepares the case | `ready` |
//! | `run` | one repetition | the seconds it took, as a decimal number; then metrics of it, as `name=number` |
//! | `quit`, or end of input | ends with success | |
//!
//! The worker takes the time itself, so the pipe is not measured. Its standard error is shown if it fails. `bench/src/worker.rs`
//! and `bench/peers/worker.py` are the other end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};

use super::memory;

/// One side of a comparison, ready to repeat its case.
pub(crate) struct Worker {
    /// The names of the side and of the command.
    name: String,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Read continuously, because a full pipe would block the worker.
    stderr_text: Option<JoinHandle<String>>,
    /// The process's own memory in bytes before its first repetition.
    initial_memory: Option<u64>,
}

/// The result of a repetition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repetition {
    pub(crate) seconds: f64,
    pub(crate) metrics: Vec<(String, f64)>,
}

impl Repetition {
    fn read(answer: &str) -> Option<Self> {
        let mut words = answer.split_whitespace();
        let seconds =
            words.next()?.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && seconds.is_finite())?;
        let metric = |word: &str| {
            let (name, number) = word.split_once('=')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        Some(Self { seconds, metrics: words.map(metric).collect::<Option<_>>()? })
    }
}

impl Worker {
    /// Starts the worker and waits until it is ready.
    pub(crate) fn start(side: &str, mut command: Command) -> Result<Self> {
        let name = format!("{side} ({command:?})");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let no_pipe = || format!("{name} has no pipe");
        let requests = child.stdin.take().with_context(no_pipe)?;
        let answers = BufReader::new(child.stdout.take().with_context(no_pipe)?);
        let mut stderr = child.stderr.take().with_context(no_pipe)?;
        let stderr_text = thread::spawn(move || {
            let mut bytes = Vec::new();
            // After an error, keep what was read before.
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).trim().to_owned()
        });
        let stderr_text = Some(stderr_text);
        let mut worker = Self { name, child, requests, answers, stderr_text, initial_memory: None };
        match worker.answer()?.as_str() {
            "ready" => {
                let process = worker.child.id();
                worker.initial_memory = memory::reset_peak(process).and_then(|()| memory::resident(process));
                Ok(worker)
            }
            other => Err(worker.failure(&format!("printed `{other}` instead of `ready`"))),
        }
    }

    pub(crate) fn repetition(&mut self) -> Result<Repetition> {
        // If the worker has died, reading its response gives the reason.
        let _ = writeln!(self.requests, "run");
        let answer = self.answer()?;
        Repetition::read(&answer)
            .ok_or_else(|| self.failure(&format!("printed `{answer}` instead of the seconds it took")))
    }

    /// Returns its peak memory minus that when it was ready; `None` if the system does not provide it.
    pub(crate) fn peak(&self) -> Option<u64> {
        Some(memory::peak(self.child.id())?.saturating_sub(self.initial_memory?))
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(self.failure("ended early")),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(self.failure(&format!("cannot be read: {error}"))),
        }
    }

    /// Ends the worker and returns an error with its standard error output.
    fn failure(&mut self, what: &str) -> anyhow::Error {
        // The process may already have ended.
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let stderr_text = self.stderr_text.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let stderr_text = match stderr_text.as_str() {
            "" => "it wrote nothing to standard error".to_owned(),
            text => format!("it wrote to standard error:\n{text}"),
        };
        anyhow!("{} {what} ({status}); {stderr_text}", self.name)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker may have ended already.
        let _ = writeln!(self.requests, "quit");
        let _ = self.child.wait();
    }
}

/// The measurements of one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    /// The time of each repetition.
    pub(crate) seconds: Vec<f64>,
    /// Its other metrics per repetition, by name.
    pub(crate) metrics: BTreeMap<String, Vec<f64>>,
    /// The peak memory minus that before the first repetition, if the system provides it.
    pub(crate) peak: Option<u64>,
}

/// Runs `repeat` repetitions of each side, after a warm-up that is not counted. Every round starts with another side, so that
/// none is always first, and only one side runs at a time.
pub(crate) fn take_turns(sides: &mut [Worker], repeat: usize) -> Result<Vec<Turns>> {
    for side in &mut *sides {
        side.repetition()?;
    }
    let mut turns = vec![Turns::default(); sides.len()];
    for round in 0..repeat {
        for turn in 0..sides.len() {
            let side = (round + turn) % sides.len();
            let Repetition { seconds, metrics } = sides[side].repetition()?;
            turns[side].seconds.push(seconds);
            for (name, metric) in metrics {
                turns[side].metrics.entry(name).or_default().push(metric);
            }
        }
    }
    for (side, turns) in sides.iter().zip(&mut turns) {
        turns.peak = side.peak();
    }
    Ok(turns)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_worker_repeats_on_command() {
        let script =
            "echo ready; n=0; while read line; do [ $line = quit ] && exit; n=$((n+1)); echo 0.$n; done";
        let mut worker = Worker::start("ours", shell(script)).expect("starts");
        assert_eq!(worker.repetition().expect("first").seconds, 0.1);
        assert_eq!(worker.repetition().expect("second").seconds, 0.2);
    }

    #[test]
    fn a_worker_that_dies_is_quoted() {
        let error = Worker::start("theirs", shell("echo no such case >&2; exit 3")).err().expect("fails");
        let found = error.to_string();
        assert!(found.starts_with("theirs") && found.contains("ended early"), "{found}");
        assert!(found.contains("exit status: 3") && found.ends_with("no such case"), "{found}");

        let mut worker =
            Worker::start("ours", shell("echo ready; read line; echo broke >&2; exit 1")).expect("starts");
        let found = worker.repetition().expect_err("dies").to_string();
        assert!(found.contains("ended early (exit status: 1)") && found.ends_with("broke"), "{found}");
    }

    #[test]
    fn metrics_come_with_the_time() {
        let found = Repetition::read("0.5 sent=3 share=0.25").expect("understood");
        assert_eq!((found.seconds, found.metrics), (0.5, vec![("sent".into(), 3.0), ("share".into(), 0.25)]));
    }

    #[test]
    fn invalid_worker_answer_is_refused() {
        for answer in ["fast", "-1", "0", "NaN", "inf", "1.0 sent", "1.0 sent=much"] {
            let mut worker = Worker::start("ours", shell(&format!("echo ready; read line; echo {answer}")))
                .expect("starts");
            let found = worker.repetition().expect_err("nonsense").to_string();
            assert!(found.contains(&format!("printed `{answer}` instead of the seconds")), "{found}");
        }
        assert!(Worker::start("ours", shell("echo hello")).is_err());
    }
}
