//! More than ten thousand damaged files of nine formats: accepted or refused in words, never a panic, never much
//! memory.
//!
//! Every mutant goes through the source that reads its format, as a file among sound ones. A refusal names a file
//! of the dataset and leaves nothing behind; what is accepted reads back whole, and is the same when it is prepared
//! again.

mod kinds;
mod mutate;
mod repair;
mod stage;

use std::panic::{AssertUnwindSafe, catch_unwind};

use calmix_core::rng::{Domain, Seed};
use calmix_testkit::{memory, tier};

use kinds::Kind;
use stage::{Outcome, Stage};

const EACH: u64 = 1_300;

/// What became of the mutants of a kind.
#[derive(Debug, Default)]
struct Tally {
    accepted: u64,
    /// Accepted as a dataset, but an image of it was left out with a note.
    noted: u64,
    refused: u64,
}

#[test]
fn damaged_files_are_accepted_or_refused_and_nothing_else() {
    let kinds = kinds::all();
    assert!(EACH * kinds.len() as u64 > 10_000);
    let start = memory::now();
    for (number, kind) in kinds.iter().enumerate() {
        let tally = run(kind, number as u64);
        eprintln!("{}: {tally:?}", kind.name);
        // A mutation that is never noticed, or never survived, would test little of a reader.
        assert!(tally.noted + tally.refused > EACH / 20, "{}: {tally:?}", kind.name);
        assert!(tally.accepted > EACH / 50, "{}: {tally:?}", kind.name);
    }
    match start.zip(memory::peak()) {
        Some((start, peak)) => {
            let grown = peak.saturating_sub(start);
            eprintln!("{} KiB above the {} before", grown >> 10, start >> 10);
            assert!(grown <= 64 << 20, "{grown} bytes above the {start} before");
        }
        None => tier::skipped("this system does not report the peak memory of a process"),
    }
}

fn run(kind: &Kind, number: u64) -> Tally {
    let stage = Stage::new(kind);
    for seed in &kind.seeds {
        let sound = stage.play(seed);
        assert!(matches!(sound, Ok(Outcome { notes: 0, .. })), "{}: {sound:?} for a sound file", kind.name);
    }
    let mut tally = Tally::default();
    for mutant in 0..EACH {
        let mut stream = Seed(29).stream(Domain::Split, number, mutant);
        let bytes = kind.mutant(&mut stream);
        let both = catch_unwind(AssertUnwindSafe(|| {
            let first = stage.play(&bytes);
            let again = first.as_ref().ok().map(|_| stage.play(&bytes));
            (first, again)
        }));
        let Ok((first, again)) = both else { panic!("{} mutant {mutant} panicked", kind.name) };
        match first {
            Err(problem) => {
                assert!(problem.is_fair, "{} mutant {mutant}: {}", kind.name, problem.sentence);
                tally.refused += 1;
            }
            Ok(outcome) => {
                assert_eq!(
                    Some(&outcome),
                    again.and_then(Result::ok).as_ref(),
                    "{} mutant {mutant}",
                    kind.name
                );
                if outcome.notes == 0 { tally.accepted += 1 } else { tally.noted += 1 }
            }
        }
    }
    tally
}
