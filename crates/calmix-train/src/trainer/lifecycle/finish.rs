//! The end of a run: the last evaluation, the model with its metrics, and the files for the report.

use std::cell::RefCell;

use calmix_data::error::DataError;
use calmix_engine::engine::EngineSnapshot;
use calmix_lifecycle::evaluation::FinalEvaluation;
use calmix_lifecycle::run_files::{ResultFiles, ResultingModel, selected};
use calmix_metrics::margins::SampleMargins;
use calmix_metrics::predictions::EvalModel;
use calmix_metrics::pseudo_labels::PseudoLabelMetrics;
use calmix_recipe::Recipe;
use calmix_run::events::{Event, Finished};
use calmix_run::sink::WorkProgress;
use calmix_run::tensor_files::examples::Thumbnails;

use super::checkpoint_files::Best;
use super::train_loop::TrainLoop;
use crate::trainer::Outcome;
use crate::trainer::data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::eval::{EvalMode, evaluate_model, evaluate_network, evaluate_pseudo_labels, keeps_best};
use crate::trainer::ranks::collect_results::{broadcast_result, unreadable};
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::step::stepper::Stepper;

impl TrainLoop<'_> {
    /// Ends a run after its last step: makes the last evaluation, and writes the resulting model and its metrics. Writes nothing
    /// if the run has to stop first.
    pub(crate) fn finish(mut self) -> Result<Outcome, TrainError> {
        // Save first, because the evaluation takes long and may be abandoned or killed. The final checkpoint replaces this one.
        self.saver.try_save(self.step, &self.stepper, &mut self.log)?;
        match self.conclude() {
            // Events after this checkpoint are cut on resume, and written again.
            Err(error) if error.is_stopped() => Ok(Outcome::Stopped { step: self.saver.saved.unwrap_or(0) }),
            finished => finished.map(Outcome::Finished),
        }
    }

    fn conclude(&mut self) -> Result<Finished, TrainError> {
        let model = self.last_model()?;
        let mut pseudo = None;
        if self.stepper.recipe.evaluate.pseudo_labels {
            let Stepper { recipe, data, state, .. } = &self.stepper;
            let shown = RefCell::new(&mut self.log.events);
            let work = |progress: &WorkProgress| shown.borrow_mut().work(progress);
            let stop = self.stepper.eval_stop(self.step, self.signals.stop(), &self.warn);
            let stop = EvalStop { work: &work, ..stop };
            pseudo = evaluate_pseudo_labels(&state.engine, recipe, data, stop)?;
        }
        let model = match self.best_of_all()? {
            Some(best) => self.best_model(best)?,
            None => model,
        };
        self.write(model, pseudo)
    }

    /// Evaluates the model of the last step.
    fn last_model(&mut self) -> Result<ResultingModel, TrainError> {
        // If the best model is the result, this evaluation only decides whether the last one is the best.
        let is_result = !keeps_best(self.stepper.recipe.selection);
        let mode = if is_result { EvalMode::Final } else { EvalMode::MetricsOnly };
        let stop = self.stepper.eval_stop(self.step, self.signals.stop(), &self.warn);
        let evaluation = evaluate_network(&self.stepper, mode, stop, &mut self.log)?;
        let weights = self.stepper.state.engine.snapshot()?.ema;
        let draws = self.stepper.data.samples.label_draws()?;
        Ok(ResultingModel {
            step: self.step,
            weights,
            evaluation,
            heads: None,
            head: None,
            reference: None,
            pool: None,
            draws,
        })
    }

    /// Returns the best model so far, if the recipe selects it; only rank 0 has it.
    fn best_of_all(&self) -> Result<Option<Best>, TrainError> {
        let processes = &self.stepper.layout.processes;
        let best = self.log.progress.best.as_ref();
        if processes.size() == 1 || !keeps_best(self.stepper.recipe.selection) {
            return Ok(best.cloned());
        }
        let step = (processes.rank() == 0).then(|| Ok::<_, TrainError>(best.map(|best| best.step)));
        let step = broadcast_result(processes, step)?;
        let weights = processes.broadcast_bytes(0, best.map_or(&[][..], |best| &best.weights))?;
        Ok(step.map(|step| Best { step, weights }))
    }

    /// Evaluates the best model in place of the last one, and restores the last one.
    fn best_model(&mut self, best: Best) -> Result<ResultingModel, TrainError> {
        let engine = &mut self.stepper.state.engine;
        let last = engine.snapshot()?;
        engine.restore(&EngineSnapshot {
            weights: best.weights.clone(),
            ema: best.weights.clone(),
            momentum: last.momentum.clone(),
            loss_scale: last.loss_scale,
        })?;
        let Stepper { recipe, data, state, .. } = &self.stepper;
        let model = (best.step, EvalModel::Ema);
        let shown = RefCell::new(&mut self.log.events);
        let work = |progress: &WorkProgress| shown.borrow_mut().work(progress);
        let stop = self.stepper.eval_stop(self.step, self.signals.stop(), &self.warn);
        let stop = EvalStop { work: &work, ..stop };
        let output = evaluate_model(&state.engine, recipe, data, model, EvalMode::Final, stop);
        self.stepper.state.engine.restore(&last)?;
        let output = output?;
        for seen in &output.predictions {
            self.log.events.predictions(seen)?;
        }
        let evaluation = FinalEvaluation::of(&output)?;
        for evaluation in output.evaluations {
            self.log.events.event(&Event::Evaluation(Box::new(evaluation)))?;
        }
        let Best { step, weights } = best;
        let draws = self.stepper.data.samples.label_draws()?;
        Ok(ResultingModel {
            step,
            weights,
            evaluation,
            heads: None,
            head: None,
            reference: None,
            pool: None,
            draws,
        })
    }

    /// Writes the files of a finished run, its last event, and then the checkpoint that marks it as finished.
    fn write(
        &mut self,
        model: ResultingModel,
        pseudo: Option<PseudoLabelMetrics>,
    ) -> Result<Finished, TrainError> {
        let Stepper { recipe, data, .. } = &self.stepper;
        let thumbnails = thumbnails(&model.evaluation.examples, recipe, data, self.eval_stop())?;
        let margins = sample_margins(&self.stepper)?;
        let selected = selected(recipe, &self.log.progress.history);
        let finished = Finished { step: self.step, selected, pseudo };
        let files = ResultFiles::new(recipe, &data.samples, model, (&margins, &thumbnails), &finished)?;
        let events = &mut self.log.events;
        let write = || -> Result<Finished, TrainError> {
            files.write_model(events)?;
            files.write_result(events)?;
            events.event(&Event::Finished(finished.clone()))?;
            Ok(finished)
        };
        let finished = self.stepper.layout.leads().then(write);
        let finished = broadcast_result(&self.stepper.layout.processes, finished)?;
        self.log.progress.finished = Some(finished.clone());
        self.saver.save(self.step, &self.stepper, &mut self.log)?;
        self.log.events.flush()?;
        Ok(finished)
    }

    /// Returns the stop signal of an evaluation.
    fn eval_stop(&self) -> EvalStop<'_> {
        self.stepper.eval_stop(self.step, self.signals.stop(), &self.warn)
    }
}

/// Returns the margins of all samples on rank 0; on the other ranks, those of their own samples.
pub(crate) fn sample_margins(stepper: &Stepper) -> Result<SampleMargins, TrainError> {
    let mut margins = SampleMargins::of(&stepper.state.labelled, &stepper.state.samples);
    let processes = &stepper.layout.processes;
    if processes.size() > 1 {
        let message = serde_json::to_vec(&margins).map_err(unreadable)?;
        for other in processes.gather_bytes(0, message)?.iter().skip(1) {
            // Every process has all labelled samples, so only the unlabelled ones are merged.
            let other: SampleMargins = serde_json::from_slice(other).map_err(unreadable)?;
            margins.unlabelled.merge(&other.unlabelled);
        }
    }
    Ok(margins)
}

/// Makes thumbnails of samples in their evaluation view, on rank 0 while the others wait.
///
/// # Errors
/// [`LifecycleError::Stopped`](calmix_lifecycle::LifecycleError::Stopped) if `stop` requests it, on all processes.
pub(crate) fn thumbnails(
    ids: &[u64],
    recipe: &Recipe,
    data: &TrainData,
    stop: EvalStop<'_>,
) -> Result<Thumbnails, TrainError> {
    if stop.processes.rank() > 0 {
        stop.wait_for_first()?;
        return Ok(Thumbnails::default());
    }
    let thumbnails = match data.images.thumbnails(ids, recipe, stop.warn, stop.requested) {
        Err(DataError::Interrupted) => {
            stop.check()?;
            return Err(TrainError::stopped());
        }
        thumbnails => thumbnails?,
    };
    stop.done()?;
    Ok(thumbnails)
}
