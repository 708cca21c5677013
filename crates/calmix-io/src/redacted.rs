//! Removes potential secrets from URLs in a text: user name, password, query and fragment.
//!
//! A copied URL may hold a password or a signature, and messages end up in logs.

/// Returns the text with each URL reduced to its protocol, host and path.
///
/// ```
/// use calmix_io::redacted::redacted;
///
/// assert_eq!(redacted("https://me:word@host:80/a.tar?X-Amz-Signature=1"), "https://host:80/a.tar");
/// assert_eq!(redacted("error for url (http://host/a?b=c): refused"), "error for url (http://host/a): refused");
/// assert_eq!(redacted("no URL: a@b?c"), "no URL: a@b?c");
/// ```
pub fn redacted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + "://".len());
        kept.push_str(before);
        let end = after.find(ends_url).unwrap_or(after.len());
        let (url, behind) = after.split_at(end);
        // Punctuation of the sentence, which would otherwise become part of the query.
        let (url, mark) = url.split_at(url.trim_end_matches([':', ',', ';']).len());
        let url = without_user(url);
        kept.push_str(url.find(['?', '#']).and_then(|query| url.get(..query)).unwrap_or(url));
        kept.push_str(mark);
        rest = behind;
    }
    kept + rest
}

/// Removes user name and password from a URL without its protocol.
fn without_user(url: &str) -> &str {
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    let has_port =
        authority.rsplit_once(':').is_none_or(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()));
    let at = match authority.rfind('@') {
        // A password with `/`, `?` or `#` in it looks like an invalid port.
        None if !has_port && !authority.ends_with(']') => url.rfind('@'),
        at => at,
    };
    at.and_then(|at| url.get(at + 1..)).unwrap_or(url)
}

/// Returns whether a character ends a URL in a sentence.
fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_url_of_a_text_loses_its_secrets() {
        for (text, expected) in [
            ("s3://key:secret@bucket/a", "s3://bucket/a"),
            ("HTTPS://u:p@h/x#frag, then", "HTTPS://h/x, then"),
            ("a http://u@b c http://d?e f", "a http://b c http://d f"),
            ("http://h?sig=1/2@3", "http://h"),
            ("https://me:pa/ss@host/a", "https://host/a"),
            ("https://me:p?s#s@host/a?b", "https://host/a"),
            ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
            ("https://host/path@2/a.tar", "https://host/path@2/a.tar"),
            ("https://u:p@h/a.tar?sig=1: refused", "https://h/a.tar: refused"),
            ("http://", "http://"),
            ("://", "://"),
            ("s3://bucket/train-{000..003}.tar", "s3://bucket/train-{000..003}.tar"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }
}
