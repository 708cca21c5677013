//! The part of `calmix predict` that does not depend on inputs and network: options, output, and exit.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix_data::cloud::CloudUrl;
use calmix_io::shown::escaped_path;
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::shift::ShiftDetector;
use calmix_ort::library;
use clap::ValueEnum;
use serde_json::{Value, json};

use super::batch_verdict::BatchVerdict;
use super::out_path::{check_place, row_kind};
use super::output::RowOutput;
use super::prediction_rule::{Prediction, PredictionRule};
use super::row::{PredictedRow, RowFormat, WrittenRows};
use super::shift_check::ShiftCheck;
use crate::args::predict::{PredictArgs, RowKind, check_shares};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::options::ModelOptions;
use crate::output::format::{counted, grouped, same_command, shell_quoted};
use crate::predict::input::{InputKind, LogitBatch};
use crate::process::input_shard::InputShard;
use crate::process::stop::Stop;
use crate::terminal::rate::Rate;
use crate::terminal::{clear_line, print_json, status, warn};

/// A `calmix predict` with valid options.
#[derive(Debug)]
pub struct PredictJob<'a> {
    args: &'a PredictArgs,
    input: InputKind,
    kind: RowKind,
    /// The share of the inputs that this process predicts; `None` for all.
    pub shard: Option<InputShard>,
    /// The output file of this shard; `None` for standard output.
    pub out: Option<PathBuf>,
}

/// The counts of predicted inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PredictTally {
    /// The number of rows that were written.
    pub rows: u64,
    /// The number of inputs that could not be read.
    pub unread: u64,
    /// The number of inputs that the model abstains from.
    pub abstained: u64,
}

/// What a job wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenPredictions {
    pub tally: PredictTally,
    /// The verdict of all rows of the output; `None` if the command was stopped before the last one.
    pub verdict: Option<BatchVerdict>,
}

impl<'a> PredictJob<'a> {
    /// Checks the options. `own_shard` is the shard of this process if no option names one.
    ///
    /// # Errors
    /// If options contradict each other or are out of range.
    pub fn new(
        args: &'a PredictArgs,
        input: InputKind,
        own_shard: Option<InputShard>,
    ) -> Result<Self, CliError> {
        let kind = row_kind(args.out.as_deref(), args.format)?;
        if args.out.is_none() && kind == RowKind::Parquet {
            let message = "Parquet output is a folder of files and cannot be written to standard output";
            return Err(
                CliError::invalid(message).hint("name the folder, for example `--out predictions.parquet`")
            );
        }
        if args.features && input == InputKind::Vector {
            let message = "--features writes the vector that a network makes of an image, but this run was trained on vectors";
            return Err(
                CliError::invalid(message).hint("leave it out: the vectors are those of your own file")
            );
        }
        if args.features && kind == RowKind::Csv {
            let message = "--features writes hundreds of numbers per image, which CSV has no column for";
            return Err(CliError::invalid(message)
                .hint("write Parquet, for example `--out predictions.parquet`, or JSON lines"));
        }
        check_shares(args.coverage, args.precision)?;
        if let Some(out) = &args.out {
            check_place(out)?;
        }
        let shard = args.shard.or(own_shard);
        let out = args.out.as_ref().map(|out| shard.map_or(out.clone(), |shard| shard.file(out)));
        Ok(Self { args, input, kind, shard, out })
    }

    /// Returns the options of the model.
    pub fn model_options(&self, threads: NonZeroUsize) -> ModelOptions {
        ModelOptions {
            device: self.args.device,
            threads: Some(threads.get()),
            accept_f32: false,
            batch: self.args.batch as usize,
            coverage: self.args.coverage,
            sets: self.args.sets.rule(),
            precision: self.args.precision,
        }
    }

    /// Returns the format of the rows.
    pub fn format<'c>(&self, classes: &'c [String]) -> RowFormat<'c> {
        RowFormat {
            kind: self.kind,
            input: self.input,
            classes,
            probabilities: self.args.probabilities,
            features: self.args.features,
            unusual: self.args.unusual,
            rows_of_part: self.args.part_rows.into(),
        }
    }

    /// Starts the output, or continues it after its last row. `rows` is the number of rows of the source, if it decides which of
    /// them are predicted.
    ///
    /// # Errors
    /// If it cannot be written, or was written with other options.
    pub fn open<'f>(
        &self,
        rule: &PredictionRule,
        check: &ShiftCheck,
        format: &'f RowFormat<'f>,
        rows: Option<u64>,
    ) -> Result<(RowOutput<'f>, WrittenRows)> {
        if self.args.unusual && !check.compares_rows() {
            let message = format!(
                "--unusual compares rows with those of training: {}",
                check.missing().unwrap_or_default()
            );
            return Err(CliError::invalid(message).hint("leave it out, or train the run again").into());
        }
        let empty = check.detector().map(ShiftDetector::new_sums);
        let mut made_by = self.made_by(rule);
        if let Some(rows) = rows {
            made_by["rows"] = rows.into();
        }
        if let Some(url) = self.out.as_deref().and_then(CloudUrl::parse) {
            return RowOutput::open_remote(&url, self.args.resume, &made_by, format, empty);
        }
        match &self.out {
            Some(out) if self.args.resume => RowOutput::resume(out, &made_by, format, empty),
            out => Ok((RowOutput::create(out.as_deref(), &made_by, format, empty)?, WrittenRows::default())),
        }
    }

    /// Writes a row for each input, in order, and flushes the output. If `is_stopped` is true after the last batch, rows are missing,
    /// and there is no verdict.
    ///
    /// # Errors
    /// If the source fails, or the output cannot be written; the rows of all earlier batches are then written.
    pub fn write(
        &self,
        (rule, check): (&PredictionRule, &ShiftCheck),
        batches: impl Iterator<Item = Result<LogitBatch>>,
        mut output: RowOutput<'_>,
        rate: &mut Rate,
        threads: NonZeroUsize,
        is_stopped: &AtomicBool,
    ) -> Result<WrittenPredictions> {
        let mut tally = PredictTally::default();
        for batch in batches {
            let LogitBatch { inputs, logits, features, observed } = batch?;
            let predictions = rule.predictions(&logits, threads.get())?;
            let readable = inputs.iter().filter(|input| input.problem.is_none()).count();
            anyhow::ensure!(
                readable == predictions.len(),
                "{readable} inputs, but {} rows of logits",
                predictions.len()
            );
            let width = features.as_ref().map_or(0, |features| features.len() / readable.max(1));
            let mut unused_features =
                features.iter().flat_map(|features| features.chunks_exact(width.max(1)));
            // The sums are about the model, whatever mix its predictions are adapted to.
            let calibrated = rule.mix().map(|_| rule.calibrated(&logits)).transpose()?;
            let classes = rule.info().classes.len().max(1);
            let mut unused_calibrated = calibrated.iter().flat_map(|all| all.chunks_exact(classes));
            let mut unused = predictions.iter();
            let mut unused_observed = observed.iter();
            let mut rows = Vec::with_capacity(inputs.len());
            for input in inputs {
                let is_readable = input.problem.is_none();
                let prediction = if is_readable { unused.next() } else { None };
                let features = if is_readable { unused_features.next() } else { None };
                let observed = if is_readable { unused_observed.next() } else { None };
                tally.count(prediction);
                let calibrated = if is_readable { unused_calibrated.next() } else { None };
                let error = input.problem;
                rows.push(PredictedRow {
                    name: input.name,
                    prediction,
                    features,
                    error,
                    calibrated,
                    observed,
                });
            }
            output.write(&rows)?;
            rate.add(rows.len() as u64);
        }
        let weights = rule.mix().map(|mix| mix.weights.as_slice());
        let is_whole = !is_stopped.load(Ordering::Relaxed);
        let verdict = is_whole.then(|| {
            BatchVerdict::new(
                check.verdict(output.sums(), weights),
                output.sums(),
                rule.mix().map(|mix| mix.source),
            )
        });
        output.finish(verdict.as_ref())?;
        clear_line();
        Ok(WrittenPredictions { tally, verdict })
    }

    /// Prints the number of predicted inputs, or how to continue after a signal. Returns the exit of the command.
    pub fn conclude(
        &self,
        rule: &PredictionRule,
        written: &WrittenPredictions,
        before: u64,
        total: Option<u64>,
        rate: &Rate,
        stop: Stop,
    ) -> Result<Exit> {
        let is_stopped = stop.flag().load(Ordering::Relaxed);
        let tally = written.tally;
        if self.args.json {
            let mix = rule.mix().map(|mix| mix.to_json(&rule.info().classes));
            let mut summary = self.summary(tally, before, !is_stopped);
            summary["mix"] = mix.into();
            summary["verdict"] = serde_json::to_value(&written.verdict)?;
            print_json(&summary)?;
        }
        if is_stopped {
            status(&self.stopped_text(tally.rows + before, total));
            return Ok(stop.exit());
        }
        let PredictTally { rows, unread, abstained } = tally;
        let earlier = match before {
            0 => String::new(),
            before => format!(" in addition to {} from before", grouped(before)),
        };
        let place = self.out.as_ref().map(|out| format!(", written to {}", shell_quoted(out)));
        let per_second = grouped(rate.per_second().round() as u64);
        let input = self.input.word();
        let count = counted(rows, input);
        status(&format!("{count}{earlier}, {per_second} {input}s/s{}", place.unwrap_or_default()));
        if abstained > 0 {
            status(&format!("the model abstains from {}", counted(abstained, input)));
        }
        if unread > 0 {
            warn(&format!("{} could not be read: see the column `error`", counted(unread, input)));
        }
        if let Some(verdict) = &written.verdict {
            status(&verdict.sentence(input));
        }
        Ok(if rows > 0 && rows == unread { Exit::Failed } else { Exit::Done })
    }

    /// Returns the document of `--json`.
    fn summary(&self, tally: PredictTally, before: u64, is_finished: bool) -> Value {
        json!({
            "run": self.args.run.display().to_string(),
            "out": self.out.as_ref().map(|out| out.display().to_string()),
            "format": self.kind,
            "finished": is_finished,
            "rows": tally.rows + before,
            "rows_before": before,
            "unread": tally.unread,
            "abstained": tally.abstained,
        })
    }

    /// Describes how many rows were written before a signal, and how to continue.
    fn stopped_text(&self, rows: u64, total: Option<u64>) -> String {
        let of = total.map(|total| format!(" of {}", grouped(total))).unwrap_or_default();
        let done = format!("stopped after {}{of} {}s", grouped(rows), self.input.word());
        let Some(out) = &self.out else {
            return format!("{done}; rows on standard output cannot be resumed: name a file with `--out`");
        };
        let resume = if self.args.resume { "" } else { " --resume" };
        format!("{done}, written to {}\nnext: {}{resume}", shell_quoted(out), same_command(""))
    }

    /// Returns everything that rows depend on, so that a resumed output can be checked.
    fn made_by(&self, rule: &PredictionRule) -> Value {
        let args = self.args;
        let info = rule.info();
        let names: Vec<_> = args.paths.iter().map(|path| path_text(path)).collect();
        let runtime = match self.input {
            InputKind::Image => library::version().ok(),
            InputKind::Vector => None,
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "model": info.blake3,
            "calibrator": info.calibration.as_ref().map(|calibration| &calibration.calibrator),
            "held_out": info.held_out.as_ref().map(HeldOut::len),
            "format": self.kind,
            "coverage": args.coverage,
            "sets": args.sets.to_possible_value().map(|word| word.get_name().to_owned()),
            "in_every_set": rule.guarantee().scarce_classes(),
            "precision": args.precision,
            "probabilities": args.probabilities,
            "features": args.features,
            "unusual": args.unusual,
            "reference": info.reference,
            "mix": rule.mix().map(|mix| mix.to_json(&info.classes)),
            // Another runtime computes other last bits with the same network.
            "runtime": runtime,
            // The order of the classes matters for rows with lists of probabilities.
            "classes": info.classes,
            "shard": self.shard.map(InputShard::word),
            "paths": names,
            "list": args.list.as_deref().map(path_text),
        })
    }
}

impl PredictTally {
    /// Counts a row; an input without a prediction could not be read.
    fn count(&mut self, prediction: Option<&Prediction>) {
        self.rows += 1;
        self.unread += u64::from(prediction.is_none());
        self.abstained += u64::from(prediction.and_then(|prediction| prediction.abstain) == Some(true));
    }
}

fn path_text(path: &Path) -> String {
    escaped_path(path)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: PredictArgs,
    }

    fn args(words: &[&str]) -> PredictArgs {
        Program::parse_from([&["calmix", "run", "photos"], words].concat()).args
    }

    #[test]
    fn stopped_output_says_how_to_continue() {
        let text = |words: &[&str]| {
            let args = args(words);
            PredictJob::new(&args, InputKind::Image, None).unwrap().stopped_text(1_500, Some(2_000))
        };
        assert_eq!(
            text(&[]),
            "stopped after 1,500 of 2,000 images; rows on standard output cannot be resumed: name a file with `--out`"
        );
        let start = "stopped after 1,500 of 2,000 images, written to 'a b.csv'\nnext: calmix ";
        let out = ["--out", "a b.csv"];
        for (words, is_added) in [(out.to_vec(), true), ([&out[..], &["--resume"]].concat(), false)] {
            let text = text(&words);
            assert!(text.starts_with(start) && text.ends_with(" --resume") == is_added, "{text}");
        }
    }
}
