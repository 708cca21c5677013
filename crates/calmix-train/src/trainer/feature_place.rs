//! Where a run, or who only makes features, keeps them.

use calmix_run::run::Paths;

/// Where features are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum FeaturePlace<'a> {
    /// In the cache that the recipe names, for runs that come later.
    Shared,
    /// In the cache that the recipe names, or in the folder of the run if it names none.
    Run(&'a Paths),
    /// In memory, for a run that is only read.
    Memory(&'a Paths),
}

impl<'a> FeaturePlace<'a> {
    /// The paths of the run, if there is one.
    pub(super) fn paths(self) -> Option<&'a Paths> {
        match self {
            Self::Shared => None,
            Self::Run(paths) | Self::Memory(paths) => Some(paths),
        }
    }
}
