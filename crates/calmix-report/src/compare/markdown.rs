//! The comparison as Markdown.

use super::layout::{DIFFERENCES, TableNumber, best, differences, notes, papers_layout};
use super::{Comparison, DataColumn};

pub(super) fn write(comparison: &Comparison) -> String {
    let mut text = String::new();
    let data =
        comparison.columns.iter().map(|DataColumn { dataset, labels, .. }| format!("{dataset}, {labels}"));
    let head = ["Metric".to_owned(), "Method".to_owned()].into_iter().chain(data);
    let head: Vec<String> = head.map(|cell| escaped(&cell)).collect();
    let mut rows = Vec::new();
    for (measure, of_measure) in papers_layout(comparison) {
        let best = best(&of_measure);
        for (row, (name, numbers)) in of_measure.into_iter().enumerate() {
            let numbers = numbers.into_iter().zip(&best).map(|(of, best)| match best {
                Some(best) if *best == row => format!("**{}**", number(of)),
                _ => number(of),
            });
            let words = [measure.name().to_owned(), name].map(|word| escaped(&word));
            rows.push(words.into_iter().chain(numbers).collect());
        }
    }
    text += &table(&head, 2, &rows);
    let escape_row = |row: [String; 9]| row.iter().map(|cell| escaped(cell)).collect();
    let differences: Vec<Vec<String>> = differences(comparison).into_iter().map(escape_row).collect();
    if !differences.is_empty() {
        text += "\n";
        text += &table(&DIFFERENCES.map(str::to_owned), 4, &differences);
    }
    text += "\n";
    for note in notes(comparison) {
        text.extend(["- ", &escaped(&note), "\n"]);
    }
    text
}

fn number(number: TableNumber) -> String {
    match number {
        TableNumber::Ours(mean, std, n, digits) => format!("{mean:.digits$}{} ({n})", scatter(std, digits)),
        TableNumber::Papers(mean, std) => format!("{mean:.2}{}", scatter(std, 2)),
        TableNumber::BesidePaper(points) => format!("{points:+.2}"),
        TableNumber::Nothing => String::new(),
    }
}

fn scatter(std: Option<f64>, digits: usize) -> String {
    std.map(|std| format!(" ± {std:.digits$}")).unwrap_or_default()
}

/// A table of escaped cells whose columns are aligned, the first `words` to the left and the others to the right.
fn table(head: &[String], words: usize, rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = [head.to_vec()].into_iter().chain(rows.iter().cloned()).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let rule = |(column, &width): (usize, &usize)| {
        if column < words { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
    };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let padded = |(column, cell): (usize, &String)| {
        let width = widths[column];
        if column < words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text += &line(row.iter().enumerate().map(padded).collect());
        if number == 0 {
            text += &line(widths.iter().enumerate().map(rule).collect());
        }
    }
    text
}

/// Escapes characters that would end a cell or begin markup.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        if "|\\`*<[".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    })
}
