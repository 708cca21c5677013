//! Calls of the library in one process: most of the time of a command goes into loading libtorch, and here it is loaded once.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use calmix::Model;
use calmix::lifecycle::request::RunRequest;
use calmix::model::ModelOptions;
use calmix_torch::report::report::RunsReport;
use calmix_torch::run::read;
use calmix_torch::run::read::inspect;
use calmix_torch::train::trainer::{Trainer, evaluate_run};

use super::measured::{Ended, HANGS, INTERVAL, MAX_MEMORY_BYTES, Memory, limit};

/// What an answer begins with, among what the test harness prints.
const ANSWER: &str = "@ ";

/// A process that calls the library.
pub(crate) struct Library {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Library {
    pub(crate) fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "cli::library::answers", "--ignored", "--nocapture"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        limit(&child, MAX_MEMORY_BYTES);
        let requests = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix(ANSWER) {
                    let _ = sender.send(serde_json::from_str(answer).unwrap());
                }
            }
        });
        Self { child, requests, answers }
    }

    /// Calls what a command calls. The text is that of the error, or empty.
    #[track_caller]
    pub(crate) fn call(&mut self, command: &str, folder: &Path) -> Ended {
        let begun = Instant::now();
        writeln!(self.requests, "{command} {}", folder.display()).unwrap();
        let mut peak = Memory::default();
        let text = loop {
            peak = peak.max(Memory::of(self.child.id()));
            match self.answers.recv_timeout(INTERVAL) {
                Ok(text) => break text,
                Err(RecvTimeoutError::Timeout) => {
                    assert!(begun.elapsed() < HANGS, "{command}: hangs");
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("{command}: the process ended: {:?}", self.child.wait());
                }
            }
        };
        let took = begun.elapsed();
        Ended { code: None, text, took, peak: peak.own, resident: peak.resident }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the process does: not a test.
#[test]
#[ignore = "other tests run it, in a process of its own"]
#[allow(clippy::print_stdout)]
fn answers() {
    for request in std::io::stdin().lines().map_while(Result::ok) {
        let (command, folder) = request.split_once(' ').unwrap();
        let text = called(command, Path::new(folder)).err().unwrap_or_default();
        println!("{ANSWER}{}", serde_json::to_string(&text).unwrap());
    }
}

fn called(command: &str, folder: &Path) -> Result<(), String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    match command {
        "inspect" => {
            inspect::inspect(folder).map_err(text)?;
            read::latest_evaluations(folder, |_| true).map_err(text)?;
            read::model_info(folder).map_err(text)?;
        }
        "evaluate" => drop(evaluate_run(folder, None, None).map_err(text)?),
        "report" => drop(RunsReport::read(&[folder], true).map_err(text)?),
        "resume" => {
            drop(Trainer::new(RunRequest::new(&AtomicBool::new(false))).resume(folder, None).map_err(text)?);
        }
        "predict" => {
            let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
            drop(Model::load_with(folder, &options).map_err(text)?);
        }
        _ => panic!("no command {command}"),
    }
    Ok(())
}
