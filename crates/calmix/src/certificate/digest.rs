//! SHA-256 in hexadecimal digits: a hash that every language has, so that a certificate can be checked without calmix.

use std::fmt::Write as _;
use std::io::{self, Read};

use ring::digest::{Context, SHA256};

/// The number of hexadecimal digits.
pub(super) const DIGITS: usize = 64;
const BUFFER_BYTES: usize = 1 << 16;

/// Returns the hash of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    hexadecimal(context)
}

/// Returns the hash of all that a reader has.
pub(super) fn sha256_of(mut reader: impl Read) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hexadecimal(context)),
            read => context.update(&buffer[..read]),
        }
    }
}

fn hexadecimal(context: Context) -> String {
    let mut text = String::with_capacity(DIGITS);
    for byte in context.finish().as_ref() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns whether a text is a hash.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256sum() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
        assert_eq!(sha256_of(&b"abc"[..]).unwrap(), expected);
        assert!(is_sha256(expected) && !is_sha256("abc") && !is_sha256(&expected.to_uppercase()));
    }
}
