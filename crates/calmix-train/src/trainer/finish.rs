//! Evaluations while a run trains, and its end: the last evaluation, the model and its figures.

use std::collections::BTreeMap;

use calmix_data::error::{DataError, Problem};
use calmix_engine::engine::Snapshot as EngineSnapshot;

use super::checkpoint_files::Best;
use super::error::TrainError;
use super::judge::{Care, judge};
use super::together::from_first;
use super::train_loop::TrainLoop;
use super::{Outcome, RunResult};
use crate::evaluate::{Scaling, Selection, select};
use crate::events::{Event, Finished, Model};
use crate::run::RunFile;

impl TrainLoop<'_> {
    /// Judges the network as it is; the temperature of its average, if one was fitted.
    pub(super) fn evaluate(&mut self, care: Care) -> Result<Option<Scaling>, TrainError> {
        let recipe = &self.resolved.recipe;
        let models = if recipe.evaluate.online { &[Model::Ema, Model::Live][..] } else { &[Model::Ema] };
        let mut scaling = None;
        for &model in models {
            let (engine, step) = (&self.state.engine, self.step);
            let verdict = judge(engine, &self.layout.processes, recipe, &self.material, (step, model), care)?;
            for seen in &verdict.predictions {
                self.record.predictions(seen)?;
            }
            for evaluation in verdict.evaluations {
                self.record.event(&Event::Evaluation(Box::new(evaluation.clone())))?;
                self.progress.history.push(evaluation);
            }
            if model == Model::Ema {
                scaling = verdict.scaling;
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
        let care = if keeps_best(rule) { Care::Passing } else { Care::Final };
        let scaling = self.evaluate(care)?;
        let (step, weights, scaling) = match self.best_of_all()? {
            Some(best) => {
                let scaling = self.judge_best(&best)?;
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
            classes: self.material.classes.clone(),
            scaling,
            finished: finished.clone(),
        };
        let result = serde_json::to_vec_pretty(&result)
            .map_err(|error| DataError::new("result.json", Problem::Format(error.to_string())))?;
        let mut write = || -> Result<Finished, TrainError> {
            self.record.last(RunFile::Model, &weights)?;
            self.record.last(RunFile::Result, &result)?;
            self.record.event(&Event::Finished(finished.clone()))?;
            Ok(finished.clone())
        };
        let own = self.layout.leads().then(&mut write);
        let finished = from_first(&self.layout.processes, own)?;
        self.progress.finished = Some(finished.clone());
        self.save()?;
        self.record.flush()?;
        Ok(Outcome::Finished(finished))
    }

    /// The best model so far, where it is kept; the first process knows it.
    fn best_of_all(&self) -> Result<Option<Best>, TrainError> {
        let processes = &self.layout.processes;
        if processes.size() == 1 || !keeps_best(self.resolved.recipe.selection) {
            return Ok(self.progress.best.clone());
        }
        let step = from_first(
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

    /// Judges the best model in the place of the last one, which then comes back.
    fn judge_best(&mut self, best: &Best) -> Result<Option<Scaling>, TrainError> {
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
        let verdict = judge(engine, processes, recipe, &self.material, (best.step, Model::Ema), Care::Final);
        engine.restore(&last)?;
        let verdict = verdict?;
        for seen in &verdict.predictions {
            self.record.predictions(seen)?;
        }
        for evaluation in verdict.evaluations {
            self.record.event(&Event::Evaluation(Box::new(evaluation)))?;
        }
        Ok(verdict.scaling)
    }
}

/// Whether the result is the best model of the run rather than the last.
fn keeps_best(rule: Selection) -> bool {
    matches!(rule, Selection::BestValidation | Selection::BestTest)
}
