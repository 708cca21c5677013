//! What each plot shows: plain data first, then how it is drawn and the table under it. One file per plot.

mod all;
pub mod by_class;
pub mod confusion;
pub mod coverage;
mod example_prediction;
pub mod examples;
pub mod margins;
mod of_run;
pub mod pseudo_labels;
pub mod reliability;
pub mod training;

/// Pixels across a panel: two fit beside each other on a page, and one on a phone.
const PANEL: f64 = 400.0;

mod table;
mod view;

/// Shortens the name of a run for a legend.
fn brief(name: &str) -> String {
    crate::svg::fitted(name, 32)
}

pub use all::all;
pub use example_prediction::ExamplePrediction;
pub use table::{DataTable, TableCell};
pub use view::{Images, PlotView};
