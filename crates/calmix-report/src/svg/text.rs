//! Escapes text for markup, since it may come from an untrusted file.

use calmix_io::shown::shown;

/// Escapes a text for HTML and XML: no markup, no control characters, no marks that reorder text.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in shown(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no place for these, whatever stands for them.
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Shortens a text to at most `most` characters, with an ellipsis if something is left out.
pub fn fitted(text: &str, most: usize) -> String {
    let text = shown(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_by_characters() {
        assert_eq!(fitted("Größe", 5), "Größe");
        assert_eq!(fitted("Größen", 5), "Größ…");
    }

    #[test]
    fn escaped_text_is_not_markup() {
        assert_eq!(escaped("\u{ffff}</svg><script>"), "\u{fffd}&lt;/svg&gt;&lt;script&gt;");
        assert_eq!(
            escaped("<b>'cat' & \"dog\"\u{1b}"),
            r"&lt;b&gt;&#39;cat&#39; &amp; &quot;dog&quot;\u{1b}"
        );
    }
}
