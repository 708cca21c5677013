//! The data of one run in a plot of several.

/// What a plot shows of one run.
#[derive(Debug)]
pub(super) struct OfRun<'a, T: ?Sized> {
    /// The place of the run among all, which gives it its colour.
    pub(super) tone: usize,
    /// The name of the run.
    pub(super) name: &'a str,
    pub(super) data: &'a T,
}

// Not derived: that would ask for data that can be copied.
impl<T: ?Sized> Clone for OfRun<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for OfRun<'_, T> {}
