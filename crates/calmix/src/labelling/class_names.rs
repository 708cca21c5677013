//! New classes whose names look like a mistyped class.

use std::collections::BTreeSet;

use calmix_formats::labels::columns::simplified;

/// The minimum length of names that may differ by a typo: `cat` and `bat` are classes, `sparow` and `sparrow` hardly are.
const MIN_TYPO_LETTERS: usize = 5;

/// Two classes that may be the same.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SimilarClasses {
    pub(crate) new: String,
    pub(crate) other: String,
    pub(crate) difference: &'static str,
}

/// Finds for each new class the first existing or other new class that differs only by case, spaces or one letter.
pub(crate) fn similar_classes(new: &BTreeSet<String>, existing: &BTreeSet<String>) -> Vec<SimilarClasses> {
    let mut found = Vec::new();
    for name in new {
        // Of two new classes, only the second is compared with the first.
        let mut others = existing.iter().chain(new.iter().take_while(|other| *other != name));
        let similar = others.find_map(|other| Some((other, difference(name, other)?)));
        if let Some((other, difference)) = similar {
            found.push(SimilarClasses { new: name.clone(), other: other.clone(), difference });
        }
    }
    found
}

fn difference(name: &str, other: &str) -> Option<&'static str> {
    if simplified(name) == simplified(other) {
        return Some("only in case, spaces, _ or -");
    }
    differ_by_one_letter(name, other).then_some("by one letter")
}

/// Returns whether one letter was replaced, added, left out, or swapped with its neighbour. Digits are not letters: `class 1` and
/// `class 2` are two classes.
fn differ_by_one_letter(name: &str, other: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let other: Vec<char> = other.chars().collect();
    if name.len().min(other.len()) < MIN_TYPO_LETTERS {
        return false;
    }
    let start = name.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let rest = &name[start..];
    let other_rest = &other[start..];
    let end = rest.iter().rev().zip(other_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let middle = &rest[..rest.len() - end];
    let other_middle = &other_rest[..other_rest.len() - end];
    let is_edit = match (middle, other_middle) {
        ([_], [_] | []) | ([], [_]) => true,
        ([a, b], [c, d]) => (a, b) == (d, c),
        _ => false,
    };
    is_edit && middle.iter().chain(other_middle).all(|letter| letter.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_found_and_numbers_are_not() {
        for (a, b) in [
            ("Cat", "cat"),
            ("barn owl", "barn_owl"),
            ("sparow", "sparrow"),
            ("robni", "robin"),
            ("linden", "lindem"),
        ] {
            assert!(difference(a, b).is_some() && difference(b, a).is_some(), "{a} {b}");
        }
        for (a, b) in [
            ("cat", "bat"),
            ("class 1", "class 2"),
            ("class 1", "class 12"),
            ("1", "2"),
            ("sparrow", "swallow"),
            ("robin", "linnet"),
        ] {
            assert_eq!((difference(a, b), difference(b, a)), (None, None), "{a} {b}");
        }
    }

    #[test]
    fn new_classes_are_compared_with_each_other() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let found = similar_classes(&set(&["Robin", "robin", "wren"]), &set(&["Wren"]));
        let pairs: Vec<_> = found.iter().map(|pair| (pair.new.as_str(), pair.other.as_str())).collect();
        assert_eq!(pairs, [("robin", "Robin"), ("wren", "Wren")]);
    }
}
