//! Who makes the batches, and what becomes of corrupt samples.

use std::num::NonZeroUsize;
use std::time::Duration;

use calmix_data::loader::{self as data_loader, Workers};

use crate::field::limit::{SHARE, SOME, from};
use crate::field::{choice, section};

section! {
    /// Who makes the batches. None of it changes a byte of them.
    LoaderSection {
        /// Worker threads of a process; 0 for one per core, shared among the processes of a machine.
        free workers: u32 = 0, from(0.0).to(4096.0);
        /// How many batches may be in the making or waiting.
        free prefetch: u32 = 2, SOME.to(1024.0);
        /// Seconds without any progress after which the run gives up; reads that fail are repeated for 90.
        free patience: u32 = 120, SOME.to(86_400.0);
        /// Megabytes of decoded images to keep in memory, shared among the processes of a machine; 0 for none.
        free memory: u64 = 1024;
        /// What becomes of a corrupt sample.
        free on_corrupt: CorruptPolicy = CorruptPolicy::Skip;
        /// The largest share of the samples seen that may be skipped.
        #[when(on_corrupt is CorruptPolicy::Skip)]
        free corrupt_share: f64 = 0.001, SHARE;
    }
}

choice! {
    /// What becomes of a corrupt sample.
    CorruptPolicy {
        /// Another takes its place by a fixed rule, and it is counted.
        Skip = "skip",
        /// The run stops and names it.
        Stop = "stop",
    }
}

impl LoaderSection {
    /// The workers of one of so many processes of a machine.
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

    /// What becomes of a corrupt sample.
    pub fn corrupt(&self) -> data_loader::OnCorrupt {
        match self.on_corrupt {
            CorruptPolicy::Skip => data_loader::OnCorrupt::Skip { share: self.corrupt_share },
            CorruptPolicy::Stop => data_loader::OnCorrupt::Stop,
        }
    }
}
