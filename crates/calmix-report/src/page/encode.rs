//! Pictures as part of a page: PNG in base64.

/// A square RGB picture as an address that holds it; none if it cannot be encoded.
pub(super) fn data_url(pixels: &[u8], side: usize) -> Option<String> {
    let mut bytes = Vec::new();
    let side = u32::try_from(side).ok()?;
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(format!("data:image/png;base64,{}", base64(&bytes)))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let filled = digit <= group.len();
            let at = (bits >> (18 - 6 * digit) & 63) as usize;
            text.push(if filled { char::from(DIGITS[at]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples as those of RFC 4648.
    #[test]
    fn base64_is_that_of_the_standard() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("be", "YmU="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in pairs {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(data_url(&[0; 11], 2), None);
        assert!(data_url(&[0; 12], 2).unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
    }
}
