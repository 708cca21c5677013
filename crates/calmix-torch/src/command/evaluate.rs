//! `calmix evaluate` of a network on the splits of its run: its model, or the newest checkpoint of an unfinished run.

use anyhow::Result;
use calmix::command::evaluate_args::EvaluateArgs;
use calmix::evaluate::{changed_recipe, explained, show};
use calmix::exit::Exit;
use calmix::io::shown::shown;
use calmix::predict::input_kind::InputKind;
use calmix::run::read::inspect;
use calmix::terminal::status;
use calmix_train::trainer::{TrainError, evaluate_run};

pub(crate) fn run(args: &EvaluateArgs) -> Result<Exit> {
    let changed = changed_recipe(args, args.data.settings()?)?;
    let resolved = match &changed {
        Some(changed) => changed.clone(),
        None => inspect::recipe(&args.run)?,
    };
    status(&format!("evaluating {} …", shown(args.run.display())));
    match evaluate_run(&args.run, changed, args.device) {
        Ok(output) => show(args, &output, InputKind::Image)?,
        Err(TrainError::Data(problem)) => {
            let clearer = explained(&problem, args, &resolved.recipe);
            return Err(clearer.map_or_else(|| problem.into(), Into::into));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Done)
}
