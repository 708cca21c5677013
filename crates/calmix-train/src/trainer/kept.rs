//! Everything that decides how a run goes on, as the files of a checkpoint.
//!
//! | file | what |
//! |---|---|
//! | `live.safetensors`, `ema.safetensors`, `momentum.safetensors` | the engine's, as it hands them over |
//! | `samples-0.safetensors` and so on | margins and FlexMatch's labels of the samples of each part of a step |
//! | `state.json` | the method's statistics, counters, the history of evaluations |
//! | `best.safetensors` | the best model so far, where the best one is the result |
//! | `recipe.toml` | the recipe, so that a change can be told key by key |

use calmix_core::method::MethodState;
use calmix_data::loader::Tally;
use calmix_engine::engine as engine_state;
use calmix_engine::loss_scale::LossScale;
use serde::{Deserialize, Serialize};

use super::error::{StateProblem, TrainError};
use super::learner::Learner;
use super::samples;
use crate::checkpoint::Checkpoint;
use crate::events::{Evaluation, Finished, Starvation};

const LIVE: &str = "live.safetensors";
const EMA: &str = "ema.safetensors";
const MOMENTUM: &str = "momentum.safetensors";
const STATE: &str = "state.json";
const BEST: &str = "best.safetensors";
pub(super) const RECIPE: &str = "recipe.toml";

/// What a run knows besides its network and its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) starvation: Starvation,
    pub(super) tally: Tally,
    pub(super) history: Vec<Evaluation>,
    pub(super) best: Option<Best>,
    pub(super) finished: Option<Finished>,
}

/// The best model so far.
#[derive(Debug, Clone)]
pub(super) struct Best {
    pub(super) step: u64,
    pub(super) weights: Vec<u8>,
}

/// `state.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    method: MethodState,
    loss_scale: LossScale,
    non_finite_skips: u32,
    starvation: Starvation,
    samples_seen: u64,
    samples_skipped: u64,
    history: Vec<Evaluation>,
    best_step: Option<u64>,
    finished: Option<Finished>,
}

/// The files of a checkpoint by name.
pub(super) type Files = Vec<(String, Vec<u8>)>;

/// The file with the samples of a part.
fn samples_of(part: usize) -> String {
    format!("samples-{part}.safetensors")
}

/// What the samples that this process owns are like: every process keeps its own.
pub(super) fn sample_files(step: u64, learner: &Learner) -> Result<Files, TrainError> {
    let bad = |problem: StateProblem| TrainError::State { step, problem };
    let states = learner.team.parts().zip(&learner.owners.states);
    states
        .map(|(part, state)| {
            Ok((samples_of(part), samples::write(state).map_err(|error| bad(error.into()))?))
        })
        .collect()
}

/// What all processes have alike: one of them keeps it.
pub(super) fn files(
    step: u64,
    learner: &Learner,
    progress: &Progress,
    recipe: &str,
) -> Result<Files, TrainError> {
    let bad = |problem: StateProblem| TrainError::State { step, problem };
    let engine_state::Snapshot { live, ema, momentum, loss_scale } = learner.engine.snapshot()?;
    let state = State {
        method: learner.state.clone(),
        loss_scale,
        non_finite_skips: learner.skips,
        starvation: progress.starvation.clone(),
        samples_seen: progress.tally.seen,
        samples_skipped: progress.tally.skipped,
        history: progress.history.clone(),
        best_step: progress.best.as_ref().map(|best| best.step),
        finished: progress.finished.clone(),
    };
    let state = serde_json::to_vec(&state).map_err(|error| bad(error.into()))?;
    let mut files = vec![
        (LIVE, live),
        (EMA, ema),
        (MOMENTUM, momentum),
        (STATE, state),
        (RECIPE, recipe.as_bytes().to_vec()),
    ];
    files.extend(progress.best.as_ref().map(|best| (BEST, best.weights.clone())));
    Ok(files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect())
}

/// Goes back to a checkpoint.
pub(super) fn restore(checkpoint: &Checkpoint, learner: &mut Learner) -> Result<Progress, TrainError> {
    let step = checkpoint.step();
    let bad = |problem: StateProblem| TrainError::State { step, problem };
    let state = state(checkpoint)?;
    learner.engine.restore(&engine_state::Snapshot {
        live: checkpoint.bytes(LIVE)?,
        ema: checkpoint.bytes(EMA)?,
        momentum: checkpoint.bytes(MOMENTUM)?,
        loss_scale: state.loss_scale,
    })?;
    for (part, state) in learner.team.parts().zip(&mut learner.owners.states) {
        let fresh = std::mem::take(state);
        *state = samples::read(&checkpoint.bytes(&samples_of(part))?, fresh).map_err(bad)?;
    }
    learner.state = state.method;
    learner.skips = state.non_finite_skips;
    let best =
        state.best_step.map(|step| Ok::<_, TrainError>(Best { step, weights: checkpoint.bytes(BEST)? }));
    Ok(Progress {
        starvation: state.starvation,
        tally: Tally { seen: state.samples_seen, skipped: state.samples_skipped },
        history: state.history,
        best: best.transpose()?,
        finished: state.finished,
    })
}

/// The end of the run, if the checkpoint is behind it.
pub(super) fn finished(checkpoint: &Checkpoint) -> Result<Option<Finished>, TrainError> {
    Ok(state(checkpoint)?.finished)
}

/// The weights of a checkpoint: the trained ones, their average.
pub(super) fn weights(checkpoint: &Checkpoint) -> Result<engine_state::Snapshot, TrainError> {
    Ok(engine_state::Snapshot {
        live: checkpoint.bytes(LIVE)?,
        ema: checkpoint.bytes(EMA)?,
        momentum: checkpoint.bytes(MOMENTUM)?,
        loss_scale: state(checkpoint)?.loss_scale,
    })
}

fn state(checkpoint: &Checkpoint) -> Result<State, TrainError> {
    let step = checkpoint.step();
    serde_json::from_slice(&checkpoint.bytes(STATE)?)
        .map_err(|error| TrainError::State { step, problem: error.into() })
}
