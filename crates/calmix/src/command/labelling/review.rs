//! `calmix review`: chooses samples to label or to check, and writes the files for the answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use calmix_data::dataset::Dataset;
use calmix_formats::labels::drawn::Drawn;
use calmix_head::typical_samples::typical_rows;
use calmix_heads::pool_vectors::{PoolWork, pool_logits, pool_vectors, vectors_of_recipe};
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;
use calmix_lifecycle::changes::RunInputs;
use calmix_lifecycle::prepared_dataset::{is_stale, open_samples};
use calmix_lifecycle::run_samples::RunSamples;
use calmix_lifecycle::start::Draft;
use calmix_recipe::device::Device;
use calmix_recipe::{Data, HEAD_RECIPE, Layers, Recipe, Resolved, VECTORS_RECIPE};
use calmix_run::pretrained::weights_folder::WeightsFolder;
use calmix_run::read::{self, inspect};
use calmix_run::run::Paths;
use calmix_run::sink::{Sink, WorkProgress};
use serde_json::json;

use super::review_files::{CSV, ReviewFiles};
use super::review_vectors::{FIRST_LABELS, LIVE_DIMENSIONS, LIVE_ROWS, LiveVectors, room_for_unlabelled};
use crate::args::labelling::review::{ChooseRule, ReviewArgs};
use crate::args::options::data::{absolute, existing_dataset, is_vector_file};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::shell_quoted;
use crate::output::preparation::{NoticePrinter, start_context, weights_hint};
use crate::process::stop::Stop;
use crate::review::{
    Pool, Reason, ReviewRow, RowPlan, conflicting_copies, held_out_predictions, least_certain,
};
use crate::terminal::progress::ProgressSink;
use crate::terminal::{clear_line, print, print_json, warn};

/// Rows of a review unless the user says how many.
const ROWS: u32 = 50;
/// The prefix of the scratch folder for the table of the samples.
const SCRATCH_PREFIX: &str = ".calmix-review-";

/// What is reviewed.
struct Subject {
    dataset: Arc<Dataset>,
    data: Data,
    /// The finished run; `None` if there is no model yet.
    run: Option<PathBuf>,
    /// The recipe of the run, or the one that a run would have; `None` if a run would train a whole network, which has no features
    /// beforehand.
    draft: Option<RecipeSoFar>,
    /// Holds the table of the samples.
    _scratch: Option<ScratchFolder>,
}

enum RecipeSoFar {
    /// On images, the number of samples still decides the backbone.
    Images(Box<Draft>),
    Vectors(Box<Resolved>),
    OfRun(Box<Recipe>),
}

pub(crate) fn run(args: &ReviewArgs) -> Result<Exit> {
    if !(0.0..=1.0).contains(&args.random) {
        let message = format!("--random is {}, expected a share from 0 to 1", args.random);
        return Err(CliError::invalid(message).hint("--random 0.3").into());
    }
    let csv = args.out.join(CSV);
    if csv.exists() && !args.force {
        let message = format!("{} exists and may have answers", shown(csv.display()));
        let hint = format!("calmix label DATA {}; or --force replaces it", shell_quoted(&csv));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let stop = Stop::listen()?;
    match choose_and_write(args, &stop) {
        // Nothing is lost: the cache keeps the features, and no file was written.
        Err(_) if stop.flag().load(Ordering::Relaxed) => {
            clear_line();
            Ok(stop.exit())
        }
        outcome => outcome,
    }
}

fn choose_and_write(args: &ReviewArgs, stop: &Stop) -> Result<Exit> {
    let subject = Subject::open(args, stop)?;
    let pool = Pool::of(&subject.dataset, &subject.data)?;
    let order = pool.order(args.seed);
    let count = args.count.unwrap_or(if args.live { LIVE_ROWS } else { ROWS });
    let plan = RowPlan { pool: &pool, order: &order, count: count as usize, random_share: args.random };
    let (chosen, live) = if subject.run.is_some() {
        (subject.rows_for_model(args, &plan, stop.flag())?, subject.live_vectors(args, &plan, stop.flag())?)
    } else {
        subject.first_labels(args, &plan, stop.flag())?
    };
    let rows = plan.rows(&chosen);
    if rows.is_empty() {
        let message =
            format!("{}: every sample has a label, and none looks wrong", shown(&subject.data.path));
        print(&(message + "\n"))?;
        return Ok(Exit::Done);
    }
    let counts = plan.counts(&rows);
    let files =
        ReviewFiles { args, dataset: &subject.dataset, data: &subject.data, run: subject.run.as_deref() };
    files.write(&pool, &rows, live.as_ref())?;
    if !args.json {
        print(&files.summary(counts))?;
        return Ok(Exit::Done);
    }
    let mut document = files.json();
    document["rows"] = json!({
        "first": counts.first, "check": counts.check, "copies": counts.copies,
        "random": counts.random, "margin": counts.margin,
    });
    document["now_random"] = json!(counts.now_random);
    document["skipped"] = json!(counts.skipped);
    print_json(&document)?;
    Ok(Exit::Done)
}

impl Subject {
    fn open(args: &ReviewArgs, stop: &Stop) -> Result<Self> {
        let path = existing_dataset(&args.data)?;
        if path.is_dir() && read::has_begun(path) {
            return Self::of_run(path);
        }
        let mut printer = NoticePrinter::new(args.quiet, "sample");
        let mut context = start_context(&mut printer, stop);
        let scratch = ScratchFolder::new(&existing_folder_of(&args.out)?, SCRATCH_PREFIX)?;
        let is_vectors = is_vector_file(path) || args.labels.is_some() || args.vector_column.is_some();
        let mut layers = args.settings.iter().fold(Layers::new(), |layers, setting| layers.set(setting));
        layers = args.reading.settings().iter().fold(layers, |layers, setting| layers.set(setting));
        layers = layers.set_to("dataset.path", absolute(path)?);
        if is_vectors {
            layers = layers.recipe(VECTORS_RECIPE).set("dataset.source=vectors");
            if let Some(labels) = args.labels.as_deref().filter(|labels| labels.exists()) {
                layers = layers.set_to("dataset.labels", absolute(labels)?);
            }
            if let Some(column) = &args.vector_column {
                layers = layers.set_to("dataset.vector_column", column.clone());
            }
            let resolved = layers.resolve()?;
            let data = resolved.recipe.dataset.clone();
            let dataset = Arc::new(open_samples(&data, scratch.path(), &mut context)?);
            let draft = Some(RecipeSoFar::Vectors(Box::new(resolved)));
            return Ok(Self { dataset, data, run: None, draft, _scratch: Some(scratch) });
        }
        let has_weights = WeightsFolder::of_user().names().is_ok_and(|names| !names.is_empty());
        if has_weights {
            layers = layers.recipe(HEAD_RECIPE);
        }
        let draft = Draft::new(layers, || Device::Cpu)?;
        let data = draft.resolved.recipe.dataset.clone();
        let dataset = Arc::new(open_samples(&data, scratch.path(), &mut context)?);
        let draft = draft.resolved.recipe.has_head().then(|| RecipeSoFar::Images(Box::new(draft)));
        Ok(Self { dataset, data, run: None, draft, _scratch: Some(scratch) })
    }

    fn of_run(run: &Path) -> Result<Self> {
        let recipe = inspect::recipe(run)?.recipe;
        if read::result(run)?.is_none() {
            let message = format!(
                "{} has not finished, so it has no predictions to check labels by",
                shown(run.display())
            );
            return Err(CliError::invalid(message)
                .hint(format!("calmix resume {}", shell_quoted(run)))
                .into());
        }
        let paths = Paths::new(run);
        let samples = RunSamples::open(&recipe, &paths, Some(&RunInputs::of(run)?))?;
        let data = recipe.dataset.clone();
        if is_stale(&recipe, &paths, &samples.dataset)? {
            let message =
                format!("{}: the labels or the files have changed since this run", shown(&data.path));
            let option = if recipe.has_vectors() { "--features" } else { "--data" };
            let hint = format!(
                "calmix train {option} {}, then review the new run",
                shell_quoted(Path::new(&data.path))
            );
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let dataset = Arc::clone(&samples.dataset);
        let draft = recipe.has_head().then(|| RecipeSoFar::OfRun(Box::new(recipe)));
        Ok(Self { dataset, data, run: Some(run.to_owned()), draft, _scratch: None })
    }

    /// Chooses the most typical samples of the pool; behind them, in a page that learns, those that its model will order.
    fn first_labels(
        &self,
        args: &ReviewArgs,
        plan: &RowPlan<'_>,
        stop: &AtomicBool,
    ) -> Result<(Vec<ReviewRow>, Option<LiveVectors>)> {
        let pool = plan.pool;
        let mut recipe = match &self.draft {
            Some(RecipeSoFar::Images(draft)) => {
                let limit = draft.resolved.recipe.labels.unlabelled_count;
                let labelled = pool.samples.iter().filter(|sample| sample.label.is_some()).count();
                let all = pool.samples.len() as u64;
                // As many views as a run will have on these samples and the new labels, so that both choose the same backbone.
                let views = if limit == 0 || all <= limit {
                    all
                } else {
                    limit + labelled as u64 + plan.count as u64
                };
                draft.complete_for_pool(views)?
            }
            Some(RecipeSoFar::Vectors(resolved)) => (**resolved).clone(),
            Some(RecipeSoFar::OfRun(_)) | None if args.live => {
                let message = "--live needs features, and without pretrained weights images have none";
                return Err(CliError::invalid(message).hint(weights_hint()).into());
            }
            Some(RecipeSoFar::OfRun(_)) | None => {
                warn(&format!("without pretrained weights all rows are drawn at random\n{}", weights_hint()));
                return Ok((Vec::new(), None));
            }
        };
        if args.live {
            recipe.recipe.network.dimensions = LIVE_DIMENSIONS;
        }
        let ids = self.some_ids(args, plan, &recipe.recipe)?;
        let mut shown = ProgressSink::new(&recipe.recipe, args.quiet);
        let mut on_progress = |progress: &WorkProgress| drop(shown.work(progress));
        let work = PoolWork { stop, warn: Arc::new(warn), on_progress: &mut on_progress };
        let vectors = pool_vectors(&recipe, &self.dataset, &ids, work)?;
        clear_line();
        let index_of = |row: usize| vectors.ids.get(row).and_then(|&id| pool.index_of(id));
        let was_shown = |row: &usize| index_of(*row).is_some_and(|index| pool.samples[index].was_shown());
        let shown_before: Vec<usize> = (0..vectors.ids.len()).filter(was_shown).collect();
        let count = if args.live { plan.chosen_count().min(FIRST_LABELS) } else { plan.chosen_count() };
        let rows = typical_rows(vectors.matrix()?, &shown_before, count, Seed(args.seed), stop)?;
        let row = |sample: usize, reason: Reason| ReviewRow {
            sample,
            reason,
            drawn: Drawn::Chosen,
            predicted: None,
            is_answered: false,
        };
        let first = rows.into_iter().filter_map(index_of).map(|sample| row(sample, Reason::First));
        let mut chosen: Vec<ReviewRow> = first.collect();
        if !args.live {
            return Ok((chosen, None));
        }
        let has_vector = |index: &usize| vectors.ids.binary_search(&pool.samples[*index].id).is_ok();
        // Some of them will be random rows, or are first labels already.
        let next = plan.unlabelled().filter(has_vector).take(2 * plan.count);
        chosen.extend(next.map(|sample| row(sample, Reason::Margin)));
        Ok((chosen, Some(LiveVectors::new(vectors, pool, &recipe.recipe))))
    }

    /// Computes the vectors that a page learns from, for a run; `None` for a page that does not learn.
    fn live_vectors(
        &self,
        args: &ReviewArgs,
        plan: &RowPlan<'_>,
        stop: &AtomicBool,
    ) -> Result<Option<LiveVectors>> {
        if !args.live {
            return Ok(None);
        }
        let mut recipe = self.recipe_of_head("--live")?.clone();
        recipe.network.dimensions = LIVE_DIMENSIONS;
        let ids = self.some_ids(args, plan, &recipe)?;
        let mut shown = ProgressSink::new(&recipe, args.quiet);
        let mut on_progress = |progress: &WorkProgress| drop(shown.work(progress));
        let work = PoolWork { stop, warn: Arc::new(warn), on_progress: &mut on_progress };
        let vectors = vectors_of_recipe(&recipe, &self.dataset, &ids, work)?;
        clear_line();
        Ok(Some(LiveVectors::new(vectors, plan.pool, &recipe)))
    }

    /// Returns the recipe of the run.
    ///
    /// # Errors
    /// If it trained a whole network; the message names the option that needs a head.
    fn recipe_of_head(&self, option: &str) -> Result<&Recipe> {
        let Some(RecipeSoFar::OfRun(recipe)) = &self.draft else {
            let message =
                format!("{option} needs a head on frozen features, but this run trained a whole network");
            return Err(CliError::invalid(message).hint(format!("leave out {option}")).into());
        };
        Ok(recipe.as_ref())
    }

    /// Chooses labels that may be wrong, and, on request, samples that the model is least sure of.
    fn rows_for_model(
        &self,
        args: &ReviewArgs,
        plan: &RowPlan<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<ReviewRow>> {
        let Some(run) = &self.run else { return Ok(Vec::new()) };
        let pool = plan.pool;
        let predictions = held_out_predictions(run)?;
        let check = |index: usize, reason: Reason, predicted: Option<(u32, f64)>| ReviewRow {
            sample: index,
            reason,
            drawn: pool.samples[index].drawn,
            predicted,
            is_answered: false,
        };
        let mut rows = Vec::new();
        for index in conflicting_copies(&self.dataset, pool)? {
            rows.push(check(index, Reason::Copies, None));
        }
        for seen in predictions.iter().filter(|seen| seen.margin < 0.0) {
            if let Some(index) = pool.index_of(seen.id) {
                rows.push(check(index, Reason::Check, Some((seen.predicted, seen.confidence))));
            }
        }
        if args.live || args.choose == Some(ChooseRule::Margin) {
            // Half of the chosen rows at most are checks, so that there is room for new labels.
            rows.truncate(plan.chosen_count().div_ceil(2));
            rows.extend(self.least_certain(args, run, plan, stop)?);
        }
        Ok(rows)
    }

    fn least_certain(
        &self,
        args: &ReviewArgs,
        run: &Path,
        plan: &RowPlan<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<ReviewRow>> {
        let recipe = self.recipe_of_head(if args.live { "--live" } else { "--choose margin" })?;
        let pool = plan.pool;
        let mut ids = self.some_ids(args, plan, recipe)?;
        ids.retain(|&id| pool.index_of(id).is_some_and(|index| !pool.samples[index].was_shown()));
        let mut shown = ProgressSink::new(recipe, args.quiet);
        let mut on_progress = |progress: &WorkProgress| drop(shown.work(progress));
        let work = PoolWork { stop, warn: Arc::new(warn), on_progress: &mut on_progress };
        let (ids, logits) = pool_logits(run, recipe, &self.dataset, &ids, work)?;
        clear_line();
        let logits = Matrix::new(&logits, ids.len(), pool.classes.len())?;
        let found = least_certain(run, logits, plan.chosen_count())?;
        let row = |(row, predicted): (usize, (u32, f64))| {
            let sample = pool.index_of(*ids.get(row)?)?;
            let reason = Reason::Margin;
            Some(ReviewRow {
                sample,
                reason,
                drawn: Drawn::Chosen,
                predicted: Some(predicted),
                is_answered: false,
            })
        };
        Ok(found.into_iter().filter_map(row).collect())
    }

    /// Selects the samples whose vectors are computed, ascending: as many as a run trains on without labels, in the random order, and
    /// all labelled ones. A page that learns has room for fewer.
    fn some_ids(&self, args: &ReviewArgs, plan: &RowPlan<'_>, recipe: &Recipe) -> Result<Vec<u64>> {
        let samples = &plan.pool.samples;
        let mut limit = match recipe.labels.unlabelled_count {
            0 => usize::MAX,
            limit => limit as usize,
        };
        if args.live {
            limit = limit.min(room_for_unlabelled(plan.pool, &self.data.path)?);
        }
        let unlabelled = plan.order.iter().filter(|&&index| samples[index].label.is_none()).take(limit);
        let labelled = plan.order.iter().filter(|&&index| samples[index].label.is_some());
        let mut ids: Vec<u64> = unlabelled.chain(labelled).map(|&index| samples[index].id).collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Returns the folder for output if it exists, or else the folder above it that does.
fn existing_folder_of(out: &Path) -> Result<PathBuf> {
    let out = std::path::absolute(out)?;
    Ok(out.ancestors().find(|folder| folder.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned))
}
