//! Evaluations while a run trains, and its end: the last evaluation, the model and its figures.

use std::collections::BTreeMap;

use calmix_engine::engine::EngineSnapshot;
use calmix_run::error::{FileError, FileProblem};

use super::Outcome;
use super::checkpoint_files::Best;
use super::collect_results::broadcast_result;
use super::error::TrainError;
use super::evaluate::{EvalMode, evaluate_model};
use super::train_loop::TrainLoop;
use calmix_run::evaluate::{Scaling, Selection, select};
use calmix_run::events::{EvalModel, Event, Finished};
use calmix_run::result::RunResult;
use calmix_run::run::RunFile;

impl TrainLoop<'_> {
    /// Evaluates the network as it is; the temperature of its average, if one was fitted.
    pub(super) fn evaluate(&mut self, mode: EvalMode) -> Result<Option<Scaling>, TrainError> {
        let recipe = &self.resolved.recipe;
        let models =
            if recipe.evaluate.online { &[EvalModel::Ema, EvalModel::Live][..] } else { &[EvalModel::Ema] };
        let mut scaling = None;
        for &model in models {
            let (engine, step) = (&self.state.engine, self.step);
            let output =
                evaluate_model(engine, &self.layout.processes, recipe, &self.data, (step, model), mode)?;
            for seen in &output.predictions {
                self.events.predictions(seen)?;
            }
            for evaluation in output.evaluations {
                self.events.event(&Event::Evaluation(Box::new(evaluation.clone())))?;
                self.progress.history.push(evaluation);
            }
            if model == EvalModel::Ema {
                scaling = output.scaling;
            }
        }
        let best = select(recipe.selection, recipe.evaluate.window as usize, &self.progress.history);
        let now_best = best.is_some_and(|best| best.at_step == Some(self.step));
        if keeps_best(recipe.selection) && now_best {
            let weights = self.state.engine.snapshot()?.ema;
            self.progress.best = Some(Best { step: self.step, weights });
        }
        Ok(scaling)
    }

    /// The last evaluation, the resulting model and its figures.
    pub(super) fn finish(mut self) -> Result<Outcome, TrainError> {
        let rule = self.resolved.recipe.selection;
        let mode = if keeps_best(rule) { EvalMode::Quick } else { EvalMode::Final };
        let scaling = self.evaluate(mode)?;
        let (step, weights, scaling) = match self.best_of_all()? {
            Some(best) => {
                let scaling = self.evaluate_best(&best)?;
                (best.step, best.weights, scaling)
            }
            None => (self.step, self.state.engine.snapshot()?.ema, scaling),
        };
        let window = self.resolved.recipe.evaluate.window as usize;
        let selected = |rule| Some((rule, select(rule, window, &self.progress.history)?));
        // The best on test flatters, so it has to be asked for.
        let rules = [Selection::Last, Selection::Median, Selection::BestValidation, rule];
        let selected: BTreeMap<_, _> = rules.into_iter().filter_map(selected).collect();
        let finished = Finished { step: self.step, selected };
        let result = RunResult {
            step,
            selection: rule,
            classes: self.data.classes.clone(),
            scaling,
            finished: finished.clone(),
        };
        let result = serde_json::to_vec_pretty(&result)
            .map_err(|error| FileError::new("result.json", FileProblem::Format(error.to_string())))?;
        let mut write = || -> Result<Finished, TrainError> {
            self.events.last(RunFile::Model, &weights)?;
            self.events.last(RunFile::Result, &result)?;
            self.events.event(&Event::Finished(finished.clone()))?;
            Ok(finished.clone())
        };
        let own = self.layout.leads().then(&mut write);
        let finished = broadcast_result(&self.layout.processes, own)?;
        self.progress.finished = Some(finished.clone());
        self.save()?;
        self.events.flush()?;
        Ok(Outcome::Finished(finished))
    }

    /// The best model so far, where it is kept; the first process knows it.
    fn best_of_all(&self) -> Result<Option<Best>, TrainError> {
        let processes = &self.layout.processes;
        if processes.size() == 1 || !keeps_best(self.resolved.recipe.selection) {
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
    fn evaluate_best(&mut self, best: &Best) -> Result<Option<Scaling>, TrainError> {
        let engine = &mut self.state.engine;
        let last = engine.snapshot()?;
        engine.restore(&EngineSnapshot {
            live: best.weights.clone(),
            ema: best.weights.clone(),
            momentum: last.momentum.clone(),
            loss_scale: last.loss_scale,
        })?;
        let recipe = &self.resolved.recipe;
        let processes = &self.layout.processes;
        let output = evaluate_model(
            engine,
            processes,
            recipe,
            &self.data,
            (best.step, EvalModel::Ema),
            EvalMode::Final,
        );
        engine.restore(&last)?;
        let output = output?;
        for seen in &output.predictions {
            self.events.predictions(seen)?;
        }
        for evaluation in output.evaluations {
            self.events.event(&Event::Evaluation(Box::new(evaluation)))?;
        }
        Ok(output.scaling)
    }
}

/// Whether the result is the best model of the run rather than the last.
fn keeps_best(rule: Selection) -> bool {
    matches!(rule, Selection::BestValidation | Selection::BestTest)
}
