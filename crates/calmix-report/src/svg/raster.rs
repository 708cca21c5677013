//! Renders a drawing as PNG in its light colours, with an embedded font.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use super::Drawing;
use crate::error::ReportError;

/// DejaVu Sans with Latin, Greek and Cyrillic letters; see `fonts/README.md` for its source.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold-subset.ttf");

/// Image pixels per pixel of the drawing.
const SCALE: f32 = 2.0;

/// Encodes a drawing as PNG, at twice its size.
///
/// # Errors
/// If the drawing is not valid SVG of a size above zero, which no plot causes.
pub fn png(drawing: &Drawing) -> Result<Vec<u8>, ReportError> {
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options =
        Options { font_family: "DejaVu Sans".to_owned(), fontdb: fonts.into(), ..Options::default() };
    let tree =
        Tree::from_str(&drawing.file(), &options).map_err(|error| ReportError::Raster(error.to_string()))?;
    let width = drawing.width as f32 * SCALE;
    let height = drawing.height as f32 * SCALE;
    let empty = || ReportError::Raster("it has no size".to_owned());
    let mut image = Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or_else(empty)?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut image.as_mut());
    image.encode_png().map_err(|error| ReportError::Raster(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter leaves dark pixels on the white background, so the embedded font was found.
    #[test]
    fn image_has_letters() {
        let mut drawing = Drawing::new("a title", 60.0, 20.0);
        let dark = |drawing: &Drawing| {
            let image = Pixmap::decode_png(&png(drawing).unwrap()).unwrap();
            assert_eq!((image.width(), image.height()), (120, 40));
            image.pixels().iter().filter(|pixel| pixel.red() < 100).count()
        };
        assert_eq!(dark(&drawing), 0);
        drawing.text((2.0, 14.0), "", "Größe 7%");
        let plain = dark(&drawing);
        assert!(plain > 200, "{plain}");
    }
}
