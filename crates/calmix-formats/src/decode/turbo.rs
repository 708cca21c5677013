//! JPEG by libjpeg-turbo, which can decode at a half, a quarter or an eighth of the size for a fraction of the cost: the
//! smaller image comes directly from the lower frequencies.

use turbojpeg::{Colorspace, Decompressor, PixelFormat, ScalingFactor};

use super::image_format::Head;
use crate::image::Image;

/// Decodes to RGB; `None` if libjpeg-turbo reports a warning or an error, in which case the plain decoder reads the file.
pub(super) fn pixels(bytes: &[u8], head: Head, side: u32) -> Option<Image> {
    let mut decoder = Decompressor::new().ok()?;
    let header = decoder.read_header(bytes).ok()?;
    if (header.width, header.height) != (head.width as usize, head.height as usize) {
        return None;
    }
    decoder.set_scan_limit(100).ok()?;
    let shorter = head.width.min(head.height);
    let factor = [8, 4, 2].into_iter().find(|&part| shorter.div_ceil(part) >= side).unwrap_or(1);
    let factor = ScalingFactor::new(1, factor as usize);
    decoder.set_scaling_factor(factor).ok()?;
    let (width, height) = (factor.scale(header.width), factor.scale(header.height));
    let four = matches!(header.colorspace, Colorspace::CMYK | Colorspace::YCCK);
    let (format, channels) = if four { (PixelFormat::CMYK, 4) } else { (PixelFormat::RGB, 3) };
    let mut pixels = vec![0; width * height * channels];
    let image =
        turbojpeg::Image { pixels: pixels.as_mut_slice(), width, pitch: width * channels, height, format };
    decoder.decompress(bytes, image).ok()?;
    if four {
        pixels = pixels.as_chunks::<4>().0.iter().flat_map(|&inks| rgb(inks)).collect();
    }
    Image::new(width as u32, height as u32, pixels)
}

/// Converts an inverted CMYK pixel. Adobe stores 255 − ink, so a channel is the product of the light that its ink and black
/// let through.
fn rgb([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    [c, m, y].map(|light| {
        let product = u32::from(light) * u32::from(k) + 128;
        (((product >> 8) + product) >> 8) as u8
    })
}
