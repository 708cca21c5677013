//! Checks before the first step that a run fits into memory: an estimate, compared with what the machine has available.

use calmix_core::method::Method;
use calmix_core::samples::Samples;
use calmix_engine::engine::Settings;
use calmix_engine::network::Network;
use calmix_io::process::limits::available_memory;

use crate::trainer::error::TrainError;

/// How often the state of samples is in memory while a checkpoint is written or read: itself, and in its file.
const COPIES: u64 = 2;
/// Bytes of a parameter: weight, average, momentum, gradient, and a copy of two of them in a checkpoint.
const PARAMETER: u64 = 4 * 6;

/// What a process keeps in memory besides batches and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryNeed {
    /// Unlabelled samples that this process keeps the state of.
    pub(crate) samples: usize,
    /// The number of classes.
    pub(crate) classes: usize,
    /// Bytes for the state of these samples.
    pub(crate) state: u64,
    /// Bytes of the network and what belongs to it.
    pub(crate) network: u64,
}

impl MemoryNeed {
    pub(crate) fn new(method: &Method, settings: &Settings, samples: usize) -> Self {
        let state = Samples::bytes(method, settings.classes, samples);
        Self { samples, classes: settings.classes, state, ..Self::of_network(settings) }
    }

    /// The memory of a network alone.
    pub(crate) fn of_network(settings: &Settings) -> Self {
        let network = Network::of(&settings.model, settings.classes);
        let network = PARAMETER.saturating_mul(network.layout().len() as u64);
        Self { samples: 0, classes: settings.classes, state: 0, network }
    }

    /// Refuses a run that does not fit into this machine, whose memory `processes` processes share.
    pub(crate) fn check(self, processes: usize) -> Result<(), TrainError> {
        available_memory().map_or(Ok(()), |available| self.check_in(available / processes.max(1) as u64))
    }

    fn check_in(self, available: u64) -> Result<(), TrainError> {
        let needed = self.state.saturating_mul(COPIES).saturating_add(self.network);
        if needed <= available {
            return Ok(());
        }
        let Self { samples, classes, state, network } = self;
        Err(TrainError::Memory { samples, classes, state, network, needed, available })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_too_large_for_memory_is_refused() {
        // ImageNet with a thousand classes: 5 GB, twice while it is saved.
        let imagenet = MemoryNeed { samples: 1_281_167, classes: 1_000, state: 5 << 30, network: 600 << 20 };
        assert!(imagenet.check_in(11 << 30).is_ok());
        let error = imagenet.check_in(10 << 30).unwrap_err().to_string();
        assert!(error.contains("1281167 unlabelled samples in 1000 classes takes 5120 MB"), "{error}");
        assert!(error.contains("more processes"), "{error}");
        let endless = MemoryNeed { state: u64::MAX, ..imagenet };
        assert!(endless.check_in(u64::MAX - 1).is_err());
    }
}
