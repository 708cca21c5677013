//! The end of a run: the last evaluation, the model and its metrics.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use calmix_data::loader::Warn;
use calmix_engine::engine::EngineSnapshot;
use calmix_io::error::{FileError, FileProblem};
use calmix_metrics::evaluate::{Selected, select};
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::predictions::EvalModel;
use calmix_recipe::Selection;
use calmix_run::events::{Event, Finished, PseudoLabelMetrics};
use calmix_run::model_info::HeadInfo;
use calmix_run::result::{HeadChoice, RunResult};
use calmix_run::run::RunFile;
use serde::Serialize;

use super::checkpoint_files::Best;
use super::evaluation::{evaluate_network, keeps_best};
use super::run_log::RunLog;
use super::save::CheckpointSaver;
use crate::trainer::Outcome;
use crate::trainer::data::frozen_features::HeadInput;
use crate::trainer::error::TrainError;
use crate::trainer::eval::evaluate::{EvalMode, evaluate_model, evaluate_pseudo_labels};
use crate::trainer::eval::final_evaluation::FinalEvaluation;
use crate::trainer::eval::head::conclude_head;
use crate::trainer::eval::report_files::{margins_bytes, sample_margins, thumbnail_bytes, thumbnails};
use crate::trainer::ranks::collect_results::broadcast_result;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::step::engine_settings::model_info;
use crate::trainer::step::stepper::Stepper;

/// A run after its last step.
pub(crate) struct RunEnd<'a> {
    pub(crate) stepper: Stepper,
    pub(crate) log: RunLog<'a>,
    pub(crate) saver: CheckpointSaver,
    /// The backbone and the projection, if the backbone is frozen.
    pub(crate) head: Option<HeadInput>,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) warn: Warn,
    /// The number of steps: all of them.
    pub(crate) step: u64,
}

/// The model that a run results in.
struct ResultingModel {
    /// The step whose weights these are.
    step: u64,
    weights: Vec<u8>,
    evaluation: FinalEvaluation,
    heads: Option<HeadChoice>,
    /// The backbone and the projection, if the weights are a head.
    below: Option<HeadInfo>,
}

impl RunEnd<'_> {
    /// Makes the last evaluation and writes the resulting model and its metrics; or nothing, if the run has to stop before.
    pub(crate) fn finish(mut self) -> Result<Outcome, TrainError> {
        // The evaluation takes long and may be abandoned or killed. The checkpoint of the end takes the place of this one.
        self.saver.try_save(self.step, &self.stepper, &mut self.log)?;
        match self.conclude() {
            // What was written since the checkpoint is cut or written again.
            Err(TrainError::Abandoned) => Ok(Outcome::Stopped { step: self.saver.saved.unwrap_or(0) }),
            finished => finished.map(Outcome::Finished),
        }
    }

    fn conclude(&mut self) -> Result<Finished, TrainError> {
        let model = match self.head.take() {
            Some(input) => self.resulting_head(input)?,
            None => self.last_model()?,
        };
        let recipe = &self.stepper.recipe;
        let pseudo = if recipe.evaluate.pseudo_labels {
            evaluate_pseudo_labels(&self.stepper.state.engine, recipe, &self.stepper.data, self.eval_stop())?
        } else {
            None
        };
        let model = match self.best_of_all()? {
            Some(best) if model.below.is_none() => self.best_model(best)?,
            _ => model,
        };
        self.write(model, pseudo)
    }

    /// The head of a run on frozen features: its own, or one that trained on the labels alone.
    fn resulting_head(&mut self, input: HeadInput) -> Result<ResultingModel, TrainError> {
        let concluded = conclude_head(&self.stepper, &input, self.eval_stop())?;
        self.log.evaluation(self.step, &concluded.output)?;
        Ok(ResultingModel {
            step: self.step,
            weights: concluded.weights,
            evaluation: FinalEvaluation::of(&concluded.output)?,
            heads: concluded.choice,
            below: Some(input.info),
        })
    }

    /// The model of the last step.
    fn last_model(&mut self) -> Result<ResultingModel, TrainError> {
        // Where the best model is the result, this evaluation only decides which one that is.
        let is_result = !keeps_best(self.stepper.recipe.selection);
        let mode = if is_result { EvalMode::Final } else { EvalMode::MetricsOnly };
        let stop = self.stepper.eval_stop(self.step, self.stop, &self.warn);
        let evaluation = evaluate_network(&self.stepper, mode, stop, &mut self.log)?;
        let weights = self.stepper.state.engine.snapshot()?.ema;
        Ok(ResultingModel { step: self.step, weights, evaluation, heads: None, below: None })
    }

    /// The best model so far, if the recipe selects it; rank 0 has it.
    fn best_of_all(&self) -> Result<Option<Best>, TrainError> {
        let processes = &self.stepper.layout.processes;
        let own = self.log.progress.best.as_ref();
        if processes.size() == 1 || !keeps_best(self.stepper.recipe.selection) {
            return Ok(own.cloned());
        }
        let step = (processes.rank() == 0).then(|| Ok::<_, TrainError>(own.map(|best| best.step)));
        let step = broadcast_result(processes, step)?;
        let weights = processes.broadcast_bytes(0, own.map_or(&[][..], |best| &best.weights))?;
        Ok(step.map(|step| Best { step, weights }))
    }

    /// Evaluates the best model in place of the last one, then restores the last one.
    fn best_model(&mut self, best: Best) -> Result<ResultingModel, TrainError> {
        let engine = &mut self.stepper.state.engine;
        let last = engine.snapshot()?;
        engine.restore(&EngineSnapshot {
            live: best.weights.clone(),
            ema: best.weights.clone(),
            momentum: last.momentum.clone(),
            loss_scale: last.loss_scale,
        })?;
        let Stepper { recipe, data, state, .. } = &self.stepper;
        let model = (best.step, EvalModel::Ema);
        let output = evaluate_model(&state.engine, recipe, data, model, EvalMode::Final, self.eval_stop());
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
        Ok(ResultingModel { step, weights, evaluation, heads: None, below: None })
    }

    /// Writes the files of a finished run, then its last event, then the checkpoint that marks it as finished.
    fn write(
        &mut self,
        model: ResultingModel,
        pseudo: Option<PseudoLabelMetrics>,
    ) -> Result<Finished, TrainError> {
        let Stepper { recipe, data, .. } = &self.stepper;
        let FinalEvaluation { fitted, evaluations, held_out, examples } = model.evaluation;
        let thumbnails = thumbnails(&examples, recipe, data, self.eval_stop())?;
        let margins = sample_margins(&self.stepper)?;
        let map = fitted.as_ref().and_then(Fitted::map);
        let finished = Finished { step: self.step, selected: self.selected(), pseudo };
        let result = RunResult {
            step: model.step,
            selection: recipe.selection,
            classes: data.classes.clone(),
            scaling: map.and_then(FittedCalibrator::scaling),
            uncalibrated: fitted.as_ref().and_then(Fitted::nothing),
            evaluations,
            heads: model.heads,
            finished: finished.clone(),
        };
        let result = pretty("result.json", &result)?;
        let mut info = model_info(recipe, data, &model.weights);
        info.calibration = map.cloned();
        info.held_out = held_out;
        info.head = model.below;
        let weights = info
            .embed(&model.weights)
            .map_err(|error| FileError::new("model.safetensors", FileProblem::Format(error.to_string())))?;
        let info = pretty("model.json", &info)?;
        let events = &mut self.log.events;
        let write = || -> Result<Finished, TrainError> {
            events.last(RunFile::Model, &weights)?;
            events.last(RunFile::ModelInfo, &info)?;
            if !margins.is_empty() {
                events.last(RunFile::Margins, &margins_bytes(&margins)?)?;
            }
            if !thumbnails.ids.is_empty() {
                events.last(RunFile::Thumbnails, &thumbnail_bytes(&thumbnails)?)?;
            }
            events.last(RunFile::Result, &result)?;
            events.event(&Event::Finished(finished.clone()))?;
            Ok(finished)
        };
        let own = self.stepper.layout.leads().then(write);
        let finished = broadcast_result(&self.stepper.layout.processes, own)?;
        self.log.progress.finished = Some(finished.clone());
        self.saver.save(self.step, &self.stepper, &mut self.log)?;
        self.log.events.flush()?;
        Ok(finished)
    }

    /// The metrics of the run by each rule of selection.
    fn selected(&self) -> BTreeMap<Selection, Selected> {
        let recipe = &self.stepper.recipe;
        let window = recipe.evaluate.window as usize;
        // Selection on test is optimistic, so the recipe has to request it.
        let rules = [Selection::Last, Selection::Median, Selection::BestValidation, recipe.selection];
        let selected = |rule| Some((rule, select(rule, window, &self.log.progress.history)?));
        rules.into_iter().filter_map(selected).collect()
    }

    /// The signal by which an evaluation learns that the run has to stop.
    fn eval_stop(&self) -> EvalStop<'_> {
        self.stepper.eval_stop(self.step, self.stop, &self.warn)
    }
}

fn pretty(name: &str, what: &impl Serialize) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec_pretty(what)
        .map_err(|error| FileError::new(name, FileProblem::Format(error.to_string())))
}
