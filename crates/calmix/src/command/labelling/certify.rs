//! `calmix certify`: freezes predicted labels, draws the rows of an audit, and takes its answers.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix_data::cloud::CloudUrl;
use calmix_data::dataset::Dataset;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;
use calmix_io::text::{counted, grouped};
use calmix_io::{atomic_file, safe_open};
use calmix_lifecycle::prepared_dataset::open_samples;
use calmix_recipe::{Data, Layers, detect_source};
use calmix_run::model_info::ModelInfo;
use calmix_run::read::{self, inspect};
use serde_json::json;

use super::audit_files::{
    AuditFiles, CERTIFIED, NextRows, OpenRows, ShownPool, answered_places, next_places, verify_command,
};
use crate::args::labelling::certify::CertifyArgs;
use crate::args::options::data::{absolute, existing_dataset};
use crate::certificate::{
    AuditPlan, AuditResult, CERTIFICATE, Certificate, LABELS, LabelRow, LabelsFile, ModelName, PoolKind,
    PoolSummary, Verification, check_error, claims, image_content, new_answers, percent, share_of_pool,
    upper_bound, vector_contents,
};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::labelled::scratch_folder;
use crate::labelling::date::now;
use crate::labelling::review_file::read_reviews;
use crate::model::folder::with_model;
use crate::model::loaded_model::LoadedModel;
use crate::model::options::ModelOptions;
use crate::output::format::shell_quoted;
use crate::output::preparation::{NoticePrinter, start_context};
use crate::predict::input::InputKind;
use crate::process::launched::threads_of_process;
use crate::process::stop::Stop;
use crate::review::Pool;
use crate::terminal::{Output, status, status_in_place, warn};

/// The probability with which a certificate may be false.
const DELTA: f64 = 0.05;

/// A pool that is labelled by a model.
struct LabelledPool {
    path: PathBuf,
    data: Data,
    dataset: Dataset,
    pool: Pool,
    kind: PoolKind,
    /// Holds the table of the samples.
    _scratch: ScratchFolder,
}

pub(crate) fn run(args: &CertifyArgs) -> Result<Exit> {
    check_error(args.error).map_err(|problem| {
        CliError::invalid(format!("--error is {}, {problem}", args.error)).hint("--error 0.05")
    })?;
    let stop = Stop::listen()?;
    // What a killed command left.
    atomic_file::sweep_abandoned(&args.out);
    let output = if args.answers.is_empty() { begin(args, &stop) } else { take_answers(args, &stop) };
    match output {
        Ok(Some(output)) => {
            output.print(args.json)?;
            Ok(Exit::Done)
        }
        // Nothing is lost: files are written whole, and the certificate is the last of them.
        Ok(None) => Ok(stop.exit()),
        Err(_) if stop.flag().load(Ordering::Relaxed) => Ok(stop.exit()),
        Err(error) => Err(error),
    }
}

/// Freezes the labels, or shows the state of an audit that has begun; `None` if the user stops the command.
fn begin(args: &CertifyArgs, stop: &Stop) -> Result<Option<Output>> {
    let run = with_model(&args.run, "certify", &[])?;
    let threads = threads_of_process(args.threads, None);
    let options = ModelOptions { threads: Some(threads.get()), ..ModelOptions::default() };
    let Some(model) = LoadedModel::load(run, &options, stop)? else { return Ok(None) };
    if model.rule().info().calibration.is_none() {
        let message = format!(
            "{}: the model has no calibrator, so it cannot say which labels are sure",
            shown(run.display())
        );
        let hint = format!("calmix calibrate {} --on LABELLED", shell_quoted(run));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let pool = LabelledPool::open(args, model.rule().info(), stop)?;
    let Some(rows) = pool.labels(&model, threads, stop)? else { return Ok(None) };
    let (labels, text) = LabelsFile::new(rows)?;
    let plan = AuditPlan::of(&labels, args.error, DELTA);
    let place = args.out.join(CERTIFICATE);
    if safe_open::exists(&place) {
        let (certificate, old_labels) = intact(args)?;
        if old_labels.sha256 != labels.sha256 || certificate.plan != plan {
            return Err(changed(args, &certificate, &old_labels, &labels, &plan).into());
        }
        // A kill may have come before them.
        AuditFiles { out: &args.out }.write_views(&certificate, &old_labels)?;
        return report(args, &certificate, &old_labels, &pool, 0).map(Some);
    }
    if plan.shares.is_empty() {
        let message = format!(
            "the model is not confident enough: no share of the {} has a predicted error well below {}",
            counted(labels.rows.len() as u64, "unlabelled sample"),
            percent(args.error)
        );
        let hint = "label more samples and train again, or allow more errors with a larger --error";
        return Err(CliError::failed(message).hint(hint).into());
    }
    safe_open::create_folders(&args.out)?;
    atomic_file::write(&args.out.join(LABELS), &text)?;
    let info = model.rule().info();
    let name = std::path::absolute(run)?.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut certificate = Certificate {
        format: Certificate::format(),
        hash: String::new(),
        claims: Vec::new(),
        pool: PoolSummary {
            kind: pool.kind,
            rows: labels.rows.len() as u64,
            fingerprint: labels.fingerprint(),
        },
        model: ModelName {
            run: name,
            blake3: info.blake3.clone(),
            calmix: env!("CARGO_PKG_VERSION").to_owned(),
        },
        created: now(),
        labels_sha256: labels.sha256.clone(),
        result: AuditResult::of(&labels, &plan, &[])?,
        plan,
        answers: Vec::new(),
    };
    write(args, &mut certificate, &labels)?;
    report(args, &certificate, &labels, &pool, 0).map(Some)
}

/// Adds answers to the certificate; `None` if the user stops the command.
fn take_answers(args: &CertifyArgs, stop: &Stop) -> Result<Option<Output>> {
    let (mut certificate, labels) = intact(args)?;
    let model = read::model_info(with_model(&args.run, "certify", &[])?)?;
    if model.blake3 != certificate.model.blake3 {
        let message = format!("{}: not the model that labelled the pool", shown(args.run.display()));
        let hint = "name the run of the certificate; a model that was trained again needs a new certificate in another --out";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let order = certificate.plan.order();
    let ids = order.iter().map(|&rank| labels.rows[rank as usize].id.as_str());
    let place_of: HashMap<&str, u64> = ids.zip(0..).collect();
    let mut reviews = Vec::new();
    for path in &args.answers {
        reviews.extend(read_reviews(path)?);
    }
    let added = new_answers(&certificate.answers, &reviews, &place_of, &now())?;
    let new = added.len();
    certificate.answers.extend(added);
    certificate.result = AuditResult::of(&labels, &certificate.plan, &certificate.answers)?;
    let pool = LabelledPool::open(args, &model, stop)?;
    write(args, &mut certificate, &labels)?;
    report(args, &certificate, &labels, &pool, new).map(Some)
}

/// Reads the certificate of the folder, and checks that it is as calmix wrote it.
fn intact(args: &CertifyArgs) -> Result<(Certificate, LabelsFile)> {
    let place = args.out.join(CERTIFICATE);
    if !safe_open::exists(&place) {
        let message = format!("{}: there is no certificate yet", shown(args.out.display()));
        let hint = format!("calmix certify {} first, without --answers", shell_quoted(&args.run));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let (certificate, is_intact) = Certificate::read(&place)?;
    let labels = LabelsFile::read(&args.out.join(LABELS))?;
    if let Some(problem) = Verification::of(&certificate, is_intact, &labels)?.problems.first() {
        let message = format!("{}: was changed since calmix wrote it: {problem}", shown(place.display()));
        let hint = "restore the files of this folder, or begin a new audit in another --out";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    Ok((certificate, labels))
}

/// Says why an audit that has begun does not belong to these labels.
fn changed(
    args: &CertifyArgs,
    certificate: &Certificate,
    old: &LabelsFile,
    new: &LabelsFile,
    plan: &AuditPlan,
) -> CliError {
    let old_plan = &certificate.plan;
    let reason = if old_plan.error != plan.error {
        format!("its limit is {}, not {}", percent(old_plan.error), percent(plan.error))
    } else if old.fingerprint() != new.fingerprint() {
        let rows: HashMap<&str, &str> =
            old.rows.iter().map(|row| (row.id.as_str(), row.content.as_str())).collect();
        let other = new.rows.iter().filter(|row| rows.get(row.id.as_str()) != Some(&row.content.as_str()));
        let kept = new.rows.len() - other.count();
        format!(
            "the pool has changed: {} of its {} are among the {} unlabelled ones now",
            grouped(kept as u64),
            counted(old.rows.len() as u64, "sample"),
            grouped(new.rows.len() as u64)
        )
    } else {
        "the model predicts other labels or confidences".to_owned()
    };
    let place = shown(args.out.join(CERTIFICATE).display());
    CliError::invalid(format!("{place} is for other labels: {reason}")).hint(
        "an audit is for the labels that were frozen before it: begin a new one with another --out, or take answers with --answers",
    )
}

/// Completes the certificate and writes it with all that follows from it. The certificate is the first file that says something new,
/// and the others follow from it: after a kill the same command writes them again.
fn write(args: &CertifyArgs, certificate: &mut Certificate, labels: &LabelsFile) -> Result<()> {
    certificate.claims = claims(certificate.pool.rows, &certificate.plan, &certificate.result).to_vec();
    let bytes = certificate.seal()?;
    atomic_file::write(&args.out.join(CERTIFICATE), &bytes)?;
    AuditFiles { out: &args.out }.write_views(certificate, labels)
}

/// Writes the next rows to answer, and describes the state of the audit.
fn report(
    args: &CertifyArgs,
    certificate: &Certificate,
    labels: &LabelsFile,
    pool: &LabelledPool,
    new: usize,
) -> Result<Output> {
    let order = certificate.plan.order();
    let places = next_places(certificate, &certificate.plan, &order, args.count as usize);
    let number = answered_places(certificate).len() + 1;
    let next = if places.is_empty() {
        None
    } else {
        Some(write_next(args, certificate, labels, pool, &places, number)?)
    };
    let result = &certificate.result;
    let path = |path: &Path| path.display().to_string();
    let document = json!({
        "certificate": path(&args.out.join(CERTIFICATE)),
        "review": next.as_ref().map(|next| path(&next.csv)),
        "page": next.as_ref().map(|next| path(&next.page)),
        "certified": (result.certified_rows > 0).then(|| path(&args.out.join(CERTIFIED))),
        "pool_rows": certificate.pool.rows,
        "certified_rows": result.certified_rows,
        "error": certificate.plan.error,
        "new_answers": new,
        "shares": result.shares,
    });
    Ok(Output { text: text(args, certificate, pool, next.as_ref()), json: document })
}

fn write_next(
    args: &CertifyArgs,
    certificate: &Certificate,
    labels: &LabelsFile,
    pool: &LabelledPool,
    places: &[usize],
    number: usize,
) -> Result<NextRows> {
    let order = certificate.plan.order();
    let by_name: HashMap<&str, usize> =
        pool.pool.samples.iter().enumerate().map(|(index, sample)| (sample.name.as_str(), index)).collect();
    let mut samples = Vec::with_capacity(places.len());
    for &place in places {
        let row = &labels.rows[order[place] as usize];
        let Some(&sample) = by_name.get(row.id.as_str()) else {
            let message = format!("{}: {} is missing", shown(pool.path.display()), shown(&row.id));
            return Err(CliError::invalid(message)
                .hint("restore it: an audit needs the pool as it was")
                .into());
        };
        samples.push(sample);
    }
    let predicted = labels.rows.iter().filter_map(|row| row.predicted.as_ref());
    let mut classes: BTreeSet<String> = predicted.map(|(label, _)| label.clone()).collect();
    classes.extend(pool.pool.classes.iter().cloned());
    let classes: Vec<String> = classes.into_iter().collect();
    let shown = ShownPool {
        pool: &pool.pool,
        dataset: &pool.dataset,
        data: &pool.data,
        has_images: pool.kind == PoolKind::Images,
        classes: &classes,
    };
    let open = OpenRows { certificate, labels, places, samples: &samples };
    let command = |csv: &Path| answers_command(args, pool, csv);
    AuditFiles { out: &args.out }.write_rows(&shown, number, &open, &command)
}

fn answers_command(args: &CertifyArgs, pool: &LabelledPool, csv: &Path) -> String {
    let run = shell_quoted(&args.run);
    let mut command = vec![format!("calmix certify {run} --pool {}", shell_quoted(&pool.path))];
    if let Some(labels) = &args.labels {
        command.push(format!("--labels {}", shell_quoted(labels)));
    }
    if let Some(column) = &args.vector_column {
        command.push(format!("--vector-column {}", shell_quoted(Path::new(column))));
    }
    if args.out != Path::new("certificate") {
        command.push(format!("--out {}", shell_quoted(&args.out)));
    }
    let reading = args.reading.options(true);
    format!("{}{reading} --answers {}", command.join(" "), shell_quoted(csv))
}

fn text(
    args: &CertifyArgs,
    certificate: &Certificate,
    pool: &LabelledPool,
    next: Option<&NextRows>,
) -> String {
    let Certificate { plan, result, .. } = certificate;
    let mut lines = vec![certificate.claims[0].clone()];
    lines.push("     rows  of pool  answers  wrong  at most wrong".to_owned());
    for share in &result.shares {
        lines.push(format!(
            "{:>9}  {:>7}  {:>7}  {:>5}  {:>13}  {}",
            grouped(share.rows),
            share_of_pool(share.rows, certificate.pool.rows),
            grouped(share.answers),
            grouped(share.wrong),
            upper_bound(share.highest_error),
            if share.is_certified { "certified" } else { "" }
        ));
    }
    let lines_of =
        |lines: Vec<String>| lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n");
    if result.certified_rows > 0 {
        let file = args.out.join(CERTIFIED);
        lines.push(format!("certified labels are in {}", shown(file.display())));
        lines.push(format!(
            "anybody can check: {}",
            verify_command(&args.out, &pool.path, args.vector_column.as_deref())
        ));
    }
    match (next, result.next_share()) {
        (Some(next), _) => {
            lines.push(format!(
                "next: open {} in a browser and answer {}, or fill in the column `label` of {}; stop when you like",
                shell_quoted(&next.page),
                counted(next.rows as u64, "row"),
                shell_quoted(&next.csv)
            ));
            lines.push(format!("then: {}", answers_command(args, pool, &next.csv)));
        }
        (None, Some(share)) => lines.push(format!(
            "the audit has ended: {} of the {} were wrong, more than {} allows",
            grouped(share.wrong),
            counted(share.rows, "row"),
            percent(plan.error)
        )),
        (None, None) => lines.push("the audit has ended: every share is certified".to_owned()),
    }
    lines_of(lines)
}

impl LabelledPool {
    fn open(args: &CertifyArgs, model: &ModelInfo, stop: &Stop) -> Result<Self> {
        let kind = InputKind::of(model);
        let path = match &args.pool {
            Some(path) => path.clone(),
            None => PathBuf::from(&inspect::recipe(&args.run)?.recipe.dataset.path),
        };
        if CloudUrl::is_url(&path) {
            let message =
                format!("{}: a pool is on this machine, so that it can be hashed", shown(path.display()));
            return Err(CliError::invalid(message).hint("download it first").into());
        }
        existing_dataset(&path)?;
        let mut layers = Layers::new().set_to("dataset.path", absolute(&path)?);
        layers = args.reading.settings().iter().fold(layers, |layers, setting| layers.set(setting));
        if kind == InputKind::Vector {
            layers = layers.set("dataset.source=vectors");
            if let Some(labels) = &args.labels {
                layers = layers.set_to("dataset.labels", absolute(existing_dataset(labels)?)?);
            }
            if let Some(column) = &args.vector_column {
                layers = layers.set_to("dataset.vector_column", column.clone());
            }
        } else {
            if args.reading.source.is_none() {
                let source = detect_source(&path, args.reading.names_columns());
                layers = layers.set(&format!("dataset.source={source}"));
            }
            // As when the model was trained, so that the same images give the same prepared dataset.
            if args.reading.shrink.is_none() {
                layers = layers.set(&format!("dataset.shrink={}", model.shrink.unwrap_or(0)));
            }
        }
        let data = layers.resolve()?.recipe.dataset;
        let scratch = scratch_folder()?;
        let mut printer = NoticePrinter::new(args.json, kind.word());
        let mut context = start_context(&mut printer, stop);
        let dataset = open_samples(&data, scratch.path(), &mut context)?;
        let pool = Pool::of(&dataset, &data)?;
        let kind = match kind {
            InputKind::Image => PoolKind::Images,
            InputKind::Vector => PoolKind::Vectors,
        };
        Ok(Self { path, data, dataset, pool, kind, _scratch: scratch })
    }

    /// Predicts and hashes the unlabelled samples; `None` if the user stops the command.
    fn labels(
        &self,
        model: &LoadedModel,
        threads: NonZeroUsize,
        stop: &Stop,
    ) -> Result<Option<Vec<LabelRow>>> {
        let unlabelled: Vec<usize> =
            (0..self.pool.samples.len()).filter(|&at| self.pool.samples[at].label.is_none()).collect();
        if unlabelled.is_empty() {
            let message = format!("{}: every sample has a label", shown(self.path.display()));
            return Err(CliError::invalid(message)
                .hint("name a pool with unlabelled samples: --pool DATA")
                .into());
        }
        let ids: Vec<u64> = unlabelled.iter().map(|&at| self.pool.samples[at].id).collect();
        status(&format!("predicting {} …", counted(ids.len() as u64, model.kind().word())));
        // The dataset that predicts is another handle on the same table.
        let dataset = Dataset::open(self.dataset.folder(), Path::new(&self.data.path))?;
        let Some(found) = model.predict_samples(&self.path, dataset, &ids, threads, stop)? else {
            return Ok(None);
        };
        let rule = model.rule();
        let predictions = rule.predictions(&found.predictions.logits, threads.get())?;
        let predicted: HashMap<u64, _> = found.predictions.ids.iter().copied().zip(&predictions).collect();
        if found.skipped > 0 {
            let samples = counted(found.skipped, model.kind().word());
            warn(&format!("{samples} could not be read and have no label"));
        }
        let vectors = match self.kind {
            PoolKind::Vectors => vector_contents(&self.path, self.vector_column())?,
            PoolKind::Images => HashMap::new(),
        };
        let mut rows = Vec::with_capacity(ids.len());
        for (done, &at) in unlabelled.iter().enumerate() {
            if stop.flag().load(Ordering::Relaxed) {
                return Ok(None);
            }
            if done % 1_000 == 999 {
                status_in_place(&format!(
                    "hashed {} of {}",
                    grouped(done as u64 + 1),
                    grouped(ids.len() as u64)
                ));
            }
            let sample = &self.pool.samples[at];
            let content = match self.kind {
                PoolKind::Vectors => vectors.get(&sample.name).cloned().unwrap_or_default(),
                PoolKind::Images => image_content(Path::new(&self.data.path), &sample.name)?,
            };
            let predicted = predicted.get(&sample.id).map(|prediction| {
                // The shortest decimals of the f32 are what the file says, so they are the score.
                let score = prediction.confidence.to_string().parse().unwrap_or_default();
                (rule.info().classes[prediction.label].clone(), score)
            });
            rows.push(LabelRow { id: sample.name.clone(), predicted, content });
        }
        Ok(Some(rows))
    }

    fn vector_column(&self) -> Option<&str> {
        Some(self.data.vector_column.as_str()).filter(|name| !name.is_empty())
    }
}
