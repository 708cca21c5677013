//! Lines of a CSV text that hold nothing: the crate `csv` skips them, although each may stand for a row.

/// The number of empty lines at `place`, which is where a record ends, or 0.
///
/// A line that is ended by CR LF may end at either: the record before the empty lines ends at its CR.
pub fn blank_lines(text: &[u8], place: usize) -> u64 {
    let Some((before, mut rest)) = text.split_at_checked(place) else { return 0 };
    if before.ends_with(b"\r") {
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    let mut lines = 0;
    while let Some(after) = [b"\r\n".as_slice(), b"\n", b"\r"].iter().find_map(|end| rest.strip_prefix(*end))
    {
        rest = after;
        lines += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_of_every_system_are_counted() {
        for (text, lines) in [("a\n\n\nb", 2), ("a\r\n\r\n\r\nb", 2), ("a\r\r\rb", 2), ("a\nb", 0), ("a", 0)]
        {
            // Where the record `a` ends: after its CR or LF.
            let place = 2.min(text.len());
            assert_eq!(blank_lines(text.as_bytes(), place), lines, "{text:?}");
        }
        assert_eq!(blank_lines(b"a\r\n\r\n", 3), 1);
        assert_eq!(blank_lines(b"\n\na", 0), 2);
        assert_eq!(blank_lines(b"a", 9), 0);
    }
}
