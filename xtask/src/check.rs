//! `cargo xtask check`: all checks that must pass before a change is merged, cheapest first.

mod advisories;
mod corpus;
mod layout;
mod miri;
pub(crate) mod publish;
pub(crate) mod python;
mod snippets;
mod step;
mod tier;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::human_time::human_time;
use crate::setup::libtorch;
use step::{Action, STEPS, Step};
use tier::{SkippedTests, Tier};

/// Runs the named steps, or all of the tier, and stops at the first failure.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let start = Instant::now();
    let (tier, names) = Tier::parse(arguments);
    let skipped = SkippedTests::new()?;
    let mut passed = Vec::new();
    for (step, action) in prepare(chosen(tier, names)?, tier)? {
        println!("\n── {}: {}\n   {action}", step.name, step.what);
        let began = Instant::now();
        let outcome = perform(step, action, &skipped);
        let took = began.elapsed();
        outcome.map_err(|error| {
            let (name, took) = (step.name, human_time(took));
            anyhow!(
                "{error:#}\ncheck: the step `{name}` failed after {took}; run it alone with `cargo xtask check {name}`"
            )
        })?;
        passed.push((step.name, took));
    }
    summarise(&passed, start.elapsed());
    skipped.summarise(tier)
}

/// Compiles the packages that do not need libtorch, so that the cores are busy while it is being installed.
pub(crate) fn warm() -> Result<()> {
    if libtorch::require().is_ok() {
        return Ok(());
    }
    let start = Instant::now();
    for mut command in step::warming() {
        // A failure is expected: crates that need libtorch cannot be compiled yet.
        command.status().context("cannot start cargo")?;
    }
    println!("warm: compiled everything that does not need libtorch in {}", human_time(start.elapsed()));
    Ok(())
}

/// Returns the steps with these names in their usual order; without names, those of the tier.
fn chosen(tier: Tier, names: &[&str]) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("check has no step `{unknown}`; its steps are {}", known.join(", "));
    }
    let wanted = |step: &&Step| {
        if names.is_empty() { step.tier <= tier } else { names.contains(&step.name) }
    };
    Ok(STEPS.iter().filter(wanted).collect())
}

/// Finds all tools before the first step runs, so that a missing one is reported immediately.
fn prepare(steps: Vec<&'static Step>, tier: Tier) -> Result<Vec<(&'static Step, Action)>> {
    let prepared = steps.into_iter().map(|step| {
        let action =
            (step.action)(tier).with_context(|| format!("check: the step `{}` cannot run", step.name))?;
        Ok((step, action))
    });
    prepared.collect()
}

fn perform(step: &Step, action: Action, skipped: &SkippedTests) -> Result<()> {
    match action {
        Action::Function { run, .. } => run(),
        Action::Skip { reason } => skipped.add(&format!("the step `{}`", step.name), reason),
        Action::Command(mut command) => {
            skipped.listen(&mut command);
            let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
            ensure!(status.success(), "its command ended with {status}");
            Ok(())
        }
    }
}

fn summarise(passed: &[(&str, Duration)], total: Duration) {
    println!();
    for (name, took) in passed {
        println!("{name:<10} {:>12}", human_time(*took));
    }
    let steps = if passed.len() == 1 { "step" } else { "steps" };
    println!("check: {} {steps} passed in {}", passed.len(), human_time(total));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tier: Tier, names: &[&str]) -> Vec<&'static str> {
        chosen(tier, names).expect("known steps").iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_chosen_by_name_in_their_own_order() {
        assert_eq!(names(Tier::Usual, &["tests", "fmt"]), ["fmt", "tests"]);
        assert_eq!(names(Tier::Usual, &["raster"]), ["raster"], "by name, whatever the tier");
        let refused = chosen(Tier::Usual, &["fmt", "linting"]).err().expect("no such step").to_string();
        assert!(refused.contains("`linting`") && refused.contains("clippy"), "{refused}");
    }

    #[test]
    fn each_tier_has_the_steps_of_the_one_before() {
        let quick = ["fmt", "spelling", "layout", "deny", "clippy", "tests"];
        assert_eq!(names(Tier::Quick, &[]), quick);
        let usual = names(Tier::Usual, &[]);
        assert!(quick.iter().chain(&["docs", "doctests"]).all(|name| usual.contains(name)), "{usual:?}");
        assert!(!usual.contains(&"raster"), "{usual:?}");
        assert_eq!(names(Tier::Nightly, &[]).len(), STEPS.len());
    }
}
