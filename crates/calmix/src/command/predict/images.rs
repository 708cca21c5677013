//! `calmix predict` on images.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::args::predict::PredictArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::folder::with_model;
use crate::model::loaded_model::load_images;
use crate::predict::input_kind::InputKind;
use crate::predict::job::PredictJob;
use crate::predict::row::escaped;
use crate::process::launched::{launch_variables, shard_of_launch, threads_of_process};
use crate::process::stop::Stop;
use crate::terminal::rate::Rate;
use crate::terminal::warn;
use anyhow::Result;
use calmix_data::cloud::{CloudUrl, RemoteFolder};
use calmix_data::error::DataError;
use calmix_data::loader::Workers;
use calmix_io::shown::shown;

use crate::predict::image_batches::ImageBatches;
use crate::predict::list_reader::{ImageInput, is_stdin};

pub(super) fn run(args: &PredictArgs) -> Result<Exit> {
    let launch = launch_variables()?;
    let mut named = args.paths.iter().filter(|path| !is_stdin(path)).chain(&args.list);
    if let Some(path) = named.find(|path| !path.exists() && !CloudUrl::is_in(path)) {
        return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
    }
    for url in args.paths.iter().filter_map(|path| CloudUrl::of(path)) {
        // Before the model is loaded: the URL may be wrong, or the credentials missing.
        RemoteFolder::open(&url).map_err(DataError::from)?;
    }
    let job = PredictJob::new(args, InputKind::Image, launch.as_ref().and_then(shard_of_launch))?;
    let threads = threads_of_process(args.threads, launch.as_ref());
    let folder = with_model(&args.run, "predict", &args.paths)?;
    let stop = Stop::listen()?;
    stop.end_at_second();
    let Some(model) = load_images(folder, &job.model_options(threads), &stop)? else {
        return Ok(stop.exit());
    };
    if let Some(path) = args.paths.iter().find(|path| is_of_vectors(path)) {
        let path = shown(path.display());
        let run = shown(args.run.display());
        let message = format!("{path} is a file of vectors, but {run} was trained on images");
        let hint = "name images, or a run that was trained on vectors";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    for sentence in model.guarantee().missing() {
        warn(&sentence);
    }

    let input = ImageInput { paths: args.paths.clone(), list: args.list.clone(), shard: job.shard };
    let total = input.count(stop.flag())?;
    // A list or a shard may be empty: a job that shares its images out has such parts.
    let may_be_empty = args.list.is_some() || job.shard.is_some();
    if total == Some(0) && !may_be_empty {
        return Err(nothing_found(args).into());
    }
    let format = job.format(model.classes());
    let (output, written) = job.open(model.rule(), &format, None)?;
    let mut list = input.read(stop.flag())?;
    if let Some(before) = written.rows.checked_sub(1) {
        for image in list.by_ref().take(usize::try_from(before)?) {
            image?;
        }
        let last = list.next().transpose()?.map(|image| escaped(image.path.as_encoded_bytes()));
        let same = written.check_last(&format, last.as_deref());
        // A signal ends the list early.
        if !stop.flag().load(Ordering::Relaxed) {
            same?;
        }
    }
    let mut rate = Rate::new(total, written.rows, InputKind::Image.word());
    let workers = Workers { threads, ..Workers::default() };
    let batches = ImageBatches::new(&model, list, workers, args.features, stop.flag())?;
    let tally = job.write(model.rule(), batches, output, &mut rate, threads)?;
    let is_stopped = stop.flag().load(Ordering::Relaxed);
    if !is_stopped && tally.rows + written.rows == 0 && !may_be_empty {
        return Err(nothing_found(args).into());
    }
    job.conclude(tally, written.rows, total, &rate, stop)
}

/// Whether a path is named as files of vectors are.
fn is_of_vectors(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["npy", "npz", "parquet", "safetensors"].iter().any(|of_vectors| ending == *of_vectors)
}

/// The error for files and folders without any image.
fn nothing_found(args: &PredictArgs) -> CliError {
    let places = args.paths.iter().map(|path| shown(path.display()));
    let places = places.collect::<Vec<_>>().join(", ");
    CliError::failed(format!("{places}: no image found"))
        .hint("name JPEG, PNG or WebP images, folders of them, or WebDataset shards (.tar)")
}
