//! Formats the comparison as Markdown, in lines of at most 100 characters for reading on a terminal.

use calmix_io::text::{MAX_LINE_WIDTH, wrapped};

use super::Comparison;
use super::layout::{TableNumber, best, data_names, differences, notes, paper_layout};

/// The maximum length of a name in a table: with the longest name of a metric, one column of data fits.
const MAX_METHOD_CHARS: usize = 38;
const MAX_DATA_CHARS: usize = 21;

/// The header of a table of differences, in points.
const DIFFERENCES: [&str; 6] = ["Metric", "Pairs", "Points", "95% CI", "p (Holm)", "Result"];

/// The number of columns in the first table that identify a row: metric and method.
const ROW_WORDS: usize = 2;

impl Comparison {
    /// Formats the comparison as Markdown, in lines of at most 100 characters.
    pub fn to_markdown(&self) -> String {
        let data = ShortNames::of(&data_names(self), MAX_DATA_CHARS, "data");
        let methods = ShortNames::of(&self.rows, MAX_METHOD_CHARS, "method");
        let mut text = settings_tables(self, &data.names, &methods.names);
        let differences = differences(self, &data.names, &methods.names);
        // One table per pair of methods: the names of data and methods would make a single table too wide.
        for pair in differences.chunk_by(|a, b| a[..3] == b[..3]) {
            let [data, method, against, ..] = &pair[0];
            let title = format!("{method} minus {against}, in points, on {data}:");
            text.extend(["\n", &wrapped(&escaped(&title), 0, 0), "\n\n"]);
            let rows: Vec<Vec<String>> =
                pair.iter().map(|row| row[3..].iter().map(|cell| escaped(cell)).collect()).collect();
            text += &table(&DIFFERENCES.map(str::to_owned), 1, &rows);
        }
        text += "\n";
        for note in methods.legend.into_iter().chain(data.legend).chain(notes(self)) {
            text.extend(["- ", &wrapped(&escaped(&note), 2, 2), "\n"]);
        }
        text
    }
}

/// Names short enough for a table, with the full names of shortened ones.
struct ShortNames {
    names: Vec<String>,
    legend: Vec<String>,
}

impl ShortNames {
    /// Shortens names of more than `max_chars` characters to the part before their settings, with a number.
    fn of(full: &[String], max_chars: usize, noun: &str) -> Self {
        let mut names = Vec::new();
        let mut legend = Vec::new();
        for (place, name) in full.iter().enumerate() {
            if name.chars().count() <= max_chars {
                names.push(name.clone());
                continue;
            }
            let words: Vec<&str> = name.split(", ").take_while(|part| !part.contains(" = ")).collect();
            let number = format!(" #{}", place + 1);
            let stem = Some(words.join(", "))
                .filter(|stem| !stem.is_empty() && stem.chars().count() + number.len() <= max_chars);
            let short = stem.unwrap_or_else(|| noun.to_owned()) + &number;
            legend.push(format!("{short}: {name}"));
            names.push(short);
        }
        Self { names, legend }
    }
}

/// Formats the metrics of every setting, in as many tables as the columns of data need.
fn settings_tables(comparison: &Comparison, data: &[String], methods: &[String]) -> String {
    let head = ["Metric".to_owned(), "Method".to_owned()].into_iter().chain(data.iter().cloned());
    let head: Vec<String> = head.map(|cell| escaped(&cell)).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (measure, of_measure) in paper_layout(comparison, methods) {
        let best = best(measure, &of_measure);
        for (row, (name, numbers)) in of_measure.into_iter().enumerate() {
            let numbers = numbers.into_iter().zip(&best).map(|(of, best)| match best {
                Some(best) if *best == row => format!("**{}**", number(of)),
                _ => number(of),
            });
            let words = [measure.name().to_owned(), name].map(|word| escaped(&word));
            rows.push(words.into_iter().chain(numbers).collect());
        }
    }
    let mut tables = Vec::new();
    for columns in blocks(&widths(&head, &rows)) {
        let block = |row: &Vec<String>| columns.iter().map(|&column| row[column].clone()).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(block).collect();
        // Not every method is trained on all data.
        let rows = rows.into_iter().filter(|row| row[ROW_WORDS..].iter().any(|cell| !cell.is_empty()));
        tables.push(table(&block(&head), ROW_WORDS, &rows.collect::<Vec<_>>()));
    }
    tables.join("\n")
}

/// Divides the columns into tables: the ones that identify rows, and as many others as fit into a line.
fn blocks(widths: &[usize]) -> Vec<Vec<usize>> {
    let row_words = 1 + widths[..ROW_WORDS].iter().map(|width| width + 3).sum::<usize>();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = MAX_LINE_WIDTH;
    for (column, width) in widths.iter().enumerate().skip(ROW_WORDS) {
        if used + width + 3 > MAX_LINE_WIDTH {
            blocks.push((0..ROW_WORDS).collect());
            used = row_words;
        }
        blocks.last_mut().into_iter().for_each(|block| block.push(column));
        used += width + 3;
    }
    blocks
}

fn widths(head: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row[column]).chain([&head[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    (0..head.len()).map(width).collect()
}

fn number(number: TableNumber) -> String {
    match number {
        TableNumber::Ours(mean, std, n, digits) => format!("{mean:.digits$}{} ({n})", scatter(std, digits)),
        TableNumber::Paper(mean, std) => format!("{mean:.2}{}", scatter(std, 2)),
        TableNumber::MinusPaper(points) => format!("{points:+.2}"),
        TableNumber::Nothing => String::new(),
    }
}

fn scatter(std: Option<f64>, digits: usize) -> String {
    std.map(|std| format!(" ± {std:.digits$}")).unwrap_or_default()
}

/// Formats a table of escaped cells with aligned columns: the first `words` to the left, the others to the right.
fn table(head: &[String], words: usize, rows: &[Vec<String>]) -> String {
    let widths = widths(head, rows);
    let rows: Vec<Vec<String>> = [head.to_vec()].into_iter().chain(rows.iter().cloned()).collect();
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

/// Escapes characters that would end a cell or start markup.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        if "|\\`*<[".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    })
}
