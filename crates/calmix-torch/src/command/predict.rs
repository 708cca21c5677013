//! `calmix predict`: labels and calibrated confidence of images.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix::command::predict_args::{PredictArgs, RowKind, SetKind};
use calmix::data::loader::Workers;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::{counted, grouped, shell_quoted};
use calmix::input_shard::InputShard;
use calmix::io::shown::shown;
use calmix::metrics::held_out::{HeldOut, SetRule};
use calmix::rate::Rate;
use calmix::stop::Stop;
use calmix::terminal::{clear_line, status, warn};
use calmix_train::launch::LaunchInfo;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::launch_args::shard_of_launch;
use crate::model::{Model, ModelOptions};
use crate::model_folder::with_model;
use crate::predict::list_reader::{ImageInput, is_stdin};
use crate::predict::output::{RowOutput, WrittenRows};
use crate::predict::row::{RowFormat, escaped};
use crate::predict::{PredictTally, predict_list};
use crate::same_command::same_command;

pub(crate) fn run(args: &PredictArgs) -> Result<Exit> {
    let launch = LaunchInfo::from_environment(|name| std::env::var(name).ok())
        .map_err(|error| CliError::invalid(error.to_string()))?;
    let mut named = args.paths.iter().filter(|path| !is_stdin(path)).chain(&args.list);
    if let Some(path) = named.find(|path| !path.exists()) {
        return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
    }
    if args.out.is_none() && row_kind(args) == RowKind::Parquet {
        let message = "Parquet output is a folder of files and cannot be written to standard output";
        return Err(CliError::invalid(message)
            .hint("name the folder, for example `--out predictions.parquet`")
            .into());
    }
    let shard = args.shard.or_else(|| launch.as_ref().and_then(shard_of_launch));
    let out = args.out.as_ref().map(|out| shard.map_or(out.clone(), |shard| shard.file(out)));
    let threads = threads(args, launch.as_ref());
    let model = load_model(args, threads)?;
    for sentence in model.guarantee().missing() {
        warn(&sentence);
    }

    let classes = model.classes();
    let format = RowFormat {
        kind: row_kind(args),
        classes,
        probabilities: args.probabilities,
        rows_of_part: args.part_rows.into(),
    };
    let made_by = made_by(args, &model, shard);
    let stop = Stop::listen()?;
    stop.end_at_second();
    let input = ImageInput { paths: args.paths.clone(), list: args.list.clone(), shard };
    let total = input.count(stop.flag())?;
    // A list or a shard may be empty: a job that shares its images out has such parts.
    let may_be_empty = args.list.is_some() || shard.is_some();
    if total == Some(0) && !may_be_empty {
        return Err(nothing_found(args).into());
    }
    let (mut output, written) = match &out {
        Some(out) if args.resume => RowOutput::resume(out, &made_by, &format)?,
        out => (RowOutput::create(out.as_deref(), &made_by, &format)?, WrittenRows::default()),
    };
    let mut list = input.read(stop.flag())?;
    if let Some(before) = written.rows.checked_sub(1) {
        for image in list.by_ref().take(usize::try_from(before)?) {
            image?;
        }
        let skipped = list.next().transpose()?;
        let is_same = |path: &[u8]| written.last.starts_with(&format.beginning(&escaped(path)));
        let is_changed = !skipped.is_some_and(|image| is_same(image.path.as_encoded_bytes()));
        if is_changed && !stop.flag().load(Ordering::Relaxed) {
            let message = format!("image {} is not the one that was predicted before", grouped(before + 1));
            let hint = "the list of images has changed: predict it into another file";
            return Err(CliError::invalid(message).hint(hint).into());
        }
    }
    let mut rate = Rate::new(total, written.rows);
    let workers = Workers { threads, ..Workers::default() };
    let tally = predict_list(&model, list, workers, &mut output, &mut rate, stop.flag())?;
    output.finish()?;
    clear_line();
    let stopped = stop.flag().load(Ordering::Relaxed);
    let PredictTally { rows, unread, .. } = tally;
    if !stopped && rows + written.rows == 0 && !may_be_empty {
        return Err(nothing_found(args).into());
    }
    if stopped {
        status(&stopped_text(args, rows + written.rows, total, out.as_deref()));
    } else {
        conclude(tally, &written, out.as_deref(), rate.per_second());
    }
    Ok(match stopped {
        true => stop.exit(),
        false if rows > 0 && rows == unread => Exit::Failed,
        false => Exit::Done,
    })
}

/// The error for files and folders without any image.
fn nothing_found(args: &PredictArgs) -> CliError {
    let places = args.paths.iter().map(|path| shown(path.display()));
    let places = places.collect::<Vec<_>>().join(", ");
    CliError::failed(format!("{places}: no image found"))
        .hint("name JPEG, PNG or WebP images, folders of them, or WebDataset shards (.tar)")
}

/// Says how many rows were written before a signal, and how to continue.
fn stopped_text(args: &PredictArgs, rows: u64, total: Option<u64>, out: Option<&Path>) -> String {
    let of = total.map(|total| format!(" of {}", grouped(total))).unwrap_or_default();
    let done = format!("stopped after {}{of} images", grouped(rows));
    let Some(out) = out else {
        return format!("{done}; rows on standard output cannot be resumed: name a file with `--out`");
    };
    let resume = if args.resume { "" } else { " --resume" };
    format!("{done}, written to {}\nnext: {}{resume}", shell_quoted(out), same_command(""))
}

fn load_model(args: &PredictArgs, threads: NonZeroUsize) -> Result<Model> {
    let sets = match args.sets {
        SetKind::Lac => SetRule::Lac,
        SetKind::Aps => SetRule::Aps,
        SetKind::LacByClass => SetRule::LacByClass,
    };
    for (name, value) in [("--coverage", args.coverage), ("--precision", args.precision)] {
        if !(value > 0.0 && value < 1.0) {
            let message = format!("{name} is {value}, which is not between 0 and 1");
            return Err(CliError::invalid(message).into());
        }
    }
    let options = ModelOptions {
        device: args.device,
        threads: Some(threads.get()),
        batch: args.batch as usize,
        coverage: args.coverage,
        sets,
        precision: args.precision,
    };
    Ok(Model::load_with(with_model(&args.run, "predict", &args.paths)?, &options)?)
}

/// Returns the threads of this process: the processes of a machine share its cores.
fn threads(args: &PredictArgs, launch: Option<&LaunchInfo>) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).get();
    let own = cores / launch.map_or(1, |launch| launch.local_world.max(1));
    NonZeroUsize::new(args.threads.map_or(own, usize::from)).unwrap_or(NonZeroUsize::MIN)
}

fn row_kind(args: &PredictArgs) -> RowKind {
    let ending = args.out.as_ref().and_then(|out| out.extension()).and_then(|ending| ending.to_str());
    args.format.unwrap_or(match ending {
        Some("jsonl" | "json") => RowKind::Jsonl,
        Some("parquet") => RowKind::Parquet,
        _ => RowKind::Csv,
    })
}

/// Everything that a row depends on, so that a resumed output can be checked.
fn made_by(args: &PredictArgs, model: &Model, shard: Option<InputShard>) -> Value {
    let names: Vec<_> = args.paths.iter().map(|path| path_text(path)).collect();
    let info = model.info();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "model": info.blake3,
        "calibrator": info.calibration.as_ref().map(|calibration| &calibration.calibrator),
        "held_out": info.held_out.as_ref().map(HeldOut::len),
        "format": row_kind(args),
        "coverage": args.coverage,
        "sets": args.sets.to_possible_value().map(|word| word.get_name().to_owned()),
        "in_every_set": model.guarantee().scarce_classes(),
        "precision": args.precision,
        "probabilities": args.probabilities,
        // Their order, for rows that are lists.
        "classes": args.probabilities.then(|| model.classes()),
        "shard": shard.map(InputShard::word),
        "paths": names,
        "list": args.list.as_deref().map(path_text),
    })
}

/// Shows the number of predicted, abstained and unreadable images.
fn conclude(tally: PredictTally, written: &WrittenRows, out: Option<&Path>, per_second: f64) {
    let PredictTally { rows, unread, abstained } = tally;
    let before = match written.rows {
        0 => String::new(),
        rows => format!(" in addition to {} from before", grouped(rows)),
    };
    let place = out.map(|out| format!(", written to {}", shell_quoted(out))).unwrap_or_default();
    let rate = grouped(per_second.round() as u64);
    status(&format!("{}{before}, {rate} images/s{place}", counted(rows, "image")));
    if abstained > 0 {
        status(&format!("the model abstains from {}", counted(abstained, "image")));
    }
    if unread > 0 {
        warn(&format!("{} could not be read: see the column `error`", counted(unread, "image")));
    }
}

fn path_text(path: &Path) -> String {
    escaped(path.as_os_str().as_encoded_bytes())
}
