//! A report as one HTML file, and the files beside it.
//!
//! The page needs no network and no script. Its content security policy forbids both, so that a hostile name that slipped
//! through the escaping could do nothing.

mod html;

pub use html::html;

use crate::error::ReportError;
use crate::plot::{self, PlotView};
use crate::report::RunsReport;
use crate::svg::Drawing;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// Its name, of lower-case letters, digits, `.` and `-`.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Whether [`files`] draws every plot as PNG too, which takes the feature `raster`.
pub const DRAWS_PNG: bool = cfg!(feature = "raster");

/// Draws every plot as SVG, CSV and, if [`DRAWS_PNG`], PNG.
pub fn files(report: &RunsReport) -> Result<Vec<ReportFile>, ReportError> {
    let mut files = Vec::new();
    for plot in plot::all(report) {
        let PlotView { name, panels, table, .. } = plot;
        files.push(ReportFile { name: format!("{name}.csv"), bytes: table.csv().into_bytes() });
        if panels.is_empty() {
            continue;
        }
        let drawing = Drawing::beside(&panels);
        #[cfg(feature = "raster")]
        files.push(ReportFile { name: format!("{name}.png"), bytes: crate::svg::png(&drawing)? });
        files.push(ReportFile { name: format!("{name}.svg"), bytes: drawing.file().into_bytes() });
    }
    Ok(files)
}
