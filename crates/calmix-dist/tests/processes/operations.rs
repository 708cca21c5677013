//! Every operation, on one to four processes.

use std::time::Duration;

use super::crew::Crew;

const PATIENT: Duration = Duration::from_mins(1);

#[test]
fn operations_give_correct_results() {
    for size in 1..=4 {
        let results = Crew::new(size, PATIENT).results("operations");
        assert!(results.iter().all(|result| result.starts_with("done")), "{size}: {results:?}");
        let quiet = results.iter().all(|result| result == "done, 0 bytes");
        assert_eq!(quiet, size == 1, "{results:?}");
    }
}

/// The bits of a sum, and the most that a process sent for it.
fn sum(terms: usize, length: u64, size: usize) -> (String, u64) {
    result_of("sum", terms, length, size)
}

fn result_of(operation: &str, terms: usize, length: u64, size: usize) -> (String, u64) {
    let results = Crew::new(size, PATIENT).results(&format!("{operation} {terms} {length}"));
    let told: Vec<(&str, u64)> = results
        .iter()
        .map(|result| result.split_once(' ').map(|(bits, sent)| (bits, sent.parse().unwrap())).unwrap())
        .collect();
    assert!(told.iter().all(|(bits, _)| *bits == told[0].0), "not all have the same: {results:?}");
    (told[0].0.to_owned(), told.iter().map(|(_, sent)| *sent).max().unwrap())
}

#[test]
fn tree_sum_bits_do_not_depend_on_processes() {
    for terms in [4, 8] {
        let (alone, nothing) = sum(terms, 1000, 1);
        assert_eq!(nothing, 0);
        for size in [2, 4] {
            let (bits, sent) = sum(terms, 1000, size);
            assert_eq!(bits, alone, "{terms} terms on {size}");
            assert_eq!(sent, 2 * 4 * 1000 * (size as u64 - 1) / size as u64, "{terms} terms on {size}");
        }
    }
}

#[test]
fn tree_sum_bits_with_uneven_lengths() {
    // Seven numbers on four processes leave the last one a single number; two leave the last ones nothing.
    for length in [7, 2, 1003] {
        let (alone, _) = sum(12, length, 1);
        for size in [2, 3, 4] {
            assert_eq!(sum(12, length, size).0, alone, "{length} numbers on {size}");
        }
    }
}

#[test]
fn tree_sum_bits_on_processes_that_do_not_divide_the_terms() {
    for (terms, sizes) in [(4, [3, 3]), (5, [2, 4]), (7, [3, 4])] {
        let (alone, _) = sum(terms, 100, 1);
        for size in sizes {
            assert_eq!(sum(terms, 100, size).0, alone, "{terms} terms on {size}");
        }
    }
}

#[test]
fn all_reduce_gives_every_rank_the_same_bits() {
    let (tree, _) = sum(12, 1003, 1);
    assert_eq!(result_of("all-reduce", 12, 1003, 1), (tree, 0));
    for size in [2, 3, 4] {
        // Compared in it.
        let (_, sent) = result_of("all-reduce", 12, 1003, size);
        assert_eq!(sent, 2 * 4 * 1003 * (size as u64 - 1) / size as u64);
    }
}

/// Not a test: `cargo test -p calmix-dist --release --test integration pace -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn pace() {
    for (length, size) in [(1_000_000, 2), (1_000_000, 4), (23_400_000, 2)] {
        println!("{}", Crew::new(size, PATIENT).results(&format!("pace {length}"))[0]);
    }
}
