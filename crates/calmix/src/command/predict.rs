//! `calmix predict`: labels and calibrated confidence of images.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix::Model;
use calmix::data::loader::Workers;
use calmix::io::shown::shown;
use calmix::metrics::held_out::{HeldOut, SetRule};
use calmix::model::ModelOptions;
use calmix::recipe::device::Device;
use calmix::train::launch::LaunchInfo;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, grouped, shell_quoted};
use crate::model_folder::with_model;
use crate::predict::input_shard::InputShard;
use crate::predict::list_reader::{ImageInput, is_stdin};
use crate::predict::output::{RowOutput, WrittenRows};
use crate::predict::rate::Rate;
use crate::predict::row::{RowFormat, RowKind, escaped};
use crate::predict::{PredictTally, predict_list};
use crate::same_command::same_command;
use crate::stop::Stop;
use crate::terminal::{clear_line, status, warn};

/// Predict images: label, calibrated confidence, prediction set, and whether to abstain
///
/// Reads the model of a finished run, not its dataset. Writes one row per image, in the order of the paths: as CSV to
/// standard output, or to a file with --out. Folders are read recursively, in the byte order of the paths; a WebDataset
/// shard (.tar) stands for the images in it. An image that cannot be read gets a row with the reason in the column
/// `error`.
#[derive(Debug, Args)]
#[command(after_long_help = COLUMNS)]
pub(crate) struct PredictArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Images, folders, WebDataset shards; `-` reads paths from standard input, one per line
    #[arg(value_name = "PATH", required_unless_present = "list")]
    paths: Vec<PathBuf>,
    /// File with more paths, one per line
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// File to write to; .jsonl for JSON, .parquet for a folder of Parquet files [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format of the rows [default: by the name of the file, else csv]
    #[arg(long, value_enum)]
    format: Option<RowKind>,
    /// Rows per Parquet file; a kill loses at most one file of rows
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    part_rows: u32,
    /// Continue an interrupted file, or start it if it does not exist
    #[arg(long, requires = "out")]
    resume: bool,
    /// Probability with which a prediction set must contain the true class
    #[arg(long, default_value_t = ModelOptions::default().coverage)]
    coverage: f64,
    /// How prediction sets are formed: lac gives the smallest, aps adapts to the uncertainty of the image, lac-by-class has
    /// the coverage in each class
    #[arg(long, value_enum, default_value = "lac")]
    sets: SetKind,
    /// Share of the answers that must be right; the model abstains from less confident ones
    #[arg(long, default_value_t = ModelOptions::default().precision)]
    precision: f64,
    /// Also write the probabilities of all classes
    #[arg(long)]
    probabilities: bool,
    /// Predict one of N shards of the images, such as 2/4, into FILE-2-of-4; the hash of its path puts an image into a
    /// shard [default: the rank, under torchrun or srun]
    #[arg(long, value_name = "I/N")]
    shard: Option<InputShard>,
    /// Device: cpu, cuda, cuda:1, mps [default: the fastest one]
    #[arg(long)]
    device: Option<Device>,
    /// Threads for the network and for reading images [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Images in memory at a time, fewer if they are large; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
}

/// The values of `--sets`, one for each [`SetRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SetKind {
    Lac,
    Aps,
    LacByClass,
}

const COLUMNS: &str = "\
Columns:
  path        path of the image; bytes that are not UTF-8, control characters and \\ are written
              \\xNN
  label       the most probable class
  confidence  its calibrated probability
  margin      its probability minus that of the second class
  set         prediction set that contains the true class with probability at least --coverage
              (conformal), most probable class first; separated by | in CSV, a list in JSON and
              Parquet
  abstain     true if the confidence before calibration is below the threshold for --precision
  error       why the image could not be read; the other columns are then empty
  p(CLASS)    with --probabilities, the calibrated probability of each class; in JSON and Parquet
              the list `probabilities`, in the order of `classes` in model.json and in
              FILE.predict.json

`set` and `abstain` are based on labels held out from training, and are empty without such labels.
Both guarantees assume that the images are like the held-out ones; the precision guarantee holds
with a probability of 90%. --sets lac-by-class needs 9 held-out labels per class for a coverage of
90%; a class with fewer is in every set. See docs/guarantees.md.";

impl PredictArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let launch = LaunchInfo::from_environment(|name| std::env::var(name).ok())
            .map_err(|error| CliError::invalid(error.to_string()))?;
        let mut named = self.paths.iter().filter(|path| !is_stdin(path)).chain(&self.list);
        if let Some(path) = named.find(|path| !path.exists()) {
            return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
        }
        if self.out.is_none() && self.row_kind() == RowKind::Parquet {
            let message = "Parquet output is a folder of files and cannot be written to standard output";
            return Err(CliError::invalid(message)
                .hint("name the folder, for example `--out predictions.parquet`")
                .into());
        }
        let shard = self.shard.or_else(|| launch.as_ref().and_then(InputShard::of_launch));
        let out = self.out.as_ref().map(|out| shard.map_or(out.clone(), |shard| shard.file(out)));
        let threads = self.threads(launch.as_ref());
        let model = self.model(threads)?;
        for sentence in model.guarantee().missing() {
            warn(&sentence);
        }

        let classes = model.classes();
        let format = RowFormat {
            kind: self.row_kind(),
            classes,
            probabilities: self.probabilities,
            rows_of_part: self.part_rows.into(),
        };
        let made_by = self.made_by(&model, shard);
        let stop = Stop::listen()?;
        stop.end_at_second();
        let input = ImageInput { paths: self.paths.clone(), list: self.list.clone(), shard };
        let total = input.count(stop.flag())?;
        // A list or a shard may be empty: a job that shares its images out has such parts.
        let may_be_empty = self.list.is_some() || shard.is_some();
        if total == Some(0) && !may_be_empty {
            return Err(self.nothing_found().into());
        }
        let (mut output, written) = match &out {
            Some(out) if self.resume => RowOutput::resume(out, &made_by, &format)?,
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
                let message =
                    format!("image {} is not the one that was predicted before", grouped(before + 1));
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
            return Err(self.nothing_found().into());
        }
        if stopped {
            status(&self.stopped(rows + written.rows, total, out.as_deref()));
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
    fn nothing_found(&self) -> CliError {
        let places = self.paths.iter().map(|path| shown(path.display()));
        let places = places.collect::<Vec<_>>().join(", ");
        CliError::failed(format!("{places}: no image found"))
            .hint("name JPEG, PNG or WebP images, folders of them, or WebDataset shards (.tar)")
    }

    /// Says how many rows were written before a signal, and how to continue.
    fn stopped(&self, rows: u64, total: Option<u64>, out: Option<&Path>) -> String {
        let of = total.map(|total| format!(" of {}", grouped(total))).unwrap_or_default();
        let done = format!("stopped after {}{of} images", grouped(rows));
        let Some(out) = out else {
            return format!("{done}; rows on standard output cannot be resumed: name a file with `--out`");
        };
        let resume = if self.resume { "" } else { " --resume" };
        format!("{done}, written to {}\nnext: {}{resume}", shell_quoted(out), same_command(""))
    }

    fn model(&self, threads: NonZeroUsize) -> Result<Model> {
        let sets = match self.sets {
            SetKind::Lac => SetRule::Lac,
            SetKind::Aps => SetRule::Aps,
            SetKind::LacByClass => SetRule::LacByClass,
        };
        for (name, value) in [("--coverage", self.coverage), ("--precision", self.precision)] {
            if !(value > 0.0 && value < 1.0) {
                let message = format!("{name} is {value}, which is not between 0 and 1");
                return Err(CliError::invalid(message).into());
            }
        }
        let options = ModelOptions {
            device: self.device,
            threads: Some(threads.get()),
            batch: self.batch as usize,
            coverage: self.coverage,
            sets,
            precision: self.precision,
        };
        Ok(Model::load_with(with_model(&self.run, "predict", &self.paths)?, &options)?)
    }

    /// Returns the threads of this process: the processes of a machine share its cores.
    fn threads(&self, launch: Option<&LaunchInfo>) -> NonZeroUsize {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).get();
        let own = cores / launch.map_or(1, |launch| launch.local_world.max(1));
        NonZeroUsize::new(self.threads.map_or(own, usize::from)).unwrap_or(NonZeroUsize::MIN)
    }

    fn row_kind(&self) -> RowKind {
        let ending = self.out.as_ref().and_then(|out| out.extension()).and_then(|ending| ending.to_str());
        self.format.unwrap_or(match ending {
            Some("jsonl" | "json") => RowKind::Jsonl,
            Some("parquet") => RowKind::Parquet,
            _ => RowKind::Csv,
        })
    }

    /// Everything that a row depends on, so that a resumed output can be checked.
    fn made_by(&self, model: &Model, shard: Option<InputShard>) -> Value {
        let names: Vec<_> = self.paths.iter().map(|path| path_text(path)).collect();
        let info = model.info();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "model": info.blake3,
            "calibrator": info.calibration.as_ref().map(|calibration| &calibration.calibrator),
            "held_out": info.held_out.as_ref().map(HeldOut::len),
            "format": self.row_kind(),
            "coverage": self.coverage,
            "sets": self.sets.to_possible_value().map(|word| word.get_name().to_owned()),
            "in_every_set": model.guarantee().scarce_classes(),
            "precision": self.precision,
            "probabilities": self.probabilities,
            // Their order, for rows that are lists.
            "classes": self.probabilities.then(|| model.classes()),
            "shard": shard.map(InputShard::word),
            "paths": names,
            "list": self.list.as_deref().map(path_text),
        })
    }
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
