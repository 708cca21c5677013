//! Images as part of a page: PNG in base64.

use base64::prelude::{BASE64_STANDARD, Engine};

/// Encodes a square RGB image as a data URL; `None` if it cannot be encoded.
pub(super) fn data_url(pixels: &[u8], side: usize) -> Option<String> {
    let mut bytes = Vec::new();
    let side = u32::try_from(side).ok()?;
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_url_needs_all_pixels() {
        assert_eq!(data_url(&[0; 11], 2), None);
        assert!(data_url(&[0; 12], 2).unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
    }
}
