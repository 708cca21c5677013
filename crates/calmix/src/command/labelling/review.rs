//! `calmix review`: chooses samples to label or to check, and writes the files for the answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use calmix_data::dataset::Dataset;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::drawn::Drawn;
use calmix_head::typical_samples::typical_rows;
use calmix_heads::pool_vectors::{PoolWork, pool_logits, pool_vectors};
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;
use calmix_io::{atomic_file, safe_open};
use calmix_lifecycle::changes::RunInputs;
use calmix_lifecycle::prepared_dataset::{is_stale, open_samples};
use calmix_lifecycle::run_samples::RunSamples;
use calmix_lifecycle::start::Draft;
use calmix_recipe::device::Device;
use calmix_recipe::{Data, HEAD_RECIPE, Layers, Recipe, Resolved, SourceName, VECTORS_RECIPE};
use calmix_report::review_page::{self, ReviewPage, review_page};
use calmix_run::pretrained::weights_folder::WeightsFolder;
use calmix_run::read::{self, inspect};
use calmix_run::run::Paths;
use calmix_run::sink::{Sink, WorkProgress};
use serde_json::json;

use crate::args::labelling::review::{ChooseRule, ReviewArgs};
use crate::args::options::data::{absolute, existing_dataset, is_vector_file};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::{counted, shell_quoted};
use crate::output::preparation::{NoticePrinter, start_context, weights_hint};
use crate::process::stop::Stop;
use crate::review::{
    Pool, Reason, ReviewRow, RowCounts, RowPlan, SampleTexts, conflicting_copies, held_out_predictions,
    least_certain, thumbnail, to_csv,
};
use crate::terminal::progress::ProgressSink;
use crate::terminal::{clear_line, print, print_json, sentence, warn};

const CSV: &str = "review.csv";
const PAGE: &str = "review.html";
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
    let csv = args.out.join(CSV);
    let subject = Subject::open(args, stop)?;
    let pool = Pool::of(&subject.dataset, &subject.data)?;
    let order = pool.order(args.seed);
    let plan = RowPlan { pool: &pool, order: &order, count: args.count as usize, random_share: args.random };
    let chosen = if subject.run.is_some() {
        subject.rows_for_model(args, &plan, stop.flag())?
    } else {
        subject.first_labels(args, &plan, stop.flag())?
    };
    let rows = plan.rows(chosen);
    if rows.is_empty() {
        let message =
            format!("{}: every sample has a label, and none looks wrong", shown(&subject.data.path));
        print(&(message + "\n"))?;
        return Ok(Exit::Done);
    }
    let counts = plan.counts(&rows);
    subject.write(args, &pool, &rows)?;
    if args.json {
        print_json(&json!({
            "csv": csv.display().to_string(),
            "page": args.out.join(PAGE).display().to_string(),
            "rows": {
                "first": counts.first, "check": counts.check, "copies": counts.copies,
                "random": counts.random, "margin": counts.margin,
            },
            "now_random": counts.now_random,
            "skipped": counts.skipped,
        }))?;
    } else {
        print(&summary(args, &subject, counts))?;
    }
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

    /// Chooses the most typical samples of the pool.
    fn first_labels(
        &self,
        args: &ReviewArgs,
        plan: &RowPlan<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<ReviewRow>> {
        let pool = plan.pool;
        let recipe = match &self.draft {
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
            Some(RecipeSoFar::OfRun(_)) | None => {
                warn(&format!("without pretrained weights all rows are drawn at random\n{}", weights_hint()));
                return Ok(Vec::new());
            }
        };
        let ids = some_ids(plan, &recipe.recipe);
        let mut shown = ProgressSink::new(&recipe.recipe, args.quiet);
        let mut on_progress = |progress: &WorkProgress| drop(shown.work(progress));
        let work = PoolWork { stop, warn: Arc::new(warn), on_progress: &mut on_progress };
        let vectors = pool_vectors(&recipe, &self.dataset, &ids, work)?;
        clear_line();
        let index_of = |row: usize| vectors.ids.get(row).and_then(|&id| pool.index_of(id));
        let was_shown = |row: &usize| index_of(*row).is_some_and(|index| pool.samples[index].was_shown());
        let shown_before: Vec<usize> = (0..vectors.ids.len()).filter(was_shown).collect();
        let rows =
            typical_rows(vectors.matrix()?, &shown_before, plan.chosen_count(), Seed(args.seed), stop)?;
        let row = |sample: usize| ReviewRow {
            sample,
            reason: Reason::First,
            drawn: Drawn::Chosen,
            predicted: None,
            is_answered: false,
        };
        Ok(rows.into_iter().filter_map(index_of).map(row).collect())
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
        if args.choose == Some(ChooseRule::Margin) {
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
        let Some(RecipeSoFar::OfRun(recipe)) = &self.draft else {
            let message =
                "--choose margin needs a head on frozen features, but this run trained a whole network";
            return Err(CliError::invalid(message).hint("leave out --choose").into());
        };
        let pool = plan.pool;
        let mut ids = some_ids(plan, recipe);
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

    fn write(&self, args: &ReviewArgs, pool: &Pool, rows: &[ReviewRow]) -> Result<()> {
        safe_open::create_folders(&args.out)?;
        let csv = to_csv(pool, rows)?;
        let mut classes = pool.classes.clone();
        classes.extend(args.classes.iter().filter(|name| !pool.classes.contains(name)).cloned());
        let columns = LabelColumns {
            path: Some(self.data.path_column.clone()).filter(|name| !name.is_empty()),
            label: Some(self.data.label_column.clone()).filter(|name| !name.is_empty()),
        };
        let texts = match self.data.labels.as_str() {
            "" => SampleTexts::default(),
            list => SampleTexts::read(Path::new(list), &columns),
        };
        let has_images = self.data.source != SourceName::Vectors;
        let mut shown_rows = Vec::with_capacity(rows.len());
        let mut images = Vec::with_capacity(rows.len());
        let mut fields = Vec::with_capacity(rows.len());
        for row in rows {
            let sample = &pool.samples[row.sample];
            images.push(if has_images { thumbnail(&self.dataset, sample.id, rows.len())? } else { None });
            fields.push(texts.of(&sample.name));
        }
        for ((row, image), fields) in rows.iter().zip(&images).zip(&fields) {
            let sample = &pool.samples[row.sample];
            let given = sample.label.map(|label| pool.class(label));
            shown_rows.push(review_page::ReviewRow {
                file: &sample.name,
                label: given.filter(|_| row.is_answered),
                given,
                predicted: row.predicted.map(|(label, _)| pool.class(label)),
                confidence: row.predicted.map(|(_, confidence)| confidence),
                why: row.reason.word(),
                drawn: row.drawn.word(),
                image: image.as_deref(),
                fields,
            });
        }
        // The answers that a browser keeps belong to exactly these rows.
        let storage_key = format!("calmix-review-{}", blake3::hash(&csv).to_hex());
        let title = as_typed(&self.data.path);
        let page = ReviewPage {
            title: &title.to_string_lossy(),
            storage_key: &storage_key,
            classes: &classes,
            rows: &shown_rows,
            csv_name: CSV,
            command: &self.next_command(CSV),
        };
        atomic_file::write(&args.out.join(PAGE), review_page(&page).as_bytes())?;
        atomic_file::write(&args.out.join(CSV), &csv)?;
        Ok(())
    }

    /// Returns the command that puts the answers into the list of labels.
    fn next_command(&self, csv: &str) -> String {
        let labels = match self.data.labels.as_str() {
            _ if self.data.source != SourceName::Vectors => String::new(),
            "" => " --labels labels.csv".to_owned(),
            labels => format!(" --labels {}", shell_quoted(&as_typed(labels))),
        };
        format!(
            "calmix label {} {}{labels}",
            shell_quoted(&as_typed(&self.data.path)),
            shell_quoted(Path::new(csv))
        )
    }
}

/// Returns a path as the user most likely typed it: recipes have absolute ones.
fn as_typed(path: &str) -> PathBuf {
    let path = PathBuf::from(path);
    let current = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(current).map(Path::to_owned).unwrap_or(path)
}

/// Returns the folder for output if it exists, or else the folder above it that does.
fn existing_folder_of(out: &Path) -> Result<PathBuf> {
    let out = std::path::absolute(out)?;
    Ok(out.ancestors().find(|folder| folder.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned))
}

/// Selects the samples whose vectors are computed, ascending: as many as a run trains on without labels, in the random order, and
/// all labelled ones.
fn some_ids(plan: &RowPlan<'_>, recipe: &Recipe) -> Vec<u64> {
    let samples = &plan.pool.samples;
    let limit = match recipe.labels.unlabelled_count {
        0 => usize::MAX,
        limit => limit as usize,
    };
    let unlabelled = plan.order.iter().filter(|&&index| samples[index].label.is_none()).take(limit);
    let labelled = plan.order.iter().filter(|&&index| samples[index].label.is_some());
    let mut ids: Vec<u64> = unlabelled.chain(labelled).map(|&index| samples[index].id).collect();
    ids.sort_unstable();
    ids
}

fn summary(args: &ReviewArgs, subject: &Subject, counts: RowCounts) -> String {
    let kinds = [
        (counts.copies, "identical samples with different labels"),
        (counts.check, "labels that may be wrong"),
        (counts.first, "typical samples without a label"),
        (counts.margin, "samples that the model is least sure of"),
        (counts.random, "samples drawn at random, shown without a prediction"),
    ];
    let total: usize = kinds.iter().map(|(count, _)| count).sum();
    let line = |(count, what): (usize, &str)| format!("  {count:>5}  {what}\n");
    let lines: String = kinds.into_iter().filter(|(count, _)| *count > 0).map(line).collect();
    let mut text = format!("{} to look at\n{lines}", counted(total as u64, "sample"));
    if counts.now_random > 0 {
        let labels = counted(counts.now_random as u64, "chosen label");
        text += &sentence(&format!(
            "{labels} will count as random: the random order of the samples has reached them."
        ));
        text += "\n";
    }
    if counts.skipped > 0 {
        let samples = counted(counts.skipped as u64, "random sample");
        text += &sentence(&format!(
            "{samples} had no answer in earlier reviews. Guarantees hold for samples that can be labelled."
        ));
        text += "\n";
    }
    let page = args.out.join(PAGE);
    let csv = args.out.join(CSV);
    let csv = csv.strip_prefix(".").unwrap_or(&csv);
    text + &format!(
        "written to {} and {}\nnext: open {} in a browser and save your answers, or fill in the column `label` of {}\nthen: {}\n",
        shown(page.strip_prefix(".").unwrap_or(&page).display()),
        shown(csv.display()),
        shell_quoted(page.strip_prefix(".").unwrap_or(&page)),
        shell_quoted(csv),
        subject.next_command(&csv.to_string_lossy()),
    )
}
