//! The keys of the data loader.

use std::num::NonZeroUsize;
use std::time::Duration;

use calmix_data::loader::{self as data_loader, Workers};

use crate::field::limit::{AT_LEAST_ONE, SHARE, from};
use crate::field::{choice, section};

section! {
    /// The data loader. None of these keys changes the contents of a batch.
    LoaderSection {
        /// Worker threads per process; 0 to divide the machine's cores among its processes.
        free workers: u32 = 0, from(0.0).to(4096.0);
        /// The number of batches that may be in preparation or waiting.
        free prefetch: u32 = 2, AT_LEAST_ONE.to(1024.0);
        /// Seconds without progress after which the run stops with an error; failed reads are retried for 90 seconds.
        free patience: u32 = 120, AT_LEAST_ONE.to(86_400.0);
        /// Megabytes of decoded images to cache in memory, shared among the processes of a machine; 0 for no cache.
        free memory: u64 = 1024;
        /// What happens to a corrupt sample.
        free on_corrupt: CorruptPolicy = CorruptPolicy::Skip;
        /// The largest share of the samples read so far that may be skipped.
        #[when(on_corrupt is CorruptPolicy::Skip)]
        free corrupt_share: f64 = 0.001, SHARE;
    }
}

choice! {
    /// What happens to a corrupt sample.
    CorruptPolicy {
        /// It is replaced by another sample, chosen by a fixed rule, and counted.
        Skip = "skip",
        /// The run stops with an error that names it.
        Stop = "stop",
    }
}

impl LoaderSection {
    /// Returns the workers of each of `processes` processes on a machine.
    pub fn workers(&self, processes: usize) -> Workers {
        let some = |number: u32, otherwise| NonZeroUsize::new(number as usize).unwrap_or(otherwise);
        let defaults = Workers::default();
        let each = defaults.threads.get() / processes.max(1);
        Workers {
            threads: some(self.workers, NonZeroUsize::new(each).unwrap_or(NonZeroUsize::MIN)),
            prefetch: some(self.prefetch, defaults.prefetch),
            patience: Duration::from_secs(u64::from(self.patience)),
        }
    }

    /// Returns what happens to a corrupt sample.
    pub fn corrupt(&self) -> data_loader::OnCorrupt {
        match self.on_corrupt {
            CorruptPolicy::Skip => data_loader::OnCorrupt::Skip { share: self.corrupt_share },
            CorruptPolicy::Stop => data_loader::OnCorrupt::Stop,
        }
    }
}
