//! `calmix predict`: labels with calibrated confidence, for images or for vectors.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use calmix_data::cloud::{CloudUrl, RemoteFolder};
use calmix_data::error::DataError;
use calmix_data::loader::Workers;
use calmix_data::source::vectors;
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_io::shown::{escaped_path, shown};

use crate::args::predict::PredictArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::folder::{input_kind, with_model};
use crate::model::loaded_model::load_images;
use crate::model::vector_model::VectorModel;
use crate::predict::image_batches::ImageBatches;
use crate::predict::input::InputKind;
use crate::predict::job::PredictJob;
use crate::predict::list_reader::{ImageInput, is_stdin};
use crate::predict::mix_choice::rule_of_mix;
use crate::predict::vector_batches::{VectorBatches, row_name};
use crate::process::launched::{launch_variables, shard_of_launch, threads_of_process};
use crate::process::stop::Stop;
use crate::terminal::rate::Rate;
use crate::terminal::warn;

pub(super) fn run(args: &PredictArgs) -> Result<Exit> {
    match input_kind(&args.run) {
        InputKind::Image => predict_images(args),
        InputKind::Vector => predict_vectors(args),
    }
}

fn predict_images(args: &PredictArgs) -> Result<Exit> {
    let launch = launch_variables()?;
    let mut named = args.paths.iter().filter(|path| !is_stdin(path)).chain(&args.list);
    if let Some(path) = named.find(|path| !path.exists() && !CloudUrl::is_url(path)) {
        return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
    }
    for url in args.paths.iter().filter_map(|path| CloudUrl::parse(path)) {
        // Check the destination before the model is loaded: the URL may be wrong, or the credentials missing.
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
    if let Some(path) = args.paths.iter().find(|path| is_vector_file(path)) {
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
    // A list or a shard may be empty, for example in a job that divides few images among many tasks.
    let may_be_empty = args.list.is_some() || job.shard.is_some();
    if total == Some(0) && !may_be_empty {
        return Err(no_images_error(args).into());
    }
    let workers = Workers { threads, ..Workers::default() };
    let rule = rule_of_mix(
        args,
        (model.rule(), model.shift_check()),
        &job.model_options(threads),
        job.shard.is_some(),
        stop.flag(),
        || ImageBatches::new(&model, input.read(stop.flag())?, workers, false, stop.flag()),
    )?;
    let Some(rule) = rule else { return Ok(stop.exit()) };
    let format = job.format(model.classes());
    let (output, written) = job.open(&rule, model.shift_check(), &format, None)?;
    let mut list = input.read(stop.flag())?;
    if let Some(before) = written.rows.checked_sub(1) {
        for image in list.by_ref().take(usize::try_from(before)?) {
            image?;
        }
        let last = list.next().transpose()?.map(|image| escaped_path(&image.path));
        let same = written.check_last(&format, last.as_deref());
        // After a signal the list may be incomplete.
        if !stop.flag().load(Ordering::Relaxed) {
            same?;
        }
    }
    let mut rate = Rate::new(total, written.rows, InputKind::Image.word());
    let batches = ImageBatches::new(&model, list, workers, args.features, stop.flag())?;
    let rules = (&rule, model.shift_check());
    let predicted = job.write(rules, batches, output, &mut rate, threads, stop.flag())?;
    let is_stopped = stop.flag().load(Ordering::Relaxed);
    if !is_stopped && predicted.tally.rows + written.rows == 0 && !may_be_empty {
        return Err(no_images_error(args).into());
    }
    job.conclude(&rule, &predicted, written.rows, total, &rate, stop)
}

/// Returns whether the extension is that of a vector file. A CSV is not one here, because it may be a list of paths.
fn is_vector_file(path: &Path) -> bool {
    VectorSource::is_named(path)
        && !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// Returns the error for files and folders without any image.
fn no_images_error(args: &PredictArgs) -> CliError {
    let places = args.paths.iter().map(|path| shown(path.display()));
    let places = places.collect::<Vec<_>>().join(", ");
    CliError::failed(format!("{places}: no image found"))
        .hint("name JPEG, PNG or WebP images, folders of them, or WebDataset shards (.tar)")
}

fn predict_vectors(args: &PredictArgs) -> Result<Exit> {
    let launch = launch_variables()?;
    let job = PredictJob::new(args, InputKind::Vector, launch.as_ref().and_then(shard_of_launch))?;
    let threads = threads_of_process(args.threads, launch.as_ref());
    let folder = with_model(&args.run, "predict", &args.paths)?;
    let model = VectorModel::load(folder, &job.model_options(threads))?;
    let source = open_vectors(args, &model)?;
    for sentence in model.rule().guarantee().missing() {
        warn(&sentence);
    }

    let stop = Stop::listen()?;
    stop.end_at_second();
    let rows = job.shard.map_or(0..source.rows(), |shard| shard.rows(source.rows()));
    let total = Some(rows.end - rows.start);
    let rule = rule_of_mix(
        args,
        (model.rule(), model.shift_check()),
        &job.model_options(threads),
        job.shard.is_some(),
        stop.flag(),
        || {
            Ok(VectorBatches::new(
                &model,
                open_vectors(args, &model)?,
                rows.clone(),
                threads.get(),
                stop.flag(),
            )?)
        },
    )?;
    let Some(rule) = rule else { return Ok(stop.exit()) };
    let format = job.format(&model.rule().info().classes);
    let (output, written) = job.open(&rule, model.shift_check(), &format, Some(source.rows()))?;
    let next = rows.start.saturating_add(written.rows);
    if written.rows > 0 {
        // The source finds a row without reading those before it.
        let last = next - 1;
        let block = source.unchecked_blocks(last, 1).next().filter(|_| next <= rows.end).transpose()?;
        let name =
            block.map(|block| row_name(block.ids.and_then(|ids| ids.into_iter().next()).as_deref(), last));
        written.check_last(&format, name.as_deref())?;
    }
    let mut rate = Rate::new(total, written.rows, InputKind::Vector.word());
    let batches = VectorBatches::new(&model, source, next..rows.end, threads.get(), stop.flag())?;
    let rules = (&rule, model.shift_check());
    let predicted = job.write(rules, batches, output, &mut rate, threads, stop.flag())?;
    job.conclude(&rule, &predicted, written.rows, total, &rate, stop)
}

/// Opens the vectors, and checks their width against the model.
fn open_vectors(args: &PredictArgs, model: &VectorModel) -> Result<VectorSource> {
    let run = shown(args.run.display());
    let width = model.width();
    let invalid = |message: &str| {
        CliError::invalid(format!("{run} was trained on vectors of {width} numbers: {message}"))
    };
    let sets = model.head().projection().sets();
    let paths = &args.paths[..];
    if args.list.is_some() || paths.iter().any(|path| path.as_os_str() == "-") {
        let message = "they cannot be predicted from a list of paths";
        return Err(invalid(message).hint("name the file of the vectors itself").into());
    }
    // One file may hold the features of all sets, joined.
    let (([path], _) | ([path, ..], true)) = (paths, paths.len() == sets.len()) else {
        if sets.len() > 1 {
            let message = format!("they consist of {} sets of features", sets.len());
            return Err(invalid(&message)
                .hint("name one path for each set, in the order of training")
                .into());
        }
        let message = "they are predicted from one file, or from one folder of files";
        return Err(invalid(message).hint("name one path, without --list").into());
    };
    if let Some(path) = paths.iter().find(|path| !path.exists()) {
        return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
    }
    let mut options = VectorOptions { vector_column: args.vector_column.clone(), ..VectorOptions::default() };
    options.columns.path.clone_from(&args.path_column);
    let source = vectors::open_sets(paths, false, &options)
        .with_context(|| format!("{run} was trained on vectors of {width} numbers"))?;
    model.check_width(&args.run, path, source.width(), &source.sets())?;
    Ok(source)
}
