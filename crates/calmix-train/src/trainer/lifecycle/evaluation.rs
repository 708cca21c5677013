//! An evaluation of the current network, and what a run writes and keeps of it.

use std::cell::RefCell;

use calmix_lifecycle::evaluation::final_evaluation::FinalEvaluation;
use calmix_metrics::evaluate::select;
use calmix_metrics::predictions::EvalModel;
use calmix_recipe::Selection;
use calmix_run::sink::WorkProgress;

use super::checkpoint_files::Best;
use super::run_log::RunLog;
use crate::trainer::error::TrainError;
use crate::trainer::eval::evaluate::{EvalMode, evaluate_model};
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::step::stepper::Stepper;

/// Evaluates the EMA weights, and the live ones if the recipe requests it; returns the evaluation of the EMA weights.
///
/// # Errors
/// [`TrainError::Abandoned`] if the run has to stop; then nothing was written, and the state is as it was.
pub(crate) fn evaluate_network(
    stepper: &Stepper,
    mode: EvalMode<'_>,
    stop: EvalStop<'_>,
    log: &mut RunLog<'_>,
) -> Result<FinalEvaluation, TrainError> {
    let recipe = &stepper.recipe;
    let engine = &stepper.state.engine;
    let step = stop.step;
    let models =
        if recipe.evaluate.online { &[EvalModel::Ema, EvalModel::Live][..] } else { &[EvalModel::Ema] };
    let shown = RefCell::new(&mut log.events);
    let work = |progress: &WorkProgress| shown.borrow_mut().work(progress);
    let stop = EvalStop { work: &work, ..stop };
    // Evaluate all models before anything is written: of an abandoned evaluation nothing must remain.
    let outputs = models
        .iter()
        .map(|&model| Ok((model, evaluate_model(engine, recipe, &stepper.data, (step, model), mode, stop)?)));
    let outputs = outputs.collect::<Result<Vec<_>, TrainError>>()?;
    let mut evaluation = FinalEvaluation::default();
    for (model, output) in outputs {
        log.evaluation(step, &output)?;
        if model == EvalModel::Ema {
            evaluation = FinalEvaluation::of(&output)?;
        }
    }
    let window = recipe.evaluate.window as usize;
    let best = select(recipe.selection, window, &log.progress.history);
    let now_best = best.is_some_and(|best| best.at_step == Some(step));
    if keeps_best(recipe.selection) && now_best {
        log.progress.best = Some(Best { step, weights: engine.snapshot()?.ema });
    }
    Ok(evaluation)
}

/// Whether the result is the best model of the run rather than the last.
pub(crate) fn keeps_best(rule: Selection) -> bool {
    matches!(rule, Selection::BestValidation | Selection::BestTest)
}
