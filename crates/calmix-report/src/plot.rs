//! What each plot shows: plain data first, then how it is drawn and the table under it. One file per plot.

mod all;
pub mod by_class;
pub mod confusion;
pub mod coverage;
pub mod examples;
pub mod margins;
pub mod pseudo_labels;
pub mod reliability;
pub mod training;

/// Pixels across a panel: two fit beside each other on a page, and one on a phone.
const PANEL: f64 = 400.0;

mod table;
mod view;

/// What a plot shows of one run.
#[derive(Debug)]
struct OfRun<'a, T: ?Sized> {
    /// The place of the run among all, which gives it its colour.
    tone: usize,
    /// The name of the run.
    name: &'a str,
    data: &'a T,
}

// Not derived: that would ask for data that can be copied.
impl<T: ?Sized> Clone for OfRun<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for OfRun<'_, T> {}

/// Shortens the name of a run for a legend.
fn brief(name: &str) -> String {
    crate::svg::fitted(name, 32)
}

pub use all::all;
pub use table::{DataTable, TableCell};
pub use view::{ExamplePrediction, Images, PlotView};
