//! The images of a review, small enough for one page.

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_report::page::data_url;

/// The shorter side of a thumbnail in pixels, by the number of rows: a page of thousands must still open at once.
fn side(rows: usize) -> u32 {
    match rows {
        0..=120 => 224,
        121..=500 => 128,
        _ => 80,
    }
}

/// Encodes the image of a sample as a data URL, shrunk for a page with this many rows; `None` if the image cannot be read.
pub(crate) fn thumbnail(dataset: &Dataset, id: u64, rows: usize) -> Result<Option<String>, DataError> {
    match dataset.shrunk_image(id, side(rows)) {
        Ok(image) => Ok(data_url(image.width(), image.height(), image.pixels())),
        Err(error) if error.is_transient() => Err(error),
        Err(_) => Ok(None),
    }
}
