//! Counts in a readable form: `1 class`, `2,000 steps`.

/// Formats a number with thousands separators: 1,048,576.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count with its noun, whose last word is put in the plural: `3 training labels`.
pub fn counted(number: u64, noun: &str) -> String {
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    let plural = match number {
        1 => "",
        _ if hisses => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", grouped(number))
}

/// Formats a count of samples with the number of their groups, if any: "38 labels in 21 groups".
pub fn counted_in_groups(number: u64, noun: &str, groups: Option<u64>) -> String {
    let samples = counted(number, noun);
    match groups {
        Some(groups) => format!("{samples} in {}", counted(groups, "group")),
        None => samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_thousands_are_apart() {
        assert_eq!([0, 999, 1000, 1_048_576].map(grouped), ["0", "999", "1,000", "1,048,576"]);
        assert_eq!([counted(1, "step"), counted(2000, "step")], ["1 step", "2,000 steps"]);
        assert_eq!(
            [counted(1, "class"), counted(0, "class"), counted(2, "batch")],
            ["1 class", "0 classes", "2 batches"]
        );
        assert_eq!(counted(2, "process"), "2 processes");
    }
}
