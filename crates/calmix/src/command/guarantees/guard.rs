//! `calmix guard`: prediction sets and abstention around the probabilities of any model.

use std::fs;

use anyhow::{Context, Result};
use calmix_io::shown::{escaped, shown};
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_report::page::html;
use calmix_report::report::RunsReport;
use serde_json::{Value, json};

use crate::args::guarantees::guard::GuardArgs;
use crate::args::predict::{RowKind, check_shares};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::guarantees::guard::{GuardedTable, PrecisionOption, Quality};
use crate::model::options::ModelOptions;
use crate::output::format::{counted, counted_in_groups, shell_quoted};
use crate::predict::input::InputKind;
use crate::predict::out_path::{check_place, row_kind};
use crate::predict::output::RowOutput;
use crate::predict::row::{PredictedRow, RowFormat};
use crate::terminal::{print_json, status, warn};

/// The number of rows that are written at a time.
const BATCH_ROWS: usize = 4_096;

pub(crate) fn run(args: &GuardArgs) -> Result<Exit> {
    let kind = check(args)?;
    let options = ModelOptions {
        coverage: args.coverage,
        sets: args.sets.rule(),
        precision: args.precision.first().copied().unwrap_or(ModelOptions::default().precision),
        ..ModelOptions::default()
    };
    let guarded = GuardedTable::read(args, &options)?;
    for sentence in guarded.guarantee.missing() {
        warn(&sentence);
    }
    let classes = guarded.classes();
    let format =
        RowFormat { kind, input: InputKind::Vector, classes, rows_of_part: 100_000, ..RowFormat::default() };
    let mut output = RowOutput::create(args.out.as_deref(), &made_by(args, &guarded), &format, None)?;
    let mut tally = Tally::default();
    let unlabelled = guarded.unlabelled();
    for batch in unlabelled.chunks(BATCH_ROWS) {
        let predictions: Vec<_> = batch.iter().map(|&row| guarded.prediction(row)).collect();
        let rows = batch.iter().zip(&predictions).map(|(&row, prediction)| PredictedRow {
            name: one_line(guarded.id(row)),
            prediction: prediction.as_ref(),
            error: prediction.is_none().then(|| "no probabilities".to_owned()),
            ..PredictedRow::default()
        });
        output.write(&rows.collect::<Vec<_>>())?;
        for prediction in &predictions {
            tally.rows += 1;
            let Some(prediction) = prediction else {
                tally.unread += 1;
                continue;
            };
            tally.abstained += u64::from(prediction.abstain == Some(true));
            tally.classes_in_sets += prediction.set.as_ref().map_or(0, Vec::len) as u64;
        }
    }
    output.finish(None)?;
    if let Some(path) = &args.report {
        write_report(args, &guarded).with_context(|| format!("cannot write {}", shown(path.display())))?;
    }
    let quality = guarded.quality()?;
    let precisions = guarded.precision_options(&unlabelled);
    if args.json {
        print_json(&summary(args, &guarded, &tally, &quality, &precisions))?;
    }
    conclude(args, &guarded, &tally, &quality, &precisions);
    Ok(Exit::Done)
}

/// Returns an id as it is, unless it would break the line.
fn one_line(id: &str) -> String {
    if id.contains(char::is_control) { escaped(id.as_bytes()) } else { id.to_owned() }
}

/// The counts of written rows.
#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    unread: u64,
    abstained: u64,
    classes_in_sets: u64,
}

impl Tally {
    fn mean_set_size(&self) -> Option<f64> {
        let predicted = self.rows - self.unread;
        (predicted > 0).then(|| self.classes_in_sets as f64 / predicted as f64)
    }
}

/// Checks the options before a file is read; returns the format of the output.
fn check(args: &GuardArgs) -> Result<RowKind> {
    for &precision in &args.precision {
        check_shares(args.coverage, precision)?;
    }
    let kind = row_kind(args.out.as_deref(), args.format)?;
    if args.out.is_none() && kind == RowKind::Parquet {
        let message = "Parquet output is a folder of files and cannot be written to standard output";
        let hint = "name the folder, for example `--out guarded.parquet`";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    for out in args.out.iter().chain(&args.report) {
        check_place(out)?;
        if out.exists() {
            let message = format!("{}: already exists", shown(out.display()));
            return Err(CliError::invalid(message).hint("name another file").into());
        }
    }
    Ok(kind)
}

/// Returns what the rows depend on.
fn made_by(args: &GuardArgs, guarded: &GuardedTable) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "model": null,
        "labels": guarded.labels(),
        "coverage": args.coverage,
        "precision": args.precision,
        "classes": guarded.classes(),
        "paths": [shown(args.predictions.display())],
    })
}

/// Writes the page about the labelled rows.
fn write_report(args: &GuardArgs, guarded: &GuardedTable) -> Result<()> {
    let Some(path) = &args.report else { return Ok(()) };
    let (probabilities, labels) = guarded.labelled();
    let logits = probabilities.iter().map(|p| p.max(f32::MIN_POSITIVE).ln()).collect();
    let predictions = Predictions {
        step: 0,
        split: EvalSet::Test,
        model: EvalModel::Ema,
        classes: guarded.classes().to_vec(),
        ids: (0..labels.len() as u64).collect(),
        labels: labels.to_vec(),
        logits,
        groups: Vec::new(),
    };
    let name = args.predictions.file_stem().unwrap_or_default().to_string_lossy();
    let report = RunsReport::of_predictions(&name, &predictions)?;
    fs::write(path, html(&report, None))?;
    Ok(())
}

/// Returns the document of `--json`.
fn summary(
    args: &GuardArgs,
    guarded: &GuardedTable,
    tally: &Tally,
    quality: &Quality,
    precisions: &[PrecisionOption],
) -> Value {
    json!({
        "predictions": args.predictions.display().to_string(),
        "out": args.out.as_ref().map(|out| out.display().to_string()),
        "labels": guarded.labels(),
        "groups": guarded.groups(),
        "rows": tally.rows,
        "unread": tally.unread,
        "abstained": tally.abstained,
        "error": quality.error.estimate,
        "low": quality.error.low,
        "high": quality.error.high,
        "confidence_gap": quality.confidence_gap,
        "nll": quality.nll,
        "mean_set_size": tally.mean_set_size(),
        "precisions": precisions,
        "missing": guarded.guarantee.missing(),
    })
}

/// Prints how good the labelled rows are, and what the guarantees are worth on the others.
fn conclude(
    args: &GuardArgs,
    guarded: &GuardedTable,
    tally: &Tally,
    quality: &Quality,
    precisions: &[PrecisionOption],
) {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let error = &quality.error;
    status(&format!(
        "{}: error {} [{}, {}], mean confidence minus accuracy {}",
        counted_in_groups(guarded.labels(), "label", guarded.groups()),
        percent(error.estimate),
        percent(error.low),
        percent(error.high),
        format_args!("{:+.1} points", 100.0 * quality.confidence_gap),
    ));
    if let Some(size) = tally.mean_set_size() {
        status(&format!(
            "sets with a coverage of {} have {size:.2} classes on average",
            percent(args.coverage)
        ));
    }
    for option in precisions {
        let precision = percent(option.precision);
        status(&match option.confidence {
            Some(confidence) => format!(
                "precision {precision}: answers {} of the rows, those with a confidence of at least {confidence:.4}",
                percent(option.answered)
            ),
            None => format!("precision {precision}: no threshold reaches it on these labels"),
        });
    }
    if precisions.len() > 1 {
        status(
            "these guarantees hold together, with a probability of 90%; the column `abstain` is for the first",
        );
    }
    let place = args.out.as_ref().map(|out| format!(", written to {}", shell_quoted(out)));
    status(&format!("{}{}", counted(tally.rows, "row"), place.unwrap_or_default()));
    if tally.unread > 0 {
        warn(&format!("{} had no probabilities: see the column `error`", counted(tally.unread, "row")));
    }
}
