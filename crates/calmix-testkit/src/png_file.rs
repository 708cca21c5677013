//! PNG files whose pixels a test chooses.

use png::{ColorType, Encoder};

/// How many bytes a pixel has.
#[derive(Debug, Clone, Copy)]
pub enum Pixels {
    Grey,
    Rgb,
}

/// The bytes of a file of this width and height. `byte` is called for each byte of the pixels, in their order, with its place.
///
/// # Panics
/// If the width or the height is zero.
pub fn png(pixels: Pixels, [width, height]: [u32; 2], byte: impl FnMut(usize) -> u8) -> Vec<u8> {
    let color = match pixels {
        Pixels::Grey => ColorType::Grayscale,
        Pixels::Rgb => ColorType::Rgb,
    };
    let bytes: Vec<u8> = (0..color.samples() * (width * height) as usize).map(byte).collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    encoder.write_header().unwrap().write_image_data(&bytes).unwrap();
    file
}
