//! A report as one HTML file with accompanying files.
//!
//! The page needs neither network nor scripts. Its content security policy forbids both, so a hostile name that slipped
//! through the escaping could do nothing.

mod html;

pub(crate) use html::document;
pub use html::{data_url, html};

use crate::error::ReportError;
use crate::plot::{self, PlotView};
use crate::report::RunsReport;
use crate::svg::Drawing;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// Its name, consisting of lower-case letters, digits, `.` and `-`.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Whether [`files`] also draws every plot as PNG, which needs the feature `raster`.
pub const DRAWS_PNG: bool = cfg!(feature = "raster");

/// Draws every plot as SVG, CSV and, with [`DRAWS_PNG`], PNG.
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
