//! One header block of a tar archive, and the reasons to refuse it.

use std::{fmt, io};

/// Why a member is refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The operating system could not read.
    Io(io::Error),
    /// The archive ends too early.
    Short,
    /// Any other problem.
    Header(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Short => f.write_str("the archive is cut short"),
            Self::Header(what) => f.write_str(what),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The size of a block, in bytes.
pub(super) const BLOCK: u64 = 512;

/// A header block.
#[derive(Debug)]
pub(super) struct TarBlock(pub(super) [u8; BLOCK as usize]);

impl TarBlock {
    /// Returns the kind of member.
    pub(super) fn kind(&self) -> u8 {
        self.0[156]
    }

    /// Checks the checksum and every number, and returns the size.
    ///
    /// `tarfile` treats a header with any unreadable number as the end of the archive, so every number counts.
    pub(super) fn check(&self) -> Result<u64, Refusal> {
        let wrong = |what: &str| Refusal::Header(format!("an invalid {what} in a header"));
        let stored = number(&self.0[148..156]).ok_or_else(|| wrong("checksum"))?;
        let blank = |at: usize, byte: u8| if (148..156).contains(&at) { b' ' } else { byte };
        let bytes = || self.0.iter().enumerate().map(|(at, &byte)| blank(at, byte));
        let sum: u64 = bytes().map(u64::from).sum();
        // Some old programs summed signed bytes.
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        if stored != sum && i64::try_from(stored) != Ok(signed) {
            return Err(wrong("checksum"));
        }
        for field in [100..108, 108..116, 116..124, 136..148, 329..337, 337..345] {
            let field = &self.0[field];
            // Times and owners may be negative in base 256; they are not used.
            if number(field).is_none() && field.first() != Some(&0xff) {
                return Err(wrong("number"));
            }
        }
        number(&self.0[124..136]).ok_or_else(|| wrong("size"))
    }

    /// Returns the name with ustar's prefix.
    pub(super) fn name(&self) -> Result<String, Refusal> {
        let name = text(&self.0[..100])?;
        if self.0[345] == 0 {
            return Ok(name);
        }
        // GNU stores times where ustar stores the prefix.
        if &self.0[257..263] != b"ustar\0" {
            return Err(Refusal::Header("a name prefix in a header format without one".into()));
        }
        Ok(format!("{}/{name}", text(&self.0[345..500])?))
    }
}

/// Decodes text up to the first NUL.
pub(super) fn text(bytes: &[u8]) -> Result<String, Refusal> {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = str::from_utf8(text).map_err(|_| Refusal::Header("a name that is not UTF-8".into()))?;
    Ok(text.to_owned())
}

/// Parses a number in octal digits, or in base 256 if it starts with 0x80.
fn number(field: &[u8]) -> Option<u64> {
    if let [0x80, digits @ ..] = field {
        return digits.iter().try_fold(0_u64, |value, &digit| {
            value.checked_mul(256).and_then(|value| value.checked_add(u64::from(digit)))
        });
    }
    let digits = field.split(|&byte| byte == 0).next().unwrap_or_default().trim_ascii();
    digits.iter().try_fold(0_u64, |value, &digit| match digit {
        b'0'..=b'7' => value.checked_mul(8).and_then(|value| value.checked_add(u64::from(digit - b'0'))),
        _ => None,
    })
}

/// Parses a decimal number that consists only of digits.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b" 644 \0\0\0"), Some(0o644));
        assert_eq!(number(b"\0\0\0\0"), Some(0));
        assert_eq!(number(b"0000649\0"), None);
        assert_eq!(number(b"-1\0"), None);
        assert_eq!(number(&[0x80, 0, 1, 0]), Some(256));
        assert_eq!(number(&[0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(decimal(b""), None);
        assert_eq!(decimal(b"+1"), None);
        assert_eq!(decimal(b"99999999999999999999"), None);
    }
}
