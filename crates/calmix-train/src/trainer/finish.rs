//! Evaluations while a run trains, and its end: the last evaluation, the model and its figures.

use std::collections::BTreeMap;

use calmix_core::calibration::confidence_map::ConfidenceMap;
use calmix_engine::engine::EngineSnapshot;
use calmix_run::calibration_map::{CalibrationMap, Fitted};
use calmix_run::error::{FileError, FileProblem};
use calmix_run::evaluate::{Selection, select};
use calmix_run::events::{EvalModel, EvalSet, Evaluation, Event, Finished, Note};
use calmix_run::examples::ExampleRows;
use calmix_run::held_out::{self, HeldOut};
use calmix_run::model_info::{self, ModelInfo};
use calmix_run::result::RunResult;
use calmix_run::run::RunFile;
use serde::Serialize;

use super::Outcome;
use super::checkpoint_files::Best;
use super::collect_results::broadcast_result;
use super::error::TrainError;
use super::eval_stop::EvalStop;
use super::evaluate::{EvalMode, EvalOutput, evaluate_model, evaluate_pseudo_labels};
use super::report_files::{margins_bytes, thumbnail_bytes, thumbnails};
use super::train_data::TrainData;
use super::train_loop::TrainLoop;
use crate::recipe::Recipe;

impl TrainLoop<'_> {
    /// Evaluates the network as it is; what was fitted to its average, and its figures.
    ///
    /// # Errors
    /// [`TrainError::Abandoned`] if the run has to stop; then nothing was written, and the state is as it was.
    pub(super) fn evaluate(&mut self, mode: EvalMode<'_>) -> Result<Judgement, TrainError> {
        let recipe = &self.stepper.recipe;
        let models =
            if recipe.evaluate.online { &[EvalModel::Ema, EvalModel::Live][..] } else { &[EvalModel::Ema] };
        let (mut judgement, rule, window) =
            (Judgement::default(), recipe.selection, recipe.evaluate.window as usize);
        let (engine, step, stop) = (&self.stepper.state.engine, self.step, self.eval_stop());
        let evaluate = |&model| {
            Ok((model, evaluate_model(engine, recipe, &self.stepper.data, (step, model), mode, stop)?))
        };
        let outputs = models.iter().map(evaluate).collect::<Result<Vec<_>, TrainError>>()?;
        for (model, output) in outputs {
            self.tell_evaluation(&output)?;
            if model == EvalModel::Ema {
                judgement = Judgement::of(&output)?;
            }
        }
        let best = select(rule, window, &self.progress.history);
        let now_best = best.is_some_and(|best| best.at_step == Some(self.step));
        if keeps_best(rule) && now_best {
            let weights = self.stepper.state.engine.snapshot()?.ema;
            self.progress.best = Some(Best { step: self.step, weights });
        }
        Ok(judgement)
    }

    /// Writes the predictions and the figures of an evaluation.
    pub(super) fn tell_evaluation(&mut self, output: &EvalOutput) -> Result<(), TrainError> {
        for seen in &output.predictions {
            self.events.predictions(seen)?;
        }
        self.tell_left_out(output)?;
        for evaluation in &output.evaluations {
            self.events.event(&Event::Evaluation(Box::new(evaluation.clone())))?;
            self.progress.history.push(evaluation.clone().without_lists());
        }
        self.events.remove_old_predictions(self.step, self.stepper.recipe.evaluate.keep_predictions)
    }

    /// Says how many samples the figures are not of, whenever that number changes.
    fn tell_left_out(&mut self, output: &EvalOutput) -> Result<(), TrainError> {
        for seen in &output.evaluations {
            let told = self.left_out.insert(seen.split, seen.skipped).unwrap_or(0);
            if seen.skipped == told {
                continue;
            }
            let (split, all) = (seen.split.name(), seen.samples + seen.skipped);
            let first = output.corrupt.as_deref().unwrap_or_default();
            let text =
                format!("{} of {all} {split} samples are corrupt and left out ({first})", seen.skipped);
            let hint = "repair the dataset and prepare it again for figures of all samples".to_owned();
            self.events.aside(Note { step: seen.step, text, hint })?;
        }
        Ok(())
    }

    /// How an evaluation hears that the run has to stop.
    pub(super) fn eval_stop(&self) -> EvalStop<'_> {
        let (processes, watch, warn) = (&self.stepper.layout.processes, &self.stepper.watch, &self.warn);
        EvalStop { requested: self.stop, processes, watch, warn, step: self.step }
    }

    /// The last evaluation, the resulting model and its figures; or nothing of it, if the run has to stop before.
    pub(super) fn finish(mut self) -> Result<Outcome, TrainError> {
        // The evaluation takes long and may be abandoned or killed. The checkpoint of the end takes the place of this one.
        self.try_save()?;
        match self.conclude() {
            // What was written since the checkpoint is cut or written again.
            Err(TrainError::Abandoned) => Ok(Outcome::Stopped { step: self.saved.unwrap_or(0) }),
            finished => finished.map(Outcome::Finished),
        }
    }

    fn conclude(&mut self) -> Result<Finished, TrainError> {
        let rule = self.stepper.recipe.selection;
        let head = self
            .head
            .take()
            .map(|head| Ok::<_, TrainError>((self.conclude_head(&head)?, head)))
            .transpose()?;
        let judgement = match &head {
            Some(_) => Judgement::default(),
            None if keeps_best(rule) => self.evaluate(EvalMode::FiguresOnly)?,
            None => self.evaluate(EvalMode::Final)?,
        };
        let recipe = &self.stepper.recipe;
        let pseudo = if recipe.evaluate.pseudo_labels {
            evaluate_pseudo_labels(&self.stepper.state.engine, recipe, &self.stepper.data, self.eval_stop())?
        } else {
            None
        };
        let best = self.best_of_all()?;
        let (step, weights, judgement, heads, below) = match (head, best) {
            (Some((concluded, head)), _) => {
                (self.step, concluded.weights, concluded.judgement, concluded.choice, Some(head.info))
            }
            (None, Some(best)) => {
                let judgement = self.evaluate_best(&best)?;
                (best.step, best.weights, judgement, None, None)
            }
            (None, None) => (self.step, self.stepper.state.engine.snapshot()?.ema, judgement, None, None),
        };
        let Judgement { fitted, evaluations, held_out, examples } = judgement;
        let thumbnails = thumbnails(&examples, &self.stepper.recipe, &self.stepper.data, self.eval_stop())?;
        let margins = self.sample_margins()?;
        let map = fitted.as_ref().and_then(Fitted::map);
        let window = self.stepper.recipe.evaluate.window as usize;
        let selected = |rule| Some((rule, select(rule, window, &self.progress.history)?));
        // The best on test flatters, so it has to be asked for.
        let rules = [Selection::Last, Selection::Median, Selection::BestValidation, rule];
        let selected: BTreeMap<_, _> = rules.into_iter().filter_map(selected).collect();
        let finished = Finished { step: self.step, selected, pseudo };
        let result = RunResult {
            step,
            selection: rule,
            classes: self.stepper.data.classes.clone(),
            scaling: map.and_then(CalibrationMap::scaling),
            uncalibrated: fitted.as_ref().and_then(Fitted::nothing),
            evaluations,
            heads,
            finished: finished.clone(),
        };
        let result = pretty("result.json", &result)?;
        let mut info = model_info(&self.stepper.recipe, &self.stepper.data, &weights);
        (info.calibration, info.held_out, info.head) = (map.cloned(), held_out, below);
        let weights = info
            .embed(&weights)
            .map_err(|error| FileError::new("model.safetensors", FileProblem::Format(error.to_string())))?;
        let info = pretty("model.json", &info)?;
        let mut write = || -> Result<Finished, TrainError> {
            self.events.last(RunFile::Model, &weights)?;
            self.events.last(RunFile::ModelInfo, &info)?;
            if !margins.is_empty() {
                self.events.last(RunFile::Margins, &margins_bytes(&margins)?)?;
            }
            if !thumbnails.ids.is_empty() {
                self.events.last(RunFile::Thumbnails, &thumbnail_bytes(&thumbnails)?)?;
            }
            self.events.last(RunFile::Result, &result)?;
            self.events.event(&Event::Finished(finished.clone()))?;
            Ok(finished.clone())
        };
        let own = self.stepper.layout.leads().then(&mut write);
        let finished = broadcast_result(&self.stepper.layout.processes, own)?;
        self.progress.finished = Some(finished.clone());
        self.save()?;
        self.events.flush()?;
        Ok(finished)
    }

    /// The best model so far, where it is kept; the first process knows it.
    fn best_of_all(&self) -> Result<Option<Best>, TrainError> {
        let processes = &self.stepper.layout.processes;
        if processes.size() == 1 || !keeps_best(self.stepper.recipe.selection) {
            return Ok(self.progress.best.clone());
        }
        let step = broadcast_result(
            processes,
            processes
                .rank()
                .eq(&0)
                .then(|| Ok::<_, TrainError>(self.progress.best.as_ref().map(|best| best.step))),
        )?;
        let own = self.progress.best.as_ref().map_or(&[][..], |best| &best.weights);
        let weights = processes.broadcast_bytes(0, own)?;
        Ok(step.map(|step| Best { step, weights }))
    }

    /// Evaluates the best model in the place of the last one, which then comes back.
    fn evaluate_best(&mut self, best: &Best) -> Result<Judgement, TrainError> {
        let engine = &mut self.stepper.state.engine;
        let last = engine.snapshot()?;
        engine.restore(&EngineSnapshot {
            live: best.weights.clone(),
            ema: best.weights.clone(),
            momentum: last.momentum.clone(),
            loss_scale: last.loss_scale,
        })?;
        let (engine, model) = (&self.stepper.state.engine, (best.step, EvalModel::Ema));
        let (recipe, mode) = (&self.stepper.recipe, EvalMode::Final);
        let output = evaluate_model(engine, recipe, &self.stepper.data, model, mode, self.eval_stop());
        self.stepper.state.engine.restore(&last)?;
        let output = output?;
        for seen in &output.predictions {
            self.events.predictions(seen)?;
        }
        let judgement = Judgement::of(&output)?;
        for evaluation in output.evaluations {
            self.events.event(&Event::Evaluation(Box::new(evaluation)))?;
        }
        Ok(judgement)
    }
}

/// What is known of a model at its last evaluation.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    fitted: Option<Fitted>,
    evaluations: Vec<Evaluation>,
    /// What it said about labels that were held out, if any were.
    held_out: Option<HeldOut>,
    /// Samples that are worth looking at, on test where there is one.
    examples: Vec<u64>,
}

impl Judgement {
    pub(super) fn of(output: &EvalOutput) -> Result<Self, TrainError> {
        let evaluations = output.evaluations.iter().cloned().map(Evaluation::without_lists).collect();
        let fitted = output.fitted.clone();
        let map = fitted.as_ref().and_then(Fitted::map);
        let of = |split| output.predictions.iter().find(|seen| seen.split == split);
        let fitted_on = map.and_then(|map| map.fitted_on.split()).filter(|&split| split != EvalSet::Labelled);
        let held_out = match (fitted_on.and_then(of).zip(map), of(EvalSet::Validation)) {
            // These labels fitted the calibrator: each is scored by a fit without it.
            (Some((seen, map)), _) => Some(held_out::cross_fitted(seen, map)?),
            (None, Some(seen)) if fitted.is_some() => {
                let calibrator = map.map_or(&ConfidenceMap::IDENTITY, |map| &map.map);
                Some(held_out::of_others(seen, calibrator)?)
            }
            (None, _) => None,
        };
        let judged = output.predictions.iter().filter(|seen| seen.split != EvalSet::Labelled);
        let examples = match judged.max_by_key(|seen| seen.split.precedence()).filter(|_| fitted.is_some()) {
            Some(seen) => ExampleRows::of(seen)?.all().map(|row| seen.ids[row]).collect(),
            None => Vec::new(),
        };
        Ok(Self { fitted, evaluations, held_out, examples })
    }
}

/// What the weights of a run are.
pub(super) fn model_info(recipe: &Recipe, data: &TrainData, weights: &[u8]) -> ModelInfo {
    ModelInfo {
        format: model_info::FORMAT,
        blake3: ModelInfo::hash(weights),
        network: recipe.network.name.to_string(),
        block: recipe.network.block.to_string(),
        stride: recipe.network.stride.to_string(),
        classes: data.classes.clone(),
        norm_eps: Some(recipe.network.norm_eps).filter(|&eps| eps > 0.0),
        size: recipe.augment.size,
        resize: recipe.augment.resolve().evaluation.resize,
        filter: recipe.augment.filter.to_string(),
        shrink: data.shrunk,
        mean: recipe.dataset.mean,
        std: recipe.dataset.std,
        head: None,
        calibration: None,
        held_out: None,
        calibration_blake3: String::new(),
    }
}

fn pretty(name: &str, what: &impl Serialize) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec_pretty(what)
        .map_err(|error| FileError::new(name, FileProblem::Format(error.to_string())))
}

/// Whether the result is the best model of the run rather than the last.
fn keeps_best(rule: Selection) -> bool {
    matches!(rule, Selection::BestValidation | Selection::BestTest)
}
