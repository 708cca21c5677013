//! The file of events after any history: appended lines, marks, failing calls, kills and resumes.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use calmix_run::events::{Event, Loss, Note, Step};
use calmix_run::read;
use calmix_run::run::{Journal, Mark, Run};
use calmix_testkit::faulty_disk::{Fault, FaultyDisk};
use calmix_testkit::tier;
use proptest::prelude::*;
use proptest::sample::Index;

use super::state::run_with;

/// What happens to a journal.
#[derive(Debug, Clone)]
enum Act {
    Append(String),
    Mark,
    /// The process is killed, and of what is behind the last mark some bytes are on the disk. In the process that goes on,
    /// this call of the disk fails.
    Kill {
        kept: Index,
        fails_at: usize,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => "\\PC{0,20}".prop_map(Act::Append),
        1 => Just(Act::Mark),
        1 => (any::<Index>(), 0..12_usize).prop_map(|(kept, fails_at)| Act::Kill { kept, fails_at }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let note = (any::<u64>(), any::<String>(), any::<String>());
    let loss = (any::<f32>(), proptest::option::of(any::<f32>()));
    prop_oneof![
        note.prop_map(|(step, text, hint)| Event::Note(Note { step, text, hint })),
        (any::<u64>(), loss).prop_map(|(step, (total, mix))| {
            Event::Step(Box::new(Step::new(step, Loss { total, mix, ..Loss::default() })))
        }),
    ]
}

fn settings(cases: [u32; 2]) -> ProptestConfig {
    let cases = tier::number("CALMIX_CASES", cases[0], cases[1]);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Opens the journal at `mark`, on a disk of which one call fails.
fn resume(folder: &Path, mark: &Mark, fails_at: usize) -> (Run, Journal) {
    let disk = Arc::new(FaultyDisk::new(Fault::Once(ErrorKind::StorageFull), fails_at));
    let run = Run::open_on(folder, disk).unwrap();
    let journal = run.journal(mark).or_else(|_| run.journal(mark)).unwrap();
    (run, journal)
}

proptest! {
    #![proptest_config(settings([40, 2_000]))]

    #[test]
    fn journal_of_any_history_has_the_lines_that_count(acts in proptest::collection::vec(act(), 0..24)) {
        let (_temp, folder) = run_with(&[]);
        let path = folder.join("events.jsonl");
        let mut lines: Vec<String> = Vec::new();
        let mut marked = 0;
        let mut mark = Mark::start();
        let (mut run, mut journal) = resume(&folder, &mark, usize::MAX);
        for act in acts {
            match act {
                Act::Append(line) => {
                    if journal.append(&line).is_ok() {
                        lines.push(line + "\n");
                    }
                }
                Act::Mark => {
                    if let Ok(made) = journal.mark() {
                        mark = made;
                        marked = lines.len();
                    }
                }
                Act::Kill { kept, fails_at } => {
                    drop((run, journal));
                    let mut bytes = fs::read(&path).unwrap();
                    let length = mark.length as usize;
                    bytes.truncate(length + kept.index(bytes.len() - length + 1));
                    fs::write(&path, bytes).unwrap();
                    lines.truncate(marked);
                    (run, journal) = resume(&folder, &mark, fails_at);
                }
            }
            prop_assert_eq!(fs::read_to_string(&path).unwrap(), lines.concat());
        }
    }

    #[test]
    fn events_cut_at_any_byte_are_a_prefix(
        events in proptest::collection::vec(event(), 0..6),
        cut in any::<Index>(),
    ) {
        let (_temp, folder) = run_with(&[]);
        let (_run, mut journal) = resume(&folder, &Mark::start(), usize::MAX);
        let lines: Vec<_> = events.iter().map(|event| event.to_line().unwrap()).collect();
        for line in &lines {
            journal.append(line).unwrap();
        }
        let path = folder.join("events.jsonl");
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(cut.index(bytes.len() + 1));
        fs::write(&path, &bytes).unwrap();
        let whole = bytes.split(|byte| *byte == b'\n').count() - 1;
        let read = read::events(&folder).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let read: Vec<_> = read.iter().map(|event| event.to_line().unwrap()).collect();
        prop_assert_eq!(read, &lines[..whole]);
    }
}
