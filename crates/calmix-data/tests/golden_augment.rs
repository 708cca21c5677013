//! Every pixel operation against Pillow, byte for byte (`tests/golden/augment.py`).
// Not every function here is a `#[test]`, but all of it is.

use calmix_core::rng::{Domain, Seed, Stream};
use calmix_data::augment::{Canvas, Cutout, Filter, Frame, Op, Rect, Scratch};
use calmix_formats::image::Image;
use serde::Deserialize;

const GOLDEN: &str = include_str!("golden/augment.jsonl");
const SIZES: [[u32; 2]; 10] =
    [[32, 32], [17, 23], [1, 1], [64, 48], [2, 2], [33, 31], [1, 9], [96, 96], [9, 1], [3, 3]];

#[derive(Deserialize)]
struct Operation {
    operation: String,
    crc32: Vec<u32>,
}

#[test]
fn every_operation_gives_the_bytes_of_pillow() {
    let operations: Vec<Operation> =
        GOLDEN.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(operations.len(), Op::ALL.len() + 5);
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    for (time, Operation { operation, crc32 }) in (0..).zip(operations) {
        assert!(crc32.len() >= 500, "only {} cases of {operation}", crc32.len());
        for (case, expected) in (0..).zip(crc32) {
            let mut stream = Seed(3).stream(Domain::Weak, time, case);
            let before = image(&mut stream, SIZES[case as usize % 10], case / 10 % 5);
            let after = run(&operation, case, before, &mut stream, &mut scratch);
            let mut crc = flate2::Crc::new();
            crc.update(after.pixels());
            if crc.sum() != expected {
                wrong.push(format!("{operation} {case}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ: {}", wrong.len(), wrong.join(", "));
}

/// Noise, dim noise, a noisy slope, one colour, four levels.
fn image(stream: &mut Stream, [width, height]: [u32; 2], kind: u64) -> Image {
    let count = (width * height * 3) as usize;
    let words = std::iter::repeat_with(|| stream.next_u32().to_le_bytes());
    let noise: Vec<u8> = words.take(count.div_ceil(4)).flatten().take(count).collect();
    let slope = |i: usize| {
        let (x, y, c) = (i / 3 % width as usize, i / 3 / width as usize, i % 3);
        (x * 5 + y * 3 + c * 40) as u8
    };
    let value = |(i, &value): (usize, &u8)| match kind {
        0 => value,
        1 => 60 + ((u32::from(value) * 100) >> 8) as u8,
        2 => slope(i).wrapping_add(value >> 4),
        3 => noise[i % 3],
        _ => value & 0xC0 | 0x15,
    };
    let pixels = noise.iter().enumerate().map(value).collect();
    Image::new(width, height, pixels).unwrap()
}

fn run(operation: &str, case: u64, before: Image, s: &mut Stream, scratch: &mut Scratch) -> Image {
    let whole = Rect::whole(before.width(), before.height());
    match operation {
        "cutout-random" => cut(Cutout::Random { share: 0.5, fill: [125, 123, 114] }, before, s),
        "cutout-fixed" => cut(Cutout::Fixed { side: 16, fill: [127; 3] }, before, s),
        "resize-bilinear" | "resize-bicubic" => {
            let filter = if operation == "resize-bicubic" { Filter::Bicubic } else { Filter::Bilinear };
            let resized = [1 + below(s, 80), 1 + below(s, 80)];
            let frame = Frame { from: whole, resized, left: 0, top: 0, mirrored: false };
            show(frame, resized, filter, &before, scratch)
        }
        "frame" => {
            let (left, top) = (below(s, whole.width), below(s, whole.height));
            let (width, height) = (1 + below(s, whole.width - left), 1 + below(s, whole.height - top));
            let from = Rect { left, top, width, height };
            let resized =
                if case.is_multiple_of(3) { [width, height] } else { [1 + below(s, 50), 1 + below(s, 50)] };
            let (pad, side) = (below(s, 12), 1 + below(s, 40));
            let pad = resized.iter().fold(pad, |pad, length| pad.max(side.saturating_sub(*length)));
            let [left, top] = resized.map(|length| below(s, length + 2 * pad - side + 1));
            let [left, top] = [left, top].map(|first| i64::from(first) - i64::from(pad));
            let frame = Frame { from, resized, left, top, mirrored: case % 2 == 1 };
            show(frame, [side; 2], Filter::Bilinear, &before, scratch)
        }
        _ => {
            let op: Op = serde_json::from_value(operation.into()).unwrap();
            let mut after = before;
            op.apply(magnitude(op, case, s), &mut Canvas::from_image(&mut after).unwrap(), scratch);
            after
        }
    }
}

/// Wider ranges than RandAugment draws from, and the values at which Pillow takes another path.
fn magnitude(op: Op, case: u64, s: &mut Stream) -> f64 {
    let special = (case % 10 == 7).then_some((case / 10) as usize);
    match op {
        Op::Autocontrast | Op::Equalise | Op::Identity => 0.0,
        Op::Brightness | Op::Colour | Op::Contrast | Op::Sharpness => match special {
            Some(n) => [0.0, 1.0][n % 2],
            None => 2.0 * s.uniform(),
        },
        Op::Posterise => 1.0 + 8.0 * s.uniform(),
        Op::Rotate => match special {
            Some(n) => [0.0, 90.0, 180.0, 270.0, -90.0, 30.0][n % 6],
            None => -200.0 + 400.0 * s.uniform(),
        },
        Op::ShearX | Op::ShearY => -1.0 + 2.0 * s.uniform(),
        Op::Solarise => 256.0 * s.uniform(),
        Op::TranslateX | Op::TranslateY => -1.2 + 2.4 * s.uniform(),
    }
}

fn cut(cutout: Cutout, mut image: Image, s: &mut Stream) -> Image {
    let mut canvas = Canvas::from_image(&mut image).unwrap();
    let (hole, colour) = cutout.draw(canvas.sides(), s).unwrap();
    hole.fill(&mut canvas, colour);
    image
}

fn show(
    frame: Frame,
    [width, height]: [u32; 2],
    filter: Filter,
    from: &Image,
    scratch: &mut Scratch,
) -> Image {
    let mut shown = Image::filled(width, height, [0; 3]);
    assert!(frame.show(from, filter, &mut Canvas::from_image(&mut shown).unwrap(), scratch));
    shown
}

fn below(s: &mut Stream, bound: u32) -> u32 {
    (s.uniform() * f64::from(bound)) as u32
}
