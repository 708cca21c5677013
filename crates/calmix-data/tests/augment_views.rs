//! What views are drawn: distributions, determinism, and sizes at which nothing may break.
// Not every function here is a `#[test]`, but all of it is.

use std::collections::BTreeMap;

use calmix_core::rng::{Domain, Seed, Stream};
use calmix_data::augment::{Augment, Cutout, Filter, First, Geometry, Op, RandAugment, Scratch, Strong};
use calmix_data::error::DataError;
use calmix_formats::image::Image;

const DRAWS: u64 = 28_000;

fn stream(sample: u64) -> Stream {
    Seed(5).stream(Domain::Strong, 0, sample)
}

/// Chi-square of counts that should be equal.
fn chi_square<'a>(counts: impl Iterator<Item = &'a u64> + Clone) -> f64 {
    let expected = counts.clone().sum::<u64>() as f64 / counts.clone().count() as f64;
    counts.map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// Noise that depends on the size alone.
fn noise(width: u32, height: u32) -> Image {
    let mut stream = Seed(1).stream(Domain::Weak, u64::from(width), u64::from(height));
    let pixels = (0..width * height * 3).map(|_| stream.next_u32() as u8).collect();
    Image::new(width, height, pixels).unwrap()
}

#[test]
fn usb_applies_each_operation_equally_often_with_a_uniform_magnitude() {
    let mut counts = BTreeMap::new();
    let mut quarters = BTreeMap::new();
    for sample in 0..DRAWS {
        let drawn: Vec<_> = RandAugment::Usb { operations: 3 }.draw([32, 32], &mut stream(sample)).collect();
        assert_eq!(drawn.len(), 3);
        for (op, magnitude) in drawn {
            let [low, high] = op.range();
            assert!((low..high).contains(&magnitude), "{op:?} {magnitude}");
            *counts.entry(op).or_insert(0_u64) += 1;
            let quarter = (4.0 * (magnitude - low) / (high - low)) as usize;
            quarters.entry(op).or_insert([0_u64; 4])[quarter] += 1;
        }
    }
    assert_eq!(counts.len(), 14);
    let chi2 = chi_square(counts.values());
    assert!(chi2 < 34.5, "chi-square of {chi2} on 13 degrees of freedom"); // p = 0.001
    for (op, quarters) in quarters {
        let chi2 = chi_square(quarters.iter());
        // p = 0.001 over the fourteen together.
        assert!(chi2 < 21.9, "chi-square of {chi2} on 3 degrees of freedom for {op:?}");
    }
}

#[test]
fn google_applies_half_of_the_operations_at_nine_levels() {
    let mut applied = 0_u64;
    let mut magnitudes = BTreeMap::new();
    for sample in 0..DRAWS {
        for (op, magnitude) in (RandAugment::Google { operations: 2 }).draw([32, 32], &mut stream(sample)) {
            applied += 1;
            *magnitudes.entry(op).or_insert(BTreeMap::new()).entry(magnitude.to_bits()).or_insert(0_u64) += 1;
        }
    }
    // Binomial(56,000, ½): a standard deviation of 118.
    assert!(applied.abs_diff(DRAWS) < 4 * 118, "{applied}");
    assert_eq!(magnitudes.len(), 14);
    let values = |op| magnitudes[&op].keys().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>();
    let mut degrees = values(Op::Rotate);
    degrees.sort_by(f64::total_cmp);
    let expected = (-9..=9).filter(|level| *level != 0).map(|level| f64::from(3 * level));
    assert_eq!(degrees, expected.collect::<Vec<_>>());
    let mut bits = values(Op::Posterise);
    bits.sort_by(f64::total_cmp);
    assert_eq!(bits, [4.0, 5.0, 6.0, 7.0]);
    let mut thresholds = values(Op::Solarise);
    thresholds.sort_by(f64::total_cmp);
    assert_eq!(thresholds, [26.0, 52.0, 77.0, 103.0, 128.0, 154.0, 180.0, 205.0, 231.0]);
    for shift in values(Op::TranslateX) {
        assert_eq!((shift * 32.0).fract(), 0.0);
        assert!(shift.abs() <= 8.0 / 32.0);
    }
    for op in [Op::Brightness, Op::ShearX, Op::Rotate] {
        let levels = magnitudes[&op].len() as f64;
        let chi2 = chi_square(magnitudes[&op].values());
        // p = 0.001 on 8 and on 17 degrees of freedom.
        assert!(chi2 < if levels > 9.0 { 40.8 } else { 26.1 }, "chi-square of {chi2} for {op:?}");
    }
}

#[test]
fn shifts_are_uniform_and_half_are_mirrored() {
    for first in [First::Crop, First::Flip] {
        let geometry = Geometry::Shift { pad: 4, flip: true, first };
        let (mut places, mut mirrored) = (BTreeMap::new(), 0_u64);
        for sample in 0..DRAWS {
            let frame = geometry.draw(32, [32, 32], &mut stream(sample));
            *places.entry((frame.left, frame.top)).or_insert(0_u64) += 1;
            mirrored += u64::from(frame.mirrored);
        }
        assert_eq!(places.len(), 81);
        assert_eq!((*places.keys().min().unwrap(), *places.keys().max().unwrap()), ((-4, -4), (4, 4)));
        let chi2 = chi_square(places.values());
        assert!(chi2 < 124.9, "chi-square of {chi2} on 80 degrees of freedom"); // p = 0.001
        // Binomial(28,000, ½): a standard deviation of 84.
        assert!(mirrored.abs_diff(DRAWS / 2) < 4 * 84, "{mirrored}");
    }
    let still = Geometry::Shift { pad: 4, flip: false, first: First::Crop };
    assert!((0..100).all(|sample| !still.draw(32, [32, 32], &mut stream(sample)).mirrored));
}

/// Mirrored first and then shifted is the mirrored window on the other side.
#[test]
fn crop_and_mirror_order_changes_the_view() {
    let frame =
        |first, sample| Geometry::Shift { pad: 4, flip: true, first }.draw(32, [32, 32], &mut stream(sample));
    for sample in 0..100 {
        let (first, second) = (frame(First::Crop, sample), frame(First::Flip, sample));
        assert_eq!((first.mirrored, first.top), (second.mirrored, second.top));
        assert_eq!(second.left, if first.mirrored { -first.left } else { first.left });
    }
}

#[test]
fn resized_crops_have_requested_area_and_ratio() {
    let Strong { geometry, .. } = Augment::imagenet().strong;
    let (mut area, mut ratio) = (0.0, 0.0);
    for sample in 0..DRAWS {
        let rect = geometry.draw(224, [500, 375], &mut stream(sample)).from;
        let (w, h) = (f64::from(rect.width), f64::from(rect.height));
        assert!(rect.left + rect.width <= 500 && rect.top + rect.height <= 375);
        // Sides are rounded to pixels: half a pixel on each of at least 90 or so.
        assert!((0.745..1.345).contains(&(w / h)), "{rect:?}");
        area += w * h / (500.0 * 375.0);
        ratio += w / h;
        assert!(w * h >= 0.078 * 500.0 * 375.0, "{rect:?}");
    }
    // By integration over the rectangles that fit, as torchvision accepts them: a mean area of 0.43289 with
    // a standard deviation of 0.217, a mean ratio of 1.04492 with one of 0.168. Four standard errors.
    let (area, ratio) = (area / DRAWS as f64, ratio / DRAWS as f64);
    assert!((area - 0.43289).abs() < 4.0 * 0.0013, "{area}");
    assert!((ratio - 1.04492).abs() < 4.0 * 0.0010, "{ratio}");
    // A strip has no rectangle of these ratios that is 8% of it: the middle is taken.
    let rect = geometry.draw(224, [1000, 10], &mut stream(0)).from;
    assert_eq!((rect.left, rect.top, rect.width, rect.height), (493, 0, 13, 10));
}

#[test]
fn cutouts_stay_on_the_image_and_reach_everywhere() {
    for cutout in [Augment::usb(32).strong.cutout, Augment::google(32, true).strong.cutout] {
        let mut covered = vec![0_u64; 32 * 32];
        let mut largest = 0;
        for sample in 0..DRAWS / 4 {
            let Some((hole, _)) = cutout.draw([32, 32], &mut stream(sample)) else { continue };
            let [[left, right], [top, bottom]] = [hole.columns, hole.rows];
            assert!(left < right && right <= 32 && top < bottom && bottom <= 32, "{hole:?}");
            largest = largest.max(right - left);
            for y in top..bottom {
                covered[y * 32 + left..y * 32 + right].iter_mut().for_each(|count| *count += 1);
            }
        }
        assert!(covered.iter().all(|&count| count > 0));
        // Pillow's rectangle ends with its last pixel, so that a side below 16 covers up to 16.
        assert_eq!(largest, 16);
    }
    assert_eq!(Cutout::None.draw([32, 32], &mut stream(0)), None);
}

#[test]
fn view_depends_on_seed_epoch_sample_and_kind() {
    let augment = Augment::usb(32);
    let image = noise(32, 32);
    let view = |strong, seed, epoch, id, scratch: &mut Scratch| {
        let mut out = vec![0xAA; augment.bytes()];
        let make = if strong { Augment::strong } else { Augment::weak };
        make(&augment, &image, Seed(seed), epoch, id, scratch, &mut out).unwrap();
        out
    };
    // Scratch that other images and sizes have used.
    let mut used = Scratch::default();
    Augment::imagenet()
        .strong(&noise(40, 70), Seed(0), 0, 0, &mut used, &mut vec![0; 224 * 224 * 3])
        .unwrap();
    let mut views = std::collections::BTreeSet::new();
    for strong in [false, true] {
        for (seed, epoch, id) in [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)] {
            let made = view(strong, seed, epoch, id, &mut used);
            assert_eq!(made, view(strong, seed, epoch, id, &mut Scratch::default()));
            views.insert(made);
        }
    }
    assert_eq!(views.len(), 8, "two of the keys gave the same view");
}

#[test]
fn degenerate_sizes_never_panic() {
    let sizes = [(1, 1), (1, 7), (7, 1), (2, 3), (3, 2), (1, 300), (300, 1), (33, 31)];
    let mut scratch = Scratch::default();
    let padded = |size, pad| {
        let mut augment = Augment::usb(size);
        augment.weak = Geometry::Shift { pad, flip: true, first: First::Flip };
        augment
    };
    let mut bicubic = Augment::usb(5);
    bicubic.filter = Filter::Bicubic;
    for augment in [
        Augment::usb(1),
        Augment::usb(2),
        Augment::google(3, true),
        Augment::google(32, false),
        padded(4, 100),
        bicubic,
        Augment { size: 16, ..Augment::imagenet() },
    ] {
        let mut out = vec![0; augment.bytes()];
        for (width, height) in sizes {
            let image = noise(width, height);
            augment.evaluation(&image, &mut scratch, &mut out).unwrap();
            for id in 0..40 {
                augment.weak(&image, Seed(1), 0, id, &mut scratch, &mut out).unwrap();
                augment.strong(&image, Seed(1), 0, id, &mut scratch, &mut out).unwrap();
            }
        }
    }
}

#[test]
fn magnitudes_beyond_all_ranges_never_panic() {
    let mut scratch = Scratch::default();
    for op in Op::ALL {
        for magnitude in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 1e9, -1e9, 1e-300] {
            for (width, height) in [(1, 1), (5, 4)] {
                let mut image = noise(width, height);
                let mut canvas = calmix_data::augment::Canvas::from_image(&mut image).unwrap();
                op.apply(magnitude, &mut canvas, &mut scratch);
            }
        }
    }
}

#[test]
fn evaluation_shows_the_middle() {
    let mut scratch = Scratch::default();
    let (small, image) = (Augment::usb(32), noise(32, 32));
    let mut out = vec![0; small.bytes()];
    small.evaluation(&image, &mut scratch, &mut out).unwrap();
    assert_eq!(out, image.pixels());
    // A square of 256 needs no resize: 224 from the middle are what remains of it.
    let (large, image) = (Augment::imagenet(), noise(256, 256));
    let mut out = vec![0; large.bytes()];
    large.evaluation(&image, &mut scratch, &mut out).unwrap();
    let row = |y: usize| &image.pixels()[(y * 256 + 16) * 3..][..224 * 3];
    assert_eq!(out, (16..240).flat_map(row).copied().collect::<Vec<_>>());
}

#[test]
fn impossible_views_are_errors() {
    let mut scratch = Scratch::default();
    let augment = Augment::usb(4);
    let empty = Image::filled(0, 3, [0; 3]);
    let error = augment.weak(&empty, Seed(1), 0, 0, &mut scratch, &mut [0; 48]).unwrap_err();
    assert!(matches!(error, DataError::EmptyImage { width: 0, height: 3 }), "{error}");
    let error = augment.strong(&noise(4, 4), Seed(1), 0, 0, &mut scratch, &mut [0; 47]).unwrap_err();
    assert_eq!(error.to_string(), "a view of 4 × 4 pixels needs a buffer of 48 bytes, not 47");
}

#[test]
fn settings_are_read_back_and_checked() {
    for preset in [Augment::usb(32), Augment::google(96, false), Augment::imagenet()] {
        preset.check().unwrap();
        let written = serde_json::to_string(&preset).unwrap();
        assert_eq!(serde_json::from_str::<Augment>(&written).unwrap(), preset);
        let unknown = written.replacen("\"flip\"", "\"flop\"", 1);
        assert!(serde_json::from_str::<Augment>(&unknown).is_err(), "{unknown}");
    }
    let usb = serde_json::to_value(Augment::usb(32)).unwrap();
    assert_eq!(usb["strong"]["rand-augment"]["usb"]["operations"], 3);
    assert_eq!(usb["weak"]["shift"]["first"], "crop");
    let crop = |resize| Augment { weak: Geometry::Crop { resize, flip: true }, ..Augment::imagenet() };
    let area = |area| Geometry::ResizedCrop { area, ratio: [1.0, 1.0], flip: true };
    let weak = |weak| Augment { weak, ..Augment::imagenet() };
    for wrong in [
        Augment::usb(0),
        crop(200),
        weak(area([0.5, 0.1])),
        weak(area([0.0, 1.0])),
        weak(area([f64::NAN, 1.0])),
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    let error = crop(200).check().unwrap_err();
    assert_eq!(error.to_string(), "weak.crop.resize is 200; it must be from 224 to 16384");
}
