//! Formats the comparison as LaTeX in the paper's layout; needs booktabs and multirow.

use super::Comparison;
use super::layout::{TableNumber, best, data_names, differences, notes, paper_layout};

impl Comparison {
    /// Formats the comparison as LaTeX, with booktabs and multirow.
    pub fn to_latex(&self) -> String {
        let mut text = "% \\usepackage{booktabs,multirow}\n".to_owned();
        for note in notes(self) {
            text.extend(["% ", &note, "\n"]);
        }
        text += &papers(self);
        let differences = differences(self, &data_names(self), &self.rows);
        if !differences.is_empty() {
            text += "\n\\begin{tabular}{llllrrrrl}\n\\toprule\n";
            text += "Data & Method & Compared with & Metric & Pairs & Difference, points & 95\\% CI & p (Holm) & Result \\\\\n";
            text += "\\midrule\n";
            for row in differences {
                text += &line(row.iter().map(|cell| escaped(cell)));
            }
            text += "\\bottomrule\n\\end{tabular}\n";
        }
        text
    }
}

fn papers(comparison: &Comparison) -> String {
    let columns = &comparison.columns;
    let mut text = format!("\\begin{{tabular}}{{ll{}}}\n\\toprule\n", "c".repeat(columns.len()));
    // A dataset spans the columns of its label counts.
    let mut datasets = Vec::new();
    let mut rules = Vec::new();
    let mut from = 0;
    for same in columns.chunk_by(|a, b| a.dataset == b.dataset) {
        datasets.push(format!("\\multicolumn{{{}}}{{c}}{{{}}}", same.len(), escaped(&same[0].dataset)));
        rules.push(format!("\\cmidrule(lr){{{}-{}}}", from + 3, from + same.len() + 2));
        from += same.len();
    }
    text += &line(["Metric".to_owned(), "Method".to_owned()].into_iter().chain(datasets));
    text += &(rules.concat() + "\n");
    text += &line(
        [String::new(), String::new()]
            .into_iter()
            .chain(columns.iter().map(|column| escaped(&column.labels))),
    );
    for (measure, rows) in paper_layout(comparison, &comparison.rows) {
        text += "\\midrule\n";
        let mut title = format!("\\multirow{{{}}}{{*}}{{{}}}", rows.len(), measure.name());
        let best = best(measure, &rows);
        for (row, (name, numbers)) in rows.into_iter().enumerate() {
            let numbers = numbers.into_iter().zip(&best).map(|(of, best)| match best {
                Some(best) if *best == row => format!("{{\\boldmath {}}}", number(of)),
                _ => number(of),
            });
            text += &line([std::mem::take(&mut title), escaped(&name)].into_iter().chain(numbers));
        }
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    format!("{} \\\\\n", cells.into_iter().collect::<Vec<_>>().join(" & "))
}

/// Formats a number as in the paper, with the standard deviation as a subscript.
fn number(number: TableNumber) -> String {
    let index =
        |std: Option<f64>, digits: usize| std.map(|std| format!("_{{{std:.digits$}}}")).unwrap_or_default();
    match number {
        TableNumber::Ours(mean, std, n, digits) => format!("${mean:.digits$}{}$ ({n})", index(std, digits)),
        TableNumber::Paper(mean, std) => format!("${mean:.2}{}$", index(std, 2)),
        TableNumber::MinusPaper(points) => format!("${points:+.2}$"),
        TableNumber::Nothing => String::new(),
    }
}

/// Escapes characters with a meaning in LaTeX, and replaces the few non-ASCII characters that calmix uses. Other non-ASCII
/// characters become `?`, because LaTeX stops if the font lacks them.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '<' => escaped += "$<$",
            '>' => escaped += "$>$",
            '|' => escaped += "$|$",
            '–' => escaped += "--",
            '±' => escaped += "$\\pm$",
            '"' => escaped += "''",
            '[' | ']' => escaped.extend(['{', c, '}']),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' => escaped.push(c),
            _ => escaped.push('?'),
        }
    }
    escaped
}
