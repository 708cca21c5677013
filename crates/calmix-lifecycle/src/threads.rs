//! The number of threads of a run.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// The threads of a recipe: 0 is one for each core, shared among the processes of a machine. A run decides it once, since
/// the last bits of a result depend on it.
pub fn threads(asked: u32, processes: usize) -> u32 {
    let all = || available_parallelism().map_or(1, NonZeroUsize::get);
    let each = || (all() / processes.max(1)).max(1);
    if asked == 0 { u32::try_from(each()).unwrap_or(1) } else { asked }
}
