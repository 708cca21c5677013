//! Ten thousand damaged images: an error or an image, never a panic, never much memory.

use calmix_core::rng::{Domain, Seed, Stream};
use calmix_formats::decode::{DecodeLimits, decode};
use calmix_testkit::memory;
use calmix_testkit::photos::Golden;

/// Small, so that a claim to be large shows as an error and not as minutes of decoding.
const LIMITS: DecodeLimits = DecodeLimits { side: 4_096, pixels: 1 << 20, bytes: 1 << 20 };

#[test]
fn damaged_images_never_panic() {
    let golden = Golden::load();
    let (mut images, mut errors) = (0, 0);
    for number in 0..10_000 {
        let mut stream = Seed(11).stream(Domain::Split, 0, number);
        let case = &golden.images[stream.index(golden.images.len())];
        let mut bytes = golden.bytes(case.file).to_vec();
        damage(&mut bytes, &mut stream);
        match decode(&bytes, &LIMITS) {
            Ok(_) => images += 1,
            Err(_) => errors += 1,
        }
    }
    // Damage inside compressed pixels often cannot be detected; damage elsewhere must be.
    assert!(errors > 2_000 && images > 500, "{errors} errors, {images} images");
    if let Some(peak) = memory::peak() {
        assert!(peak < 96 << 20, "{peak} bytes at most, of which the golden files are a few");
    }
}

fn damage(bytes: &mut Vec<u8>, stream: &mut Stream) {
    const TELLING: [u8; 10] = [0, 1, 0x7f, 0x80, 0xff, 0xd8, 0xd9, 0xda, 0xc0, 0xc4];
    for _ in 0..=stream.index(4) {
        let at = stream.index(bytes.len());
        match stream.index(6) {
            0 => bytes[at] ^= 1 << stream.index(8),
            1 => bytes[at] = stream.next_u32() as u8,
            2 => bytes[at] = TELLING[stream.index(TELLING.len())],
            3 => drop(bytes.splice(at..at, [0xff, TELLING[stream.index(TELLING.len())]])),
            4 => drop(bytes.drain(at..bytes.len().min(at + 1 + stream.index(8)))),
            _ if stream.index(4) == 0 => bytes.truncate(at),
            // The headers are the first bytes, and the most dangerous.
            _ => bytes[at.min(stream.index(64))] = stream.next_u32() as u8,
        }
        if bytes.is_empty() {
            return;
        }
    }
}
