//! Expands shard names with braces, as the package webdataset does: `train-{000..099}.tar`, `{train,test}.tar`.

/// The maximum number of names that an expression may expand to.
const MAX_NAMES: usize = 1 << 20;

/// Expands `text` to names in order; a text without braces is returned unchanged.
///
/// # Errors
/// A message that says what is wrong with the braces.
pub(crate) fn expand(text: &str) -> Result<Vec<String>, String> {
    let Some(open) = text.find('{') else {
        return if text.contains('}') {
            Err("a } without a {".to_owned())
        } else {
            Ok(vec![text.to_owned()])
        };
    };
    let (before, rest) = text.split_at(open);
    let (inside, after) = matching(&rest[1..]).ok_or_else(|| "a { without a }".to_owned())?;
    if before.contains('}') {
        return Err("a } without a {".to_owned());
    }
    let choices = if let Some(names) = range(inside)? {
        names
    } else {
        let mut names = Vec::new();
        for choice in top_level(inside) {
            names.extend(expand(choice)?);
        }
        names
    };
    let rest = expand(after)?;
    if choices.len().saturating_mul(rest.len()) > MAX_NAMES {
        return Err(format!("the braces stand for more than {MAX_NAMES} names"));
    }
    let mut all = Vec::with_capacity(choices.len() * rest.len());
    for choice in &choices {
        all.extend(rest.iter().map(|rest| format!("{before}{choice}{rest}")));
    }
    Ok(all)
}

/// Splits `text`, which starts after the opening brace, into the content of the braces and the rest.
fn matching(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
    }
    None
}

/// Splits at commas outside of inner braces.
fn top_level(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(move |letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .collect()
}

/// Expands `first..last` to numbers as wide as the first; `None` if it is not a range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((first, last)) = text.split_once("..") else { return Ok(None) };
    if text.contains(['{', ',']) {
        return Ok(None);
    }
    let number = |digits: &str| {
        let all_digits =
            !digits.is_empty() && digits.len() < 19 && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| all_digits)
    };
    let wrong = || format!("{{{text}}} is not a range of numbers such as {{000..099}}");
    let from = number(first).ok_or_else(wrong)?;
    let to = number(last).filter(|&to| to >= from).ok_or_else(wrong)?;
    if to - from >= MAX_NAMES as u64 {
        return Err(format!("{{{text}}} stands for more than {MAX_NAMES} names"));
    }
    let width = first.len();
    Ok(Some((from..=to).map(|number| format!("{number:0width$}")).collect()))
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn braces_expand_as_in_a_shell() {
        assert_eq!(expand("a.tar").unwrap(), ["a.tar"]);
        assert_eq!(expand("t-{08..11}.tar").unwrap(), ["t-08.tar", "t-09.tar", "t-10.tar", "t-11.tar"]);
        let nested = expand("{train-{0..1},test}.tar").unwrap();
        assert_eq!(nested, ["train-0.tar", "train-1.tar", "test.tar"]);
        assert_eq!(expand("{a,b}{0..1}").unwrap(), ["a0", "a1", "b0", "b1"]);
    }

    #[test]
    fn hostile_braces_are_refused() {
        for bad in ["{0..99999999999999999999}", "{0..9999999}", "{", "a}", "}{", "{b..a}", "{3..1}", "{0..}"]
        {
            assert!(expand(bad).is_err(), "{bad}");
        }
        let many = "{0..9}".repeat(7);
        assert!(expand(&many).unwrap_err().contains("more than"));
    }
}
