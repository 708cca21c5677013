//! Independent jobs on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs jobs 0 to `jobs` on at most `threads` threads; returns their results in order, whichever ended first.
pub fn run<T: Send>(jobs: usize, threads: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= jobs {
                return done;
            }
            done.push((n, job(n)));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(jobs)).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|&(n, _)| n);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        for threads in [0, 1, 3, 50] {
            assert_eq!(super::run(17, threads, |n| n * n), (0..17).map(|n| n * n).collect::<Vec<_>>());
        }
        assert!(super::run(0, 4, |n| n).is_empty());
    }
}
