//! `calmix predict` on vectors.

use anyhow::{Context, Result};
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_io::shown::shown;

use crate::args::predict::PredictArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::folder::with_model;
use crate::model::vector_model::VectorModel;
use crate::predict::input_kind::InputKind;
use crate::predict::job::PredictJob;
use crate::predict::vector_batches::{VectorBatches, row_name};
use crate::process::launched::{launch_variables, shard_of_launch, threads_of_process};
use crate::process::stop::Stop;
use crate::terminal::rate::Rate;
use crate::terminal::warn;

pub(super) fn run(args: &PredictArgs) -> Result<Exit> {
    let launch = launch_variables()?;
    let job = PredictJob::new(args, InputKind::Vector, launch.as_ref().and_then(shard_of_launch))?;
    let threads = threads_of_process(args.threads, launch.as_ref());
    let folder = with_model(&args.run, "predict", &args.paths)?;
    let model = VectorModel::load(folder, &job.model_options(threads))?;
    let source = open(args, &model)?;
    for sentence in model.rule().guarantee().missing() {
        warn(&sentence);
    }

    let stop = Stop::listen()?;
    stop.end_at_second();
    let rows = job.shard.map_or(0..source.rows(), |shard| shard.rows(source.rows()));
    let total = Some(rows.end - rows.start);
    let format = job.format(&model.rule().info().classes);
    let (output, written) = job.open(model.rule(), &format, Some(source.rows()))?;
    let next = rows.start.saturating_add(written.rows);
    if written.rows > 0 {
        // Found without reading the rows before it.
        let last = next - 1;
        let block = source.unchecked_blocks(last, 1).next().filter(|_| next <= rows.end).transpose()?;
        let name =
            block.map(|block| row_name(block.ids.and_then(|ids| ids.into_iter().next()).as_deref(), last));
        written.check_last(&format, name.as_deref())?;
    }
    let mut rate = Rate::new(total, written.rows, InputKind::Vector.word());
    let batches = VectorBatches::new(&model, source, next..rows.end, threads.get(), stop.flag())?;
    let tally = job.write(model.rule(), batches, output, &mut rate, threads)?;
    job.conclude(tally, written.rows, total, &rate, stop)
}

/// Opens the vectors, and checks that they are such as the model was trained on.
fn open(args: &PredictArgs, model: &VectorModel) -> Result<VectorSource> {
    let run = shown(args.run.display());
    let width = model.width();
    let invalid = |message: &str| {
        CliError::invalid(format!("{run} was trained on vectors of {width} numbers: {message}"))
    };
    let [path] = &args.paths[..] else {
        let message = "they are predicted from one file, or from one folder of files";
        return Err(invalid(message).hint("name one path, without --list").into());
    };
    if args.list.is_some() || path.as_os_str() == "-" {
        let message = "they cannot be predicted from a list of paths";
        return Err(invalid(message).hint("name the file of the vectors itself").into());
    }
    if !path.exists() {
        return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
    }
    let mut options = VectorOptions { vector_column: args.vector_column.clone(), ..VectorOptions::default() };
    options.columns.path.clone_from(&args.path_column);
    let source = VectorSource::open(path, &options)
        .with_context(|| format!("{run} was trained on vectors of {width} numbers"))?;
    model.check_width(&args.run, path, source.width())?;
    Ok(source)
}
