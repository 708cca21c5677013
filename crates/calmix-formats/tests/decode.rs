//! Decoding against Pillow, and what is refused.

use std::collections::BTreeMap;

use calmix_formats::decode::{DecodeLimits, DecodeProblem, FileKind, decode, decode_at_least, size};
use calmix_testkit::photos::Golden;

/// Largest and mean difference.
fn difference(left: &[u8], right: &[u8]) -> (u8, f64) {
    assert_eq!(left.len(), right.len());
    let differences = left.iter().zip(right).map(|(left, right)| left.abs_diff(*right));
    let largest = differences.clone().max().unwrap_or(0);
    (largest, differences.map(f64::from).sum::<f64>() / left.len() as f64)
}

#[test]
fn decoded_pixels_equal_pillow() {
    // Lossless formats must be equal. zune-jpeg's inverse transform and its upsampling of chroma round in other
    // places than libjpeg-turbo's: the bounds are what was measured, so that any change of the decoder shows.
    let measured = [
        ("exact", (0, 0.0)),
        ("webp-lossy", (0, 0.0)),
        ("jpeg-grey", (1, 0.1)),
        ("jpeg-cmyk", (2, 0.2)),
        ("jpeg-444", (2, 0.2)),
        ("jpeg-422", (6, 0.23)),
        ("jpeg-420", (7, 0.4)),
    ];
    let bounds: BTreeMap<&str, (u8, f64)> = measured.into_iter().collect();
    let golden = Golden::load();
    let mut failures = Vec::new();
    for case in &golden.images {
        let bytes = golden.bytes(case.file);
        let image =
            decode(bytes, &DecodeLimits::default()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!((image.width(), image.height()), (case.width, case.height), "{}", case.name);
        assert_eq!(
            size(bytes, &DecodeLimits::default()).unwrap(),
            (case.width, case.height),
            "{}",
            case.name
        );
        let (largest, mean) = difference(image.pixels(), golden.bytes(case.pixels));
        let turbo = cfg!(feature = "turbo");
        let (most, most_mean) = if turbo { (0, 0.0) } else { bounds[case.kind.as_str()] };
        if largest > most || mean > most_mean {
            failures.push(format!("{} ({}): {largest}, {mean:.3}", case.name, case.kind));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(golden.images.iter().filter(|case| case.name.contains("orientation")).count(), 18);
}

#[test]
fn smaller_decoding_keeps_the_requested_side() {
    let golden = Golden::load();
    let jpeg = golden.image("jpeg-444-64x48-q50-progressive");
    for (side, expected) in [(48, 48), (24, 24), (25, 48), (12, 12), (6, 6), (1, 6), (u32::MAX, 48)] {
        let image = decode_at_least(jpeg, &DecodeLimits::default(), side).unwrap();
        let expected = if cfg!(feature = "turbo") { expected } else { 48 };
        assert_eq!((image.width(), image.height()), (expected * 64 / 48, expected), "{side}");
    }
}

#[test]
fn every_cut_is_refused() {
    let golden = Golden::load();
    for name in
        ["jpeg-420-40x24-q95-baseline", "jpeg-444-64x48-q50-progressive", "png-rgb", "png-rgb-interlaced"]
    {
        let Some(case) = golden.images.iter().find(|case| case.name == name) else { panic!("no {name}") };
        let bytes = golden.bytes(case.file);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], &DecodeLimits::default()).is_err(), "{name} cut to {length}");
        }
    }
}

#[test]
fn other_formats_are_named_with_a_hint() {
    let cases: [(&[u8], &str, &str); 6] = [
        (b"\0\0\0\x18ftypheic", "this is a HEIC; calmix reads JPEG, PNG and WebP", "convert it to JPEG"),
        (b"GIF89a", "this is a GIF; calmix reads JPEG, PNG and WebP", "convert it to PNG"),
        (
            b"II*\0",
            "this is a TIFF or a camera's raw file; calmix reads JPEG, PNG and WebP",
            "convert it to PNG",
        ),
        (
            b"\x93NUMPY",
            "this is a NumPy array; calmix reads JPEG, PNG and WebP",
            "save each of its images as a PNG",
        ),
        (
            b"\x80\x04\x95",
            "this is a Python pickle; calmix reads JPEG, PNG and WebP",
            "calmix does not open pickles",
        ),
        (b"", "this is an empty file; calmix reads JPEG, PNG and WebP", "download it again"),
    ];
    for (bytes, sentence, hint) in cases {
        let problem = decode(bytes, &DecodeLimits::default()).unwrap_err();
        assert_eq!(problem.to_string(), sentence);
        assert!(problem.hint().starts_with(hint), "{}", problem.hint());
    }
    assert!(matches!(
        decode(b"RIFF\0\0\0\0WAVE", &DecodeLimits::default()),
        Err(DecodeProblem::Kind(FileKind::Unknown))
    ));
}

#[test]
fn limits_hold_at_their_edges() {
    let golden = Golden::load();
    let bytes = golden.image("png-rgb");
    let limits = DecodeLimits { side: 23, pixels: 23 * 17, bytes: bytes.len() as u64 };
    assert!(decode(bytes, &limits).is_ok());
    assert!(matches!(decode(bytes, &DecodeLimits { side: 22, ..limits }), Err(DecodeProblem::Size { .. })));
    assert!(matches!(
        decode(bytes, &DecodeLimits { pixels: 23 * 17 - 1, ..limits }),
        Err(DecodeProblem::Size { .. })
    ));
    assert!(matches!(decode(bytes, &DecodeLimits { bytes: 10, ..limits }), Err(DecodeProblem::Bytes(_))));
}

/// A file of a few bytes that claims millions of pixels is not a photo.
#[test]
fn large_image_in_few_bytes_is_refused() {
    let flat = |side: u32| {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, side, side);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        encoder.set_compression(png::Compression::High);
        let row = side.div_ceil(8) as usize;
        encoder.write_header().unwrap().write_image_data(&vec![0; row * side as usize]).unwrap();
        bytes
    };
    let bomb = flat(8_000);
    assert!(bomb.len() < 40_000, "{}", bomb.len());
    let error = decode(&bomb, &DecodeLimits::default()).unwrap_err();
    assert!(matches!(error, DecodeProblem::Bomb { width: 8_000, height: 8_000, .. }), "{error}");
    // Small ones are what they are: icons, masks.
    assert_eq!(decode(&flat(2_000), &DecodeLimits::default()).unwrap().width(), 2_000);
}

/// A palette has three bytes for each colour. As libpng, calmix refuses another in an image that needs it, and ignores it in
/// one that does not.
#[test]
fn palette_of_a_wrong_length_is_refused() {
    let with = |color, palette: usize| {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 4, 1);
        encoder.set_color(color);
        encoder.set_palette(vec![7; palette]);
        encoder.write_header().unwrap().write_image_data(&vec![0; 4 * color.samples()]).unwrap();
        decode(&bytes, &DecodeLimits::default())
    };
    for length in [4, 5, 49, 767] {
        let refused = with(png::ColorType::Indexed, length).unwrap_err().to_string();
        assert!(refused.contains("palette"), "{length}: {refused}");
        assert!(with(png::ColorType::Rgb, length).is_ok(), "{length}");
    }
    for length in [1, 769, 3_000] {
        assert!(with(png::ColorType::Indexed, length).is_err(), "{length}");
    }
    for length in [3, 48, 768] {
        assert_eq!(with(png::ColorType::Indexed, length).unwrap().pixels(), [7; 12]);
    }
}
