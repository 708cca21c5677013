//! The images of `calmix demo`: one shape each, in any size, place, angle and colours, with noise.

use calmix_core::rng::{Domain, Seed, Stream};
use calmix_formats::image::Image;

/// The classes.
pub(crate) const SHAPES: [&str; 5] = ["circle", "cross", "ring", "square", "triangle"];
/// Pixels of a side.
const SIDE: u32 = 96;
/// The standard deviation of the noise of a colour channel.
const NOISE: f64 = 18.0;

/// Draws the image `n` of a shape, by its index in [`SHAPES`].
pub(crate) fn draw(shape: usize, n: u64) -> Image {
    let mut stream = Seed(0).stream(Domain::Example, 1, n);
    let background = colour(&mut stream);
    let mut foreground = colour(&mut stream);
    // A shape must be visible on its background.
    while contrast(background, foreground) < 90.0 {
        foreground = colour(&mut stream);
    }
    let radius = 0.18 + 0.2 * stream.uniform();
    let centre = [0.0; 2].map(|_: f64| 0.5 + (0.9 - 2.0 * radius) * (stream.uniform() - 0.5));
    let direction = [stream.normal(), stream.normal()];
    let length = (direction[0] * direction[0] + direction[1] * direction[1]).sqrt().max(f64::MIN_POSITIVE);
    let [cosine, sine] = direction.map(|part| part / length);
    let mut pixels = Vec::with_capacity((3 * SIDE * SIDE) as usize);
    for row in 0..SIDE {
        for column in 0..SIDE {
            let [x, y] = [column, row].map(|at| (f64::from(at) + 0.5) / f64::from(SIDE));
            let [x, y] = [(x - centre[0]) / radius, (y - centre[1]) / radius];
            let turned = [cosine * x + sine * y, cosine * y - sine * x];
            let colour = if is_inside(shape, turned) { foreground } else { background };
            pixels.extend(colour.map(|channel| (channel + NOISE * stream.normal()).clamp(0.0, 255.0) as u8));
        }
    }
    Image::new(SIDE, SIDE, pixels).unwrap_or_else(|| Image::filled(SIDE, SIDE, [0; 3]))
}

/// Returns whether a point is inside a shape, whose corners are at a distance of one from its centre.
fn is_inside(shape: usize, [x, y]: [f64; 2]) -> bool {
    let square = x * x + y * y;
    match SHAPES[shape] {
        "circle" => square <= 1.0,
        "ring" => (0.45..=1.0).contains(&square),
        "cross" => x.abs().max(y.abs()) <= 0.95 && x.abs().min(y.abs()) <= 0.3,
        "square" => x.abs().max(y.abs()) <= std::f64::consts::FRAC_1_SQRT_2,
        // A triangle with equal sides lies on the inner side of each.
        _ => y >= -0.5 && 0.866 * x - 0.5 * y >= -0.5 && -0.866 * x - 0.5 * y >= -0.5,
    }
}

fn colour(stream: &mut Stream) -> [f64; 3] {
    [0.0; 3].map(|_: f64| 255.0 * stream.uniform())
}

/// Returns the difference in brightness of two colours, between 0 and 255.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let brightness = |[red, green, blue]: [f64; 3]| 0.3 * red + 0.6 * green + 0.1 * blue;
    (brightness(a) - brightness(b)).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_inside_their_shapes() {
        let inside = |point| -> Vec<&str> {
            (0..SHAPES.len()).filter(|&shape| is_inside(shape, point)).map(|shape| SHAPES[shape]).collect()
        };
        assert_eq!(inside([0.0, 0.0]), ["circle", "cross", "square", "triangle"]);
        assert_eq!(inside([0.0, 0.95]), ["circle", "cross", "ring", "triangle"]);
        assert_eq!(inside([0.7, 0.7]), ["circle", "ring", "square"]);
        assert_eq!(inside([1.1, 0.0]), [""; 0]);
    }

    #[test]
    fn images_differ_and_repeat() {
        assert_eq!(draw(0, 3), draw(0, 3));
        assert_ne!(draw(0, 3), draw(0, 4));
        // Every shape covers a part of its image.
        for shape in 0..SHAPES.len() {
            let image = draw(shape, 9);
            let brightness: Vec<u32> = image
                .pixels()
                .chunks(3)
                .map(|pixel| pixel.iter().map(|&channel| u32::from(channel)).sum())
                .collect();
            let mean = brightness.iter().sum::<u32>() / brightness.len() as u32;
            let above = brightness.iter().filter(|&&pixel| pixel > mean).count();
            assert!(above > brightness.len() / 40 && above < brightness.len() * 39 / 40, "{above}");
        }
    }
}
