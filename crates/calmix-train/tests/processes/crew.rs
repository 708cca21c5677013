//! Processes that share a run, started as a launcher starts them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use calmix_dist::LaunchInfo;
use calmix_lifecycle::request::RunRequest;
use calmix_recipe::Resolved;
use calmix_testkit::sinks;
use calmix_train::trainer::{Outcome, StepPhase, TrainError, Trainer};

use crate::made;

/// What a process runs of this program.
pub(crate) const ENTRY: [&str; 4] = ["--exact", "processes::one_of_them", "--ignored", "--nocapture"];

/// The processes of a run, and what they train.
#[derive(Debug, Clone)]
pub(crate) struct Crew {
    pub(crate) data: PathBuf,
    pub(crate) run: PathBuf,
    pub(crate) settings: Vec<String>,
    /// Stop after this many steps.
    pub(crate) until: Option<u64>,
    /// What goes wrong.
    pub(crate) fault: Option<Fault>,
}

/// What goes wrong with one process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) rank: usize,
    pub(crate) moment: StepPhase,
    pub(crate) step: u64,
    pub(crate) what: What,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// `kill -9`.
    Dies,
    /// `kill -STOP`.
    Freezes,
    /// From that step on, a third of a second later every time.
    Lags,
    /// It alone is requested to stop.
    Stops,
    /// The images of its dataset are gone.
    LosesData,
}

impl Crew {
    pub(crate) fn new(bench: &made::Bench, run: &str, settings: &[&str]) -> Self {
        let settings = settings.iter().map(ToString::to_string).collect();
        Self { data: bench.data(), run: bench.folder(run), settings, until: None, fault: None }
    }

    /// The process of one rank.
    pub(crate) fn command(&self, rank: usize, size: usize, port: u16) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.set_variables(command.args(ENTRY));
        command
            .envs(
                [("RANK", rank), ("WORLD_SIZE", size), ("LOCAL_RANK", rank), ("LOCAL_WORLD_SIZE", size)]
                    .map(|(k, v)| (k, v.to_string())),
            )
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn set_variables(&self, command: &mut Command) {
        command
            .env("CALMIX_TEST_RUN", &self.run)
            .env("CALMIX_TEST_DATA", &self.data)
            .env("CALMIX_TEST_SETTINGS", self.settings.join("\n"));
        if let Some(Fault { rank, moment, step, what }) = self.fault {
            command.env("CALMIX_TEST_FAULT", format!("{rank} {moment:?} {step} {what:?}"));
        }
        if let Some(until) = self.until {
            command.env("CALMIX_TEST_UNTIL", until.to_string());
        }
    }

    /// Starts all of them.
    pub(crate) fn spawn(&self, size: usize) -> Vec<Child> {
        let port = free_port();
        (0..size).map(|rank| self.command(rank, size, port).spawn().unwrap()).collect()
    }

    /// Starts all of them and waits until all have ended well.
    pub(crate) fn train(&self, size: usize) {
        for (rank, ended) in wait_all(self.spawn(size)).into_iter().enumerate() {
            assert!(ended.ended_well, "rank {rank} of {size}: {}", ended.error);
        }
    }
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ended_well: bool,
    pub(crate) error: String,
}

impl Ended {
    /// The time of an event that the process printed, since 1970.
    pub(crate) fn at(&self, what: &str) -> Option<Duration> {
        let line = self.error.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(" at "))?;
        line.parse().ok().map(Duration::from_micros)
    }
}

fn print_time(what: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    eprintln!("{what} at {}", now.as_micros());
}

pub(crate) fn wait_all(children: Vec<Child>) -> Vec<Ended> {
    let wait = |child: Child| child.wait_with_output().unwrap();
    let read = |output: std::process::Output| Ended {
        ended_well: output.status.success(),
        error: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    // Each writes less than a pipe holds.
    children.into_iter().map(wait).map(read).collect()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// What one process does.
pub(crate) fn one_of_them() {
    let Ok(folder) = std::env::var("CALMIX_TEST_RUN") else { return };
    let variable = |name: &str| std::env::var(name).ok();
    let settings = variable("CALMIX_TEST_SETTINGS").unwrap();
    let settings: Vec<&str> = settings.lines().collect();
    let recipe = made::recipe(Path::new(&variable("CALMIX_TEST_DATA").unwrap()), &settings);
    let stop: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let mut notes = Vec::new();
    let request = match variable("CALMIX_TEST_UNTIL") {
        Some(until) => made::stopping(until.parse().unwrap(), stop),
        None => RunRequest::new(stop),
    };
    let mut trainer = Trainer::new(request.sink(sinks::Notes(&mut notes)));
    if let Some(fault) = variable("CALMIX_TEST_FAULT")
        .filter(|_| variable("TORCHELASTIC_RESTART_COUNT").is_none_or(|n| n == "0"))
    {
        trainer = trainer.watched(move |moment, step| inject_fault(&fault, moment, step, stop));
    }
    let outcome = train(trainer, &recipe, Path::new(&folder));
    for note in &notes {
        eprintln!("note: {note}");
    }
    match outcome {
        Ok(outcome) => {
            if let Outcome::Stopped { step } = outcome {
                eprintln!("stopped: {step}");
            }
        }
        Err(error) => {
            print_time("noticed");
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}

fn inject_fault(fault: &str, moment: StepPhase, step: u64, stop: &AtomicBool) {
    let words: Vec<&str> = fault.split(' ').collect();
    let [rank, when, at, what] = words[..] else { panic!("{fault}") };
    let at: u64 = at.parse().unwrap();
    if std::env::var("RANK").as_deref() != Ok(rank) {
        return;
    }
    let signal = |name: &str| {
        let process = std::process::id().to_string();
        Command::new("kill").args([name, &process]).status().unwrap();
    };
    match what {
        _ if when != format!("{moment:?}") || step < at => {}
        "Lags" => std::thread::sleep(Duration::from_millis(300)),
        _ if step > at => {}
        "Stops" => stop.store(true, Ordering::Relaxed),
        "LosesData" => {
            let images =
                PathBuf::from(std::env::var("CALMIX_TEST_DATA").unwrap()).join("train-images-idx3-ubyte");
            std::fs::File::options().write(true).open(images).unwrap().set_len(16).unwrap();
        }
        "Dies" => {
            print_time("died");
            signal("-KILL");
        }
        _ => signal("-STOP"),
    }
}

fn train(trainer: Trainer<'_>, recipe: &Resolved, folder: &Path) -> Result<Outcome, TrainError> {
    let launch = LaunchInfo::from_environment(|name| std::env::var(name).ok()).unwrap().unwrap();
    trainer.join(&launch, &recipe.recipe)?.start_or_resume(recipe, folder)
}
