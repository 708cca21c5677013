//! A run that trains a head on vectors: fit, evaluation, files.
//!
//! There are no checkpoints: heads are trained within seconds, and a run that was killed trains them again, to the same bytes.
//! The features of images, which take long, are in a cache. The journal starts again every time, and `result.json` is written
//! last: a run that has it is finished.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use calmix_core::matrix::Matrix;
use calmix_data::error::DataError;
use calmix_data::loader::SkippedSample;
use calmix_head::fit::{Candidate, FittedHead, HeadFit, fit};
use calmix_head::neighbours;
use calmix_head::progress::FitProgress;
use calmix_head::samples::{HeadSamples, TrainingRows, ValidationSamples};
use calmix_head::training::StepLog;
use calmix_io::text::counted;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_lifecycle::evaluation::EvaluationLog;
use calmix_lifecycle::evaluation::FinalEvaluation;
use calmix_lifecycle::evaluation::WorkCount;
use calmix_lifecycle::run_files::{ResultFiles, ResultingModel, selected};
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::predictions::{EvalSet, Predictions};
use calmix_metrics::shift::{Reference, ReferenceFeatures};
use calmix_recipe::Recipe;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::{Event, Finished, Loss, Note, Starvation, Step};
use calmix_run::result::{HeadCandidate, HeadChoice};
use calmix_run::run::RunFile;
use calmix_run::sink::{Work, WorkProgress};
use calmix_run::tensor_files::examples::Thumbnails;
use calmix_run::tensor_files::head_files::{folded_head_bytes, head_bytes};

use crate::error::HeadsError;
use crate::evaluate_head::HeadEvaluator;
use crate::head_settings::head_settings;
use crate::label_copies::LabelCopies;
use crate::label_weights::{label_weights, weights_note};
use crate::pool_comparison::ComparedRows;
use crate::reference_features::reference_features;

/// Time between two progress reports of a fit.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

pub struct HeadRun<'a> {
    pub evaluator: HeadEvaluator<'a>,
    /// The journal, from its beginning, and the sinks.
    pub events: EventWriter<'a>,
    /// Makes thumbnails of samples for the report; none if the samples are not images.
    pub thumbnails: &'a dyn Fn(&[u64]) -> Result<Thumbnails, DataError>,
    pub copies: LabelCopies,
}

impl HeadRun<'_> {
    /// Trains the heads from the beginning, evaluates them and writes the result.
    ///
    /// # Errors
    /// [`HeadsError::Stopped`] if the run has to stop; the errors of the fit and of writing files.
    pub fn run(mut self) -> Result<Finished, HeadsError> {
        let (fitted, reference) = self.fit()?;
        self.log_steps(&fitted)?;
        let outputs = self.evaluate(&fitted)?;
        let choice = head_choice(&fitted, &outputs);
        let (Some(kept), Some(output)) = (fitted.head(), outputs.get(fitted.selected)) else {
            return Err(HeadsError::unsupported("no head was trained".to_owned()));
        };
        // Margins and pseudo-labels are those of the configured head, if it was trained.
        let configured = fitted.configured().unwrap_or(kept);
        let HeadEvaluator { recipe, samples, vectors, .. } = self.evaluator;
        let step = recipe.steps();
        let mut history = Vec::new();
        EvaluationLog::new(recipe).write(step, output, &mut history, &mut self.events)?;
        let mut pseudo = None;
        if recipe.evaluate.pseudo_labels {
            let shown = RefCell::new(&mut self.events);
            let on_progress = |progress: &WorkProgress| shown.borrow_mut().work(progress);
            pseudo = self.evaluator.pseudo_labels(&configured.trained.weights, &on_progress)?;
        }
        let mut folded = None;
        if recipe.has_vectors() {
            let temperature = kept.calibrator.calibrator().and_then(FittedCalibrator::temperature);
            let head = &kept.trained.ema;
            folded = folded_head_bytes(&vectors.projection, head, temperature, &samples.classes)?;
        }
        let weights = head_bytes(&kept.trained.ema)?;
        if let Some(note) = held_samples_note(kept, weights.len()) {
            self.events.event(&Event::Note(note))?;
        }
        let evaluation = FinalEvaluation::of(output)?;
        let mut pool = None;
        let mut features = None;
        if let Some((reference, rows)) = reference {
            let labels = evaluation.label_logits.clone().unwrap_or_default();
            let reference = Reference { labels, features: Some(reference) };
            pool = rows.compare(&reference)?;
            features = reference.features;
        }
        let model = ResultingModel {
            step,
            weights,
            evaluation,
            heads: choice,
            head: Some(vectors.info.clone().of_shape(kept.trained.ema.shape())),
            reference: features,
            pool,
            draws: samples.label_draws()?,
        };
        let thumbnails = match (self.thumbnails)(&model.evaluation.examples) {
            Err(DataError::Interrupted) => return Err(HeadsError::Stopped),
            thumbnails => thumbnails?,
        };
        let selected = selected(recipe, &history);
        let finished = Finished { step, selected, pseudo };
        let files =
            ResultFiles::new(recipe, samples, model, (&configured.trained.margins, &thumbnails), &finished)?;
        let events = &mut self.events;
        files.write_model(events)?;
        if let Some(folded) = folded {
            events.write_final_file(RunFile::FoldedHead, &folded)?;
        }
        events.event(&Event::Finished(finished.clone()))?;
        // The journal must be on the disk before `result.json`, which marks the run as finished.
        events.mark()?;
        files.write_result(events)?;
        events.flush()?;
        Ok(finished)
    }

    /// Trains all heads on another thread, while this one reports the progress. Also returns what new samples are compared with.
    fn fit(&mut self) -> Result<(HeadFit, Option<(ReferenceFeatures, ComparedRows)>), HeadsError> {
        let HeadEvaluator { recipe, samples: data, vectors, stop } = self.evaluator;
        let corrupt = recipe.loader.corrupt();
        let (rows, skipped) = vectors.training_rows(data, corrupt)?;
        let ids = &vectors.training.ids;
        let labels = ids.iter().map(|&id| data.class_of(id)).collect::<Result<Vec<_>, _>>()?;
        let mut weights = Vec::new();
        if data.dataset.has_weights() {
            weights = ids.iter().map(|&id| data.dataset.weight(id)).collect::<Result<Vec<_>, _>>()?;
        }
        let mut weights = label_weights(&labels, &weights, recipe.labels.class_weight);
        let notes = [
            skipped_note(&skipped, vectors.training.ids.len()),
            mixup_off_note(recipe, rows.labelled.len(), data.classes.len()),
            self.copies.note(),
            weights_note(&weights, &labels, recipe.has_one_vector()),
            no_neighbours_note(recipe, &rows, data.classes.len()),
        ];
        for note in notes.into_iter().flatten() {
            self.events.event(&Event::Note(note))?;
        }
        if !recipe.has_one_vector() {
            weights.clear();
        }
        let mut groups = data.dataset.group_numbers(ids)?;
        // Groups of the user take precedence over near-duplicates.
        if !data.dataset.has_groups() {
            groups = self.copies.groups_of(ids);
        }
        let mut chosen = Vec::new();
        for &row in &rows.labelled {
            if !data.dataset.drawn(ids[row])?.may_be_held_out() {
                chosen.push(row);
            }
        }
        let samples = HeadSamples {
            ids,
            vectors: vectors.training.rows()?,
            weak: recipe.network.weak_views as u8,
            strong: recipe.network.strong_views as u8,
            labels: &labels,
            classes: &data.classes,
            groups: &groups,
            chosen: &chosen,
            weights: &weights,
        };
        let held_out = vectors.of_split(data, EvalSet::Validation, corrupt)?;
        let held_out_groups = data.dataset.group_numbers(&held_out.ids)?;
        let width = samples.width();
        let validation = ValidationSamples {
            ids: &held_out.ids,
            vectors: Matrix::new(&held_out.vectors, held_out.ids.len(), width)?,
            labels: &held_out.labels,
            groups: &held_out_groups,
        };
        let settings = head_settings(recipe);
        let threads = recipe.train.threads as usize;
        let progress = FitProgress::new(stop);
        let start = Instant::now();
        let this_thread = thread::current();
        let fitted = thread::scope(|scope| {
            let fit_thread = scope.spawn(|| {
                let fitted = fit(samples, &rows, Some(validation), &settings, threads, &progress);
                // End the wait immediately: a fit may take less than the interval between two reports.
                this_thread.unpark();
                fitted
            });
            let mut trained = None;
            while !fit_thread.is_finished() {
                thread::park_timeout(PROGRESS_INTERVAL);
                self.events.work(&fit_progress(recipe, &progress, start.elapsed(), &mut trained));
            }
            fit_thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let fitted = fitted?;
        let mut reference = None;
        if let Some(kept) = fitted.head() {
            let ids = &data.needed().reference;
            if let Some(features) = reference_features(&samples, &rows, ids, kept, &vectors.projection, stop)?
            {
                let compared = ComparedRows::collect(&samples, &held_out, kept, ids, &features)?;
                reference = Some((features, compared));
            }
        }
        Ok((fitted, reference))
    }

    /// Writes the training log of the configured head.
    fn log_steps(&mut self, fitted: &HeadFit) -> Result<(), HeadsError> {
        let Some(configured) = fitted.configured() else { return Ok(()) };
        let mut starvation = Starvation::default();
        for entry in &configured.trained.log {
            let step = step_event(entry, self.evaluator.recipe);
            let note = starvation.update(&step);
            self.events.event(&Event::Step(Box::new(step)))?;
            if let Some(note) = note {
                self.events.event(&Event::Note(note))?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, fitted: &HeadFit) -> Result<Vec<EvalOutput>, HeadsError> {
        let total = self.resamples(fitted);
        let shown = RefCell::new(&mut self.events);
        let on_progress = |progress: &WorkProgress| shown.borrow_mut().work(progress);
        let mut count = WorkCount::begin(&on_progress, Work::Intervals, total);
        let mut outputs = Vec::new();
        for head in &fitted.heads {
            let out_of_fold = out_of_fold(head);
            let step = self.evaluator.recipe.steps();
            let average = &head.trained.ema;
            let mut output =
                self.evaluator.evaluate(step, average, &head.calibrator, out_of_fold, &mut count)?;
            output.predictions.extend(Some(&head.chosen).filter(|chosen| !chosen.ids.is_empty()).cloned());
            outputs.push(EvalOutput { unseen: head.unseen.clone(), ..output });
        }
        Ok(outputs)
    }

    /// Counts the bootstrap resamples of all evaluations: of each head and split, before and after calibration.
    fn resamples(&self, fitted: &HeadFit) -> u64 {
        let HeadEvaluator { recipe, samples, .. } = self.evaluator;
        let splits = [EvalSet::Validation, EvalSet::Test].into_iter();
        let evaluated = splits.filter(|&split| !samples.of_split(split).is_empty()).count() as u64;
        let mut evaluations = 0;
        for head in &fitted.heads {
            let splits = evaluated + u64::from(out_of_fold(head).is_some());
            evaluations += splits * if head.calibrator.calibrator().is_some() { 2 } else { 1 };
        }
        evaluations * u64::from(recipe.evaluate.bootstrap)
    }
}

/// Returns the progress of a fit after `elapsed`. The heads are trained first; from `trained` on they are calibrated, which has
/// no count.
fn fit_progress(
    recipe: &Recipe,
    progress: &FitProgress<'_>,
    elapsed: Duration,
    trained: &mut Option<Duration>,
) -> WorkProgress {
    let done = progress.steps();
    let total = progress.total();
    let seconds = elapsed.as_secs_f64();
    if done >= total && total > 0 {
        let seconds = elapsed.saturating_sub(*trained.get_or_insert(elapsed)).as_secs_f64();
        return WorkProgress { work: Work::Calibrators, done: 0, total: 0, seconds };
    }
    // Without steps, each head is one unit of work.
    let work = if recipe.steps() == 0 { Work::Heads } else { Work::HeadSteps };
    WorkProgress { work, done, total, seconds }
}

/// Describes the heads that were compared, if there is more than one.
fn head_choice(fitted: &HeadFit, outputs: &[EvalOutput]) -> Option<HeadChoice> {
    let chosen_on = fitted.heads.first()?.predictions.split;
    let mut candidates = Vec::new();
    for (n, (head, output)) in fitted.heads.iter().zip(outputs).enumerate() {
        candidates.push(HeadCandidate {
            name: head.candidate.into(),
            kept: n == fitted.selected,
            nll: head.mean_nll(),
            temperature: temperature(&head.calibrator),
            evaluations: output.evaluations.iter().cloned().map(Evaluation::without_lists).collect(),
        });
    }
    let HeadFit { nll_difference, ref learning_curve, .. } = *fitted;
    let learning_curve = learning_curve.clone();
    (candidates.len() > 1).then_some(HeadChoice { chosen_on, nll_difference, learning_curve, candidates })
}

fn temperature(calibrator: &Fitted) -> Option<f64> {
    calibrator.calibrator().and_then(FittedCalibrator::temperature).map(Temperature::value)
}

fn step_event(entry: &StepLog, recipe: &Recipe) -> Step {
    let has_unlabelled = recipe.unlabelled() > 0;
    let mixes = Some(entry.mixtures as u64).filter(|&mixes| mixes > 0);
    let terms = recipe.method.loss_terms();
    let loss = Loss::of(entry.total, terms.iter().zip(&entry.losses), has_unlabelled, mixes.is_some());
    Step {
        learning_rate: entry.rate,
        gradient_norm: Some(entry.gradient_norm as f32),
        utilisation: entry.utilisation.filter(|_| recipe.method.base.has_unlabelled_loss()),
        impurity: entry.pseudo.impurity(),
        impurity_of: entry.pseudo.impurity_of(),
        margin_auroc: entry.pseudo.margin_auroc(),
        pseudo: entry.pseudo.metrics(),
        margin: entry.margins,
        mixes,
        ..Step::new(entry.step + 1, loss)
    }
}

/// Returns the out-of-fold predictions of the labels, if there are any.
fn out_of_fold(head: &FittedHead) -> Option<&Predictions> {
    let predictions = &head.predictions;
    (predictions.split == EvalSet::OutOfFold && !predictions.ids.is_empty()).then_some(predictions)
}

/// Notes that mixing is off because there are too many labels.
fn mixup_off_note(recipe: &Recipe, labels: usize, classes: usize) -> Option<Note> {
    let mixup = recipe.method.mixup().filter(|_| !recipe.has_one_vector())?;
    let max = mixup.max_labels_per_class;
    let text = format!(
        "no mixtures: {labels} labels of {classes} classes are more than method.mixup.max_labels_per_class = {max}"
    );
    let hint =
        "with many labels a temperature alone is as good or better; to mix all the same, set the key to 0"
            .to_owned();
    (!mixup.applies_to(labels, classes)).then_some(Note { step: 0, text, hint })
}

/// Notes that there are too many samples for heads on neighbours.
fn no_neighbours_note(recipe: &Recipe, rows: &TrainingRows, classes: usize) -> Option<Note> {
    let samples = rows.labelled.iter().chain(&rows.unlabelled).collect::<BTreeSet<_>>().len();
    let is_wanted = recipe.network.neighbours && recipe.has_one_vector() && !rows.unlabelled.is_empty();
    if !is_wanted || neighbours::fits(samples, classes) {
        return None;
    }
    let text = format!(
        "no heads on neighbours: {samples} samples of {classes} classes are too many (up to {} samples)",
        neighbours::MAX_ROWS
    );
    let hint =
        "train on fewer unlabelled samples (labels.unlabelled_count), or set network.neighbours = false";
    Some(Note { step: 0, text, hint: hint.to_owned() })
}

/// Notes that the model holds vectors of samples, and how large it is, if it is a head on neighbours.
fn held_samples_note(kept: &FittedHead, bytes: usize) -> Option<Note> {
    if !matches!(kept.candidate, Candidate::Neighbours | Candidate::LrNeighbours) {
        return None;
    }
    let text = format!(
        "the model is a head on neighbours: model.safetensors holds vectors of training samples ({} kB)",
        bytes.div_ceil(1_000)
    );
    let hint = "network.neighbours = false leaves such heads out; the model is then linear".to_owned();
    Some(Note { step: 0, text, hint })
}

/// Returns the warning about samples without features, if any.
fn skipped_note(skipped: &[SkippedSample], used: usize) -> Option<Note> {
    let first = skipped.first()?;
    let all = used + skipped.len();
    Some(Note {
        step: 0,
        text: format!(
            "{} of {} cannot be trained on and {} left out (sample {}: {})",
            skipped.len(),
            counted(all as u64, "sample"),
            if skipped.len() == 1 { "is" } else { "are" },
            first.id,
            first.problem
        ),
        hint: "repair the dataset; `calmix prepare` shows how many samples are corrupt".to_owned(),
    })
}
