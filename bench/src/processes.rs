//! Training on one process or on several of this machine: `PROCESSES THREADS FOLDER`.
//!
//! This measures `calmix_train`'s own loop: loader, plan, exchange, update. It runs in a separate thread and waits for a signal
//! before the first step of every repetition. The other processes run this program with a launcher's variables; they receive
//! their signals through standard input.

use std::io::{BufRead, Write, stdin};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use calmix_lifecycle::request::RunRequest;
use calmix_recipe::{Layers, Resolved};
use calmix_run::error::RunError;
use calmix_run::events::Pace;
use calmix_run::sink::Sink;
use calmix_train::launch::{LaunchInfo, Launcher, StoreHost};
use calmix_train::trainer::{StepPhase, StepTraffic, Trainer};

/// The number of steps per repetition.
const STEPS: u64 = 2;
const CLASSES: usize = 10;

static NEVER_STOP: AtomicBool = AtomicBool::new(false);

/// The metrics of a repetition in addition to its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metrics {
    pace: Pace,
    expected: u64,
    /// The CPU time of the first process in seconds, if the system provides it.
    worked: Option<f64>,
}

impl Metrics {
    /// Formats the metrics per step: the CPU time of the first process, which depends little on the load of the machine; and with
    /// several processes, the bytes sent, those by the formula, and the share of time that sending took.
    pub(crate) fn line(&self) -> String {
        let worked = self.worked.map(|seconds| format!("cpu-ms={:.1} ", 1e3 * seconds / STEPS as f64));
        let worked = worked.unwrap_or_default();
        let Some(processes) = self.pace.processes else { return worked };
        let kilobytes = |bytes: f64| bytes / 1e3;
        format!(
            "{worked}sent-kB={:.3} formula-kB={:.3} others-%={:.2}",
            kilobytes(processes.sent_bytes as f64 / STEPS as f64),
            kilobytes(self.expected as f64),
            100.0 * processes.waiting
        )
    }
}

/// Prepares the case. A repetition is some steps of one run, which continues in the next repetition.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<Metrics> + use<>> {
    let &[processes, threads, folder] = case else {
        bail!("the cases of processes are `PROCESSES THREADS FOLDER`, not {case:?}");
    };
    let size: usize = processes.parse().with_context(|| format!("`{processes}` is not a count"))?;
    let temp = tempfile::tempdir().context("no folder for the run")?;
    let (run, recipe) = (temp.path().join("run"), recipe(folder, threads)?);
    let expected = StepTraffic::new(&recipe.recipe, CLASSES, size).mean();
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr())?.port();
    let mut others = (1..size)
        .map(|rank| start(&launch_info(rank, size, port), threads, folder, &run))
        .collect::<Result<Vec<_>>>()?;

    let ((go, signals), (done, is_done)) = (channel(), channel());
    let first_launch = (size > 1).then(|| launch_info(0, size, port));
    thread::spawn(move || {
        if let Err(error) = lead(&recipe, first_launch.as_ref(), &run, signals, done) {
            // The waiting side notices the error, because this end of the channel closes.
            let _ = writeln!(std::io::stderr(), "{error:#}");
        }
    });
    // Wait until the run is open and its first step is next.
    is_done.recv().context("the run did not begin")?;
    Ok(move || {
        let _kept = &temp;
        for other in &mut others {
            let pipe = other.stdin.as_mut().context("another process has no pipe")?;
            writeln!(pipe, "run").context("another process is gone")?;
        }
        let before = worked();
        go.send(()).ok().context("the run ended")?;
        let pace: Option<Pace> = is_done.recv().context("the run ended")?;
        let worked = worked().zip(before).map(|(now, before)| now - before);
        Ok(Metrics { pace: pace.context("the run logged no pace")?, expected, worked })
    })
}

/// Returns the CPU time of this process in seconds, in steps of ten milliseconds; on Linux only.
fn worked() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // proc(5): fields 14 and 15, in hundredths of a second; the second field, in brackets, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Some(times.sum::<Result<f64, _>>().ok()? / 100.0)
}

/// Runs the first process: continues on a signal, and responds with the pace of its steps.
fn lead(
    recipe: &Resolved,
    launch: Option<&LaunchInfo>,
    run: &Path,
    signals: Receiver<()>,
    done: Sender<Option<Pace>>,
) -> Result<()> {
    let pace = Arc::new(Mutex::new(None));
    let (signals, seen) = (Mutex::new(signals), Arc::clone(&pace));
    let trainer = Trainer::new(RunRequest::new(&NEVER_STOP).sink(Paces(pace))).watched(move |phase, step| {
        if phase == StepPhase::Observe && step.is_multiple_of(STEPS) {
            let pace = *seen.lock().unwrap_or_else(PoisonError::into_inner);
            let signals = signals.lock().unwrap_or_else(PoisonError::into_inner);
            if done.send(pace).is_err() || signals.recv().is_err() {
                // When the receiver is gone, the process is about to end.
                loop {
                    thread::park();
                }
            }
        }
    });
    train(trainer, recipe, launch, run)
}

/// Runs another process: continues on every line of its standard input, and ends with it.
pub(crate) fn follow(case: &[&str]) -> Result<()> {
    let &[threads, folder, run] = case else { bail!("expected `THREADS FOLDER RUN`, not {case:?}") };
    let launch = LaunchInfo::from_environment(|name| std::env::var(name).ok())?.context("no launcher")?;
    let trainer = Trainer::new(RunRequest::new(&NEVER_STOP)).watched(|phase, step| {
        let mut line = String::new();
        if phase == StepPhase::Observe
            && step.is_multiple_of(STEPS)
            && !stdin().lock().read_line(&mut line).is_ok_and(|bytes| bytes > 0)
        {
            exit(0);
        }
    });
    train(trainer, &recipe(folder, threads)?, Some(&launch), Path::new(run))
}

fn train(trainer: Trainer<'_>, recipe: &Resolved, launch: Option<&LaunchInfo>, run: &Path) -> Result<()> {
    let trainer = match launch {
        Some(launch) => trainer.join(launch, &recipe.recipe)?,
        None => trainer,
    };
    trainer.start_or_resume(recipe, run)?;
    Ok(())
}

fn start(launch: &LaunchInfo, threads: &str, folder: &str, run: &PathBuf) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["processes-follow", threads, folder]).arg(run).envs(launch.variables());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    child.with_context(|| format!("process {} cannot be started", launch.rank))
}

fn launch_info(rank: usize, size: usize, port: u16) -> LaunchInfo {
    LaunchInfo {
        rank,
        world: size,
        local_rank: rank,
        local_world: size,
        master: ("127.0.0.1".to_owned(), port),
        job: String::new(),
        store_host: StoreHost::FirstRank,
        launcher: Launcher::Variables,
    }
}

/// Returns FixMatch with CalibrateMix on CIFAR-10, in two micro-batches.
fn recipe(folder: &str, threads: &str) -> Result<Resolved> {
    let settings = [
        &format!("dataset.path={folder}"),
        &format!("train.threads={threads}"),
        &format!("log.every={STEPS}"),
        "labels.count=4",
        "method.base=fixmatch",
        "method.mixup.start.share=0",
        "network.name=wrn-28-2",
        "train.batch=16",
        "train.ratio=7",
        "train.step=lean",
        "train.micro_batches=2",
        "train.device=cpu",
        "train.precision=bf16",
        "train.steps=1000000",
        "loader.workers=1",
        "evaluate.every=1000000",
        "checkpoint.every=1000000",
        "log.tensorboard=false",
    ];
    let layers = settings.iter().fold(Layers::new().recipe("cifar10"), |layers, set| layers.set(set));
    Ok(layers.resolve()?)
}

/// A sink that stores the last pace.
struct Paces(Arc<Mutex<Option<Pace>>>);

impl Sink for Paces {
    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(*pace);
        Ok(())
    }
}
