//! Two processes with one output, started together.

use std::process::Command;
use std::thread;

use super::{CommandOutput, Workspace};
use crate::tier;

/// Runs a command twice at the same time.
fn twice(workspace: &Workspace, command: &(impl Fn() -> Command + Sync)) -> [CommandOutput; 2] {
    thread::scope(|scope| {
        let started = [0, 1].map(|_| scope.spawn(|| workspace.end(command())));
        started.map(|process| process.join().unwrap())
    })
}

/// Runs a command twice at the same time, in a few rounds. At least one succeeds; the other one does, too, or is refused with
/// one of these sentences. `reset` comes before and `holds` after each round.
#[track_caller]
pub fn one_wins(
    workspace: &Workspace,
    command: impl Fn() -> Command + Sync,
    refusals: &[&str],
    reset: impl Fn(),
    holds: impl Fn(&str),
) {
    for round in 0..tier::number("CALMIX_ROUNDS", 1, 10) {
        reset();
        let ended = twice(workspace, &command);
        let said = ended.each_ref().map(|one| format!("exit {}: {}", one.code, one.stderr)).join("\n");
        let case = format!("round {round}\n{said}");
        assert!(ended.iter().any(|one| one.code == 0), "{case}");
        for lost in ended.iter().filter(|one| one.code != 0) {
            assert!(refusals.iter().any(|refusal| lost.stderr.contains(refusal)), "{case}");
        }
        holds(&case);
    }
}
