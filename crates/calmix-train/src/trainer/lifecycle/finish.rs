//! Evaluations while a run trains, and its end: the last evaluation, the model and its figures.

use std::collections::BTreeMap;

use calmix_engine::engine::EngineSnapshot;
use calmix_run::calibration_map::{CalibrationMap, Fitted};
use calmix_run::error::{FileError, FileProblem};
use calmix_run::evaluate::{Selection, select};
use calmix_run::events::{EvalModel, Event, Finished, Note};
use calmix_run::result::RunResult;
use calmix_run::run::RunFile;
use serde::Serialize;

use super::checkpoint_files::Best;
use super::train_loop::TrainLoop;
use crate::trainer::Outcome;
use crate::trainer::error::TrainError;
use crate::trainer::eval::evaluate::{EvalMode, EvalOutput, evaluate_model, evaluate_pseudo_labels};
use crate::trainer::eval::final_evaluation::FinalEvaluation;
use crate::trainer::eval::head::conclude_head;
use crate::trainer::eval::report_files::{margins_bytes, sample_margins, thumbnail_bytes, thumbnails};
use crate::trainer::ranks::collect_results::broadcast_result;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::step::engine_settings::model_info;

impl TrainLoop<'_> {
    /// Evaluates the network as it is; what was fitted to its average, and its figures.
    ///
    /// # Errors
    /// [`TrainError::Abandoned`] if the run has to stop; then nothing was written, and the state is as it was.
    pub(crate) fn evaluate(&mut self, mode: EvalMode<'_>) -> Result<FinalEvaluation, TrainError> {
        let recipe = &self.stepper.recipe;
        let models =
            if recipe.evaluate.online { &[EvalModel::Ema, EvalModel::Live][..] } else { &[EvalModel::Ema] };
        let (mut judgement, rule, window) =
            (FinalEvaluation::default(), recipe.selection, recipe.evaluate.window as usize);
        let (engine, step, stop) = (&self.stepper.state.engine, self.step, self.eval_stop());
        let evaluate = |&model| {
            Ok((model, evaluate_model(engine, recipe, &self.stepper.data, (step, model), mode, stop)?))
        };
        let outputs = models.iter().map(evaluate).collect::<Result<Vec<_>, TrainError>>()?;
        for (model, output) in outputs {
            self.tell_evaluation(&output)?;
            if model == EvalModel::Ema {
                judgement = FinalEvaluation::of(&output)?;
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
    pub(crate) fn tell_evaluation(&mut self, output: &EvalOutput) -> Result<(), TrainError> {
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
    pub(crate) fn eval_stop(&self) -> EvalStop<'_> {
        let (processes, watch, warn) = (&self.stepper.layout.processes, &self.stepper.watch, &self.warn);
        EvalStop { requested: self.stop, processes, watch, warn, step: self.step }
    }

    /// The last evaluation, the resulting model and its figures; or nothing of it, if the run has to stop before.
    pub(crate) fn finish(mut self) -> Result<Outcome, TrainError> {
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
        let mut head = None;
        if let Some(input) = self.head.take() {
            let concluded = conclude_head(&self.stepper, &input, self.eval_stop())?;
            self.tell_evaluation(&concluded.output)?;
            head = Some((concluded, input));
        }
        let judgement = match &head {
            Some(_) => FinalEvaluation::default(),
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
                let judgement = FinalEvaluation::of(&concluded.output)?;
                (self.step, concluded.weights, judgement, concluded.choice, Some(head.info))
            }
            (None, Some(best)) => {
                let judgement = self.evaluate_best(&best)?;
                (best.step, best.weights, judgement, None, None)
            }
            (None, None) => (self.step, self.stepper.state.engine.snapshot()?.ema, judgement, None, None),
        };
        let FinalEvaluation { fitted, evaluations, held_out, examples } = judgement;
        let thumbnails = thumbnails(&examples, &self.stepper.recipe, &self.stepper.data, self.eval_stop())?;
        let margins = sample_margins(&self.stepper)?;
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
    fn evaluate_best(&mut self, best: &Best) -> Result<FinalEvaluation, TrainError> {
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
        let judgement = FinalEvaluation::of(&output)?;
        for evaluation in output.evaluations {
            self.events.event(&Event::Evaluation(Box::new(evaluation)))?;
        }
        Ok(judgement)
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
