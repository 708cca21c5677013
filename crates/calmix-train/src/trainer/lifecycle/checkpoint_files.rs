//! The complete state of a run, as the files of a checkpoint.
//!
//! | file | content |
//! |---|---|
//! | `live.safetensors`, `ema.safetensors`, `momentum.safetensors` | weights, their EMA, and momentum, in the engine's encoding |
//! | `labelled.safetensors` | AUM of the labelled samples |
//! | `samples-0.safetensors` and so on | APM and FlexMatch's labels of each micro-batch's unlabelled samples |
//! | `state.json` | the method's statistics, counters, the history of evaluations |
//! | `best.safetensors` | the best model so far, if the recipe selects the best |
//! | `recipe.toml` | the recipe, so that a resumed run can name each key that changed |

use calmix_core::method::MethodState;
use calmix_data::loader::Tally;
use calmix_engine::optimiser::LossScale;
use calmix_metrics::evaluate::Evaluation;
use calmix_run::checkpoint::Checkpoint;
use calmix_run::events::{Finished, Starvation};

use calmix_run::error::RunError;
use calmix_run::tensor_files::sample_files::{
    max_labelled_bytes, max_micro_batch_bytes, read_labelled, read_unlabelled, write_labelled,
    write_unlabelled,
};
use serde::{Deserialize, Serialize};

use crate::trainer::error::{StateProblem, TrainError};
use crate::trainer::ranks::find_checkpoint::samples_of;
use crate::trainer::ranks::layout::ParallelLayout;
use crate::trainer::step::engine_setup::{read_weights, weights_files};
use crate::trainer::step::step_stats::LogWindow;
use crate::trainer::step::stepper::TrainState;

const LABELLED: &str = "labelled.safetensors";
const STATE: &str = "state.json";
const BEST: &str = "best.safetensors";
const RECIPE: &str = "recipe.toml";

/// The size limit of `state.json`, enough for the statistics of a million classes or some thousand evaluations.
const MAX_STATE_BYTES: u64 = 16 << 20;

/// The state of a run apart from its network and its samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunProgress {
    pub(crate) starvation: Starvation,
    pub(crate) window: LogWindow,
    pub(crate) tally: Tally,
    pub(crate) history: Vec<Evaluation>,
    pub(crate) best: Option<Best>,
    pub(crate) finished: Option<Finished>,
}

#[derive(Debug, Clone)]
pub(crate) struct Best {
    pub(crate) step: u64,
    pub(crate) weights: Vec<u8>,
}

/// The content of `state.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    method: MethodState,
    loss_scale: LossScale,
    non_finite_skips: u32,
    starvation: Starvation,
    window: LogWindow,
    samples_seen: u64,
    samples_skipped: u64,
    history: Vec<Evaluation>,
    best_step: Option<u64>,
    finished: Option<Finished>,
}

/// The files of a checkpoint by name.
pub(crate) type NamedFiles = Vec<(String, Vec<u8>)>;

/// Encodes the state of the samples of this process's micro-batches, which every process saves itself. A file is encoded only
/// when it is written, since it is as large as the state.
pub(crate) fn sample_files(
    step: u64,
    layout: &ParallelLayout,
    state: &TrainState,
) -> impl Iterator<Item = Result<(String, Vec<u8>), TrainError>> {
    let bad = move |problem: StateProblem| TrainError::State { step, problem };
    let micro_batches = layout.local().zip(&state.samples.micro_batches);
    micro_batches.map(move |(micro_batch, samples)| {
        Ok((samples_of(micro_batch), write_unlabelled(samples).map_err(|error| bad(error.into()))?))
    })
}

/// Encodes the state that is the same on every process; rank 0 saves it.
pub(crate) fn files(
    step: u64,
    train: &TrainState,
    progress: &RunProgress,
    recipe: &str,
) -> Result<NamedFiles, TrainError> {
    let bad = |problem: StateProblem| TrainError::State { step, problem };
    let engine = train.engine.snapshot()?;
    let state = StateFile {
        method: train.method.clone(),
        loss_scale: engine.loss_scale,
        non_finite_skips: train.skips,
        starvation: progress.starvation.clone(),
        window: progress.window.clone(),
        samples_seen: progress.tally.seen,
        samples_skipped: progress.tally.skipped,
        history: progress.history.clone(),
        best_step: progress.best.as_ref().map(|best| best.step),
        finished: progress.finished.clone(),
    };
    let state = serde_json::to_vec(&state).map_err(|error| bad(error.into()))?;
    let labelled = write_labelled(train.labelled.margins.as_ref()).map_err(|error| bad(error.into()))?;
    let mut files = weights_files(engine).to_vec();
    files.extend([(LABELLED, labelled), (STATE, state), (RECIPE, recipe.as_bytes().to_vec())]);
    files.extend(progress.best.as_ref().map(|best| (BEST, best.weights.clone())));
    Ok(files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect())
}

/// Restores the state from a checkpoint.
pub(crate) fn restore(
    checkpoint: &Checkpoint,
    layout: &ParallelLayout,
    train: &mut TrainState,
) -> Result<RunProgress, TrainError> {
    let step = checkpoint.step();
    let bad = |error: RunError| TrainError::State { step, problem: error.into() };
    let state = state(checkpoint)?;
    let max_bytes = train.engine.max_weights_bytes();
    train.engine.restore(&read_weights(checkpoint, max_bytes, state.loss_scale)?)?;
    let fresh = train.labelled.margins.take();
    let labelled = checkpoint.bytes_up_to(LABELLED, max_labelled_bytes(fresh.as_ref()))?;
    train.labelled.margins = read_labelled(&labelled, fresh).map_err(bad)?;
    for (micro_batch, samples) in layout.local().zip(&mut train.samples.micro_batches) {
        let fresh = std::mem::take(samples);
        let file = checkpoint.bytes_up_to(&samples_of(micro_batch), max_micro_batch_bytes(&fresh))?;
        *samples = read_unlabelled(&file, fresh).map_err(bad)?;
    }
    train.method = state.method;
    train.skips = state.non_finite_skips;
    let best = state.best_step.map(|step| -> Result<_, TrainError> {
        Ok(Best { step, weights: checkpoint.bytes_up_to(BEST, max_bytes)? })
    });
    Ok(RunProgress {
        starvation: state.starvation,
        window: state.window,
        tally: Tally { seen: state.samples_seen, skipped: state.samples_skipped },
        history: state.history,
        best: best.transpose()?,
        finished: state.finished,
    })
}

/// Returns the end of the run, if the checkpoint was written after it.
pub(crate) fn finished(checkpoint: &Checkpoint) -> Result<Option<Finished>, TrainError> {
    Ok(state(checkpoint)?.finished)
}

/// Returns the recipe of a checkpoint, as text.
pub(crate) fn recipe(checkpoint: &Checkpoint) -> Result<String, TrainError> {
    Ok(String::from_utf8_lossy(&checkpoint.bytes_up_to(RECIPE, calmix_recipe::MAX_RECIPE_BYTES)?)
        .into_owned())
}

fn state(checkpoint: &Checkpoint) -> Result<StateFile, TrainError> {
    let step = checkpoint.step();
    serde_json::from_slice(&checkpoint.bytes_up_to(STATE, MAX_STATE_BYTES)?)
        .map_err(|error| TrainError::State { step, problem: error.into() })
}
