//! Small files that claim to be large are refused from their headers: in little time and little memory.

use std::time::{Duration, Instant};

use calmix_data::decode::{DecodeError, Limits, decode};

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in [(b"IHDR", header.as_slice()), (b"IDAT", &[0; 64]), (b"IEND", &[])] {
        let mut crc = flate2::Crc::new();
        crc.update(name);
        crc.update(data);
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(name);
        bytes.extend(data);
        bytes.extend(crc.sum().to_be_bytes());
    }
    bytes
}

fn jpeg(width: u16, height: u16, marker: u8) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8, 0xff, marker, 0, 17, 8];
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes.extend([3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    bytes.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0, 0, 0, 0xff, 0xd9]);
    bytes
}

fn webp(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut body = b"WEBP".to_vec();
    for (name, data) in chunks {
        body.extend(*name);
        body.extend((data.len() as u32).to_le_bytes());
        body.extend(*data);
    }
    [b"RIFF".as_slice(), &(body.len() as u32).to_le_bytes(), &body].concat()
}

#[test]
fn bombs_are_refused_from_their_headers() {
    let lossy = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0xff, 0x3f, 0xff, 0x3f, 0, 0];
    let small_canvas = [0; 10];
    let bombs = [
        ("png", png(100_000, 100_000)),
        ("png, one row", png(u32::MAX, 1)),
        ("png, largest", png(u32::MAX, u32::MAX)),
        ("jpeg", jpeg(65_500, 65_500, 0xc0)),
        ("progressive jpeg", jpeg(65_500, 65_500, 0xc2)),
        ("webp", webp(&[(b"VP8 ", &lossy)])),
        ("webp, lossless", webp(&[(b"VP8L", &[0x2f, 0xff, 0xff, 0xff, 0x0f, 0])])),
    ];
    for (name, bytes) in &bombs {
        let start = Instant::now();
        let error = decode(bytes, &Limits::default()).unwrap_err();
        assert!(matches!(error, DecodeError::Size { .. }), "{name}: {error}");
        assert!(start.elapsed() < Duration::from_millis(100), "{name}: {:?}", start.elapsed());
    }
    // Its canvas is 1×1, its pixels 16,383×16,383: a decoder allocates for the second.
    let error =
        decode(&webp(&[(b"VP8X", &small_canvas), (b"VP8 ", &lossy)]), &Limits::default()).unwrap_err();
    assert_eq!(error, DecodeError::Damaged("WebP", "two sizes in one file".into()));
    if let Some(peak) = peak_memory() {
        assert!(peak < 64 << 20, "{peak} bytes at most");
    }
}

/// The most memory this process has ever had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[test]
fn a_second_frame_cannot_change_the_size() {
    let mut bytes = jpeg(8, 8, 0xc0);
    let frame = jpeg(65_500, 65_500, 0xc0)[2..21].to_vec();
    bytes.splice(bytes.len() - 2..bytes.len() - 2, frame);
    let error = decode(&bytes, &Limits::default()).unwrap_err();
    assert_eq!(error, DecodeError::Damaged("JPEG", "two frames in one file".into()));
}
