//! The first run of an encoder that another program exported, in a separate process with limits of memory and time: if the model
//! crashes it, hangs or exhausts the memory, this process can report that in a sentence.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result};
use calmix_heads::images::backbone::Backbone;
use calmix_io::shown::shown;
use calmix_io::system::{EndSignal, ProcessLimits, ended_by_signal, limit_this_process};
use calmix_lifecycle::pretrained::EncoderFile;
use calmix_onnx::foreign::EncoderGraph;
use calmix_ort::error::OrtError;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::library;
use calmix_ort::session::RunOn;
use calmix_recipe::Recipe;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_run::run::Paths;
use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// The hidden command of the separate process.
pub(crate) const COMMAND: [&str; 2] = ["weights", "try-encoder"];

/// The memory that any encoder may use, plus this multiple of the size of its file.
const BASE_MEMORY_BYTES: u64 = 2 << 30;
const MEMORY_PER_MODEL_BYTE: u64 = 4;
/// The CPU time that any encoder may take, plus a second for this many bytes of its file.
const BASE_CPU_SECONDS: u64 = 10;
const BYTES_PER_SECOND: u64 = 100 << 20;
/// The maximum wall time, for a busy machine.
const MAX_WAIT: Duration = Duration::from_mins(2);
/// The time between two checks of the process.
const POLL: Duration = Duration::from_millis(10);
/// The maximum size of the process's output that is kept.
const MAX_OUTPUT_BYTES: u64 = 1 << 16;
/// The minimum duration of the speed measurement, and the CPU time that it may take.
const MIN_MEASURED_TIME: Duration = Duration::from_secs(1);
const MEASURED_CPU_SECONDS: u64 = 100;

/// The request to the process.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    spec: EncoderSpec,
    rows: Option<usize>,
    width: Option<usize>,
    threads: usize,
    measures_speed: bool,
}

/// The result of the process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// The number of features per image.
    pub(crate) width: usize,
    /// Images per second, if requested.
    pub(crate) views_per_second: Option<f64>,
}

/// Tries the encoder of a recipe, if any.
pub(crate) fn of_recipe(recipe: &Recipe) -> Result<()> {
    if !recipe.has_encoder() {
        return Ok(());
    }
    of_backbone(&Backbone::read(recipe)?)
}

/// Tries the encoder of a run that has begun, if any.
pub(crate) fn of_run(run: &Path, recipe: &Recipe) -> Result<()> {
    if !recipe.has_encoder() {
        return Ok(());
    }
    of_backbone(&Backbone::of_run(recipe, &Paths::new(run))?)
}

fn of_backbone(backbone: &Backbone) -> Result<()> {
    if let Backbone::Encoder(spec, file) = backbone {
        first_run(file, spec, 1, false)?;
    }
    Ok(())
}

/// Runs an encoder for the first time, in a separate process.
pub(crate) fn first_run(
    file: &EncoderFile,
    spec: &EncoderSpec,
    threads: usize,
    measures_speed: bool,
) -> Result<Trial> {
    // Check the runtime first: a missing one is not the model's fault.
    library::version()?;
    let graph = file.graph(spec)?;
    let EncoderGraph { bytes, rows, width } = graph;
    let request = Request { spec: spec.clone(), rows, width, threads, measures_speed };
    let mut input = serde_json::to_vec(&request)?;
    input.push(b'\n');
    input.extend(bytes);
    let program = env::current_exe().context("cannot find the program of this process")?;
    let mut command = Command::new(program);
    command.args(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().context("cannot start a process for the first run of the encoder")?;
    let (status, output, errors) = wait_for(child, input)?;
    if status.is_some_and(|status| status.success())
        && let Ok(trial) = serde_json::from_slice(&output)
    {
        return Ok(trial);
    }
    let place = shown(file.path.display());
    let message =
        format!("{place}: its first run, in a process of its own, {}", what_happened(status, &errors));
    let hint = "`calmix weights check` shows what calmix understood of it; export the encoder again, for images of one size";
    Err(CliError::invalid(message).hint(hint).into())
}

/// Writes the input, and waits for the process to end; the status is `None` if it took too long.
fn wait_for(mut child: Child, input: Vec<u8>) -> Result<(Option<ExitStatus>, Vec<u8>, Vec<u8>)> {
    let mut stdin = child.stdin.take().context("no standard input")?;
    // The process may end before it has read everything.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let output = collected(child.stdout.take().context("no standard output")?);
    let errors = collected(child.stderr.take().context("no standard error")?);
    let end = Instant::now() + MAX_WAIT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(POLL);
    };
    Ok((status, output.recv().unwrap_or_default(), errors.recv().unwrap_or_default()))
}

/// Reads a stream to its end, but keeps only the start.
fn collected(stream: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = stream;
        let mut start = Vec::new();
        let _ = stream.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut start);
        let _ = sender.send(start);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    receiver
}

fn what_happened(status: Option<ExitStatus>, errors: &[u8]) -> String {
    let Some(status) = status else { return format!("did not end within {} s", MAX_WAIT.as_secs()) };
    match ended_by_signal(status) {
        Some(EndSignal::KilledOrOverTime(_)) => {
            "took more time of a processor than calmix allows for one image".to_owned()
        }
        Some(EndSignal::Other(signal)) => {
            format!("crashed (signal {signal}), or needed more memory than {} GB", BASE_MEMORY_BYTES >> 30)
        }
        None => {
            let text = String::from_utf8_lossy(errors);
            let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("without a message");
            let line: String = line.chars().take(400).collect();
            format!("failed: {}", shown(&line))
        }
    }
}

/// Runs in the separate process: reads the request and the graph, and prints the result.
pub(crate) fn serve() -> Result<()> {
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input)?;
    let end = input.iter().position(|&byte| byte == b'\n').context("no request")?;
    let (request, graph) = input.split_at(end);
    let request: Request = serde_json::from_slice(request)?;
    let bytes = graph.get(1..).unwrap_or_default().to_vec();
    let size = bytes.len() as u64;
    drop(input);
    let measured = if request.measures_speed { MEASURED_CPU_SECONDS } else { 0 };
    let seconds = BASE_CPU_SECONDS + size / BYTES_PER_SECOND + measured;
    let memory_bytes = BASE_MEMORY_BYTES + MEMORY_PER_MODEL_BYTE * size;
    limit_this_process(ProcessLimits { cpu_seconds: seconds, memory_bytes })?;
    let Request { spec, rows, width, threads, measures_speed } = request;
    let graph = EncoderGraph { bytes, rows, width };
    let encoder = ImageNetwork::encoder(&spec, &graph, RunOn { threads, device: Device::Cpu })?;
    let views_per_second = measures_speed.then(|| speed(&encoder, &spec)).transpose()?;
    let trial = Trial { width: encoder.feature_width(), views_per_second };
    crate::terminal::print(&serde_json::to_string(&trial)?)
}

/// Measures images per second, in whole passes.
fn speed(encoder: &ImageNetwork, spec: &EncoderSpec) -> Result<f64, OrtError> {
    let pass = vec![0; encoder.pass_bytes()];
    let images = pass.len() / spec.image_bytes().max(1);
    encoder.outputs(&pass)?;
    let start = Instant::now();
    let mut passes = 0;
    while passes == 0 || start.elapsed() < MIN_MEASURED_TIME {
        encoder.outputs(&pass)?;
        passes += 1;
    }
    Ok((passes * images) as f64 / start.elapsed().as_secs_f64())
}
