//! The confusion matrix: predicted class by true class.

use std::collections::BTreeMap;

use serde::Serialize;

use super::view::{DataTable, PlotView, TableCell};
use crate::svg::{Drawing, shortened};

/// The maximum number of classes to draw; if there are more, those with the most mistakes are drawn.
const MAX_CLASSES: usize = 20;
const MAX_ROWS: usize = 200;

/// Counts of predicted classes, by true class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfusionMatrix {
    pub classes: Vec<String>,
    /// Every pair that occurs, by class and prediction.
    pub cells: Vec<ConfusedPair>,
}

/// The images of one class that were predicted as one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ConfusedPair {
    pub label: u32,
    pub predicted: u32,
    pub count: u64,
}

impl ConfusionMatrix {
    pub fn of(classes: &[String], labels: &[u32], predicted: &[u32]) -> Self {
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (&label, &prediction) in labels.iter().zip(predicted) {
            *counts.entry((label, prediction)).or_default() += 1;
        }
        let cell = |((label, predicted), count)| ConfusedPair { label, predicted, count };
        Self { classes: classes.to_vec(), cells: counts.into_iter().map(cell).collect() }
    }

    fn samples(&self) -> BTreeMap<u32, u64> {
        let mut samples = BTreeMap::new();
        for cell in &self.cells {
            *samples.entry(cell.label).or_default() += cell.count;
        }
        samples
    }

    /// Lists the mistakes, the most frequent first.
    fn mistakes(&self) -> Vec<ConfusedPair> {
        let mut wrong: Vec<_> =
            self.cells.iter().copied().filter(|cell| cell.label != cell.predicted).collect();
        wrong.sort_by_key(|cell| (std::cmp::Reverse(cell.count), cell.label, cell.predicted));
        wrong
    }

    /// Returns the classes to draw, in their order.
    fn drawn(&self) -> Vec<u32> {
        let all = 0..self.classes.len() as u32;
        if self.classes.len() <= MAX_CLASSES {
            return all.collect();
        }
        let mut wrong: BTreeMap<u32, u64> = all.map(|class| (class, 0)).collect();
        for cell in self.mistakes() {
            for class in [cell.label, cell.predicted] {
                *wrong.entry(class).or_default() += cell.count;
            }
        }
        let mut classes: Vec<(u32, u64)> = wrong.into_iter().collect();
        classes.sort_by_key(|&(class, count)| (std::cmp::Reverse(count), class));
        let mut drawn: Vec<u32> = classes.into_iter().take(MAX_CLASSES).map(|(class, _)| class).collect();
        drawn.sort_unstable();
        drawn
    }

    fn name(&self, class: u32) -> &str {
        self.classes.get(class as usize).map_or("", String::as_str)
    }
}

/// Returns the first of the sorted mistakes, unless the second is as frequent.
fn most_frequent(mistakes: &[ConfusedPair]) -> Option<&ConfusedPair> {
    let second = mistakes.get(1).map_or(0, |cell| cell.count);
    mistakes.first().filter(|cell| cell.count > second)
}

/// Plots the matrix of a run and lists the most frequent mistakes.
pub(super) fn view(matrix: &ConfusionMatrix) -> PlotView {
    let samples = matrix.samples();
    let mistakes = matrix.mistakes();
    let row = |cell: &ConfusedPair| {
        let all = samples.get(&cell.label).copied().unwrap_or(0).max(1);
        vec![
            TableCell::Text(matrix.name(cell.label).to_owned()),
            TableCell::Text(matrix.name(cell.predicted).to_owned()),
            TableCell::Count(cell.count),
            TableCell::Share(cell.count as f64 / all as f64),
        ]
    };
    let drawn = matrix.drawn();
    let of = if drawn.len() < matrix.classes.len() {
        format!(" Of {} classes, the {MAX_CLASSES} with the most mistakes are drawn.", matrix.classes.len())
    } else {
        String::new()
    };
    let most = most_frequent(&mistakes).map_or(String::new(), |cell| {
        format!(
            " The most frequent mistake: {} is predicted as {}.",
            shortened(matrix.name(cell.label), 40),
            shortened(matrix.name(cell.predicted), 40)
        )
    });
    PlotView {
        name: "confusion".to_owned(),
        title: "Which classes are confused?".to_owned(),
        sentence: format!(
            "Each row shows the samples of one class, each column the samples predicted as one class; correct predictions \
             are on the diagonal. The numbers are per cent of the row.{most}{of}"
        ),
        panels: vec![draw(matrix, &drawn, &samples)],
        images: Vec::new(),
        table: DataTable {
            columns: vec!["class", "predicted", "samples", "share of the class"],
            rows: mistakes.iter().take(MAX_ROWS).map(row).collect(),
        },
    }
}

const NAME: usize = 16;

fn draw(matrix: &ConfusionMatrix, drawn: &[u32], samples: &BTreeMap<u32, u64>) -> Drawing {
    let longest =
        drawn.iter().map(|&class| shortened(matrix.name(class), NAME).chars().count()).max().unwrap_or(1);
    // Slightly more than the average width of the widest letters in common fonts.
    let gutter = 24.0 + 7.2 * longest as f64;
    let side = (520.0 / drawn.len().max(1) as f64).clamp(17.0, 34.0);
    let all = side * drawn.len() as f64;
    let mut drawing = Drawing::new("Confusion matrix", gutter + all + 10.0, gutter + all + 34.0);
    drawing.upright_text((13.0, gutter + all / 2.0), "mid", "true class");
    drawing.text((gutter + all / 2.0, gutter + all + 20.0), "mid", "predicted class; per cent of the row");
    let position: BTreeMap<u32, usize> = drawn.iter().enumerate().map(|(at, &class)| (class, at)).collect();
    for (at, &class) in drawn.iter().enumerate() {
        let name = shortened(matrix.name(class), NAME);
        let middle = gutter + side * (at as f64 + 0.5);
        drawing.text((gutter - 6.0, middle + 4.0), "m end", &name);
        drawing.upright_text((middle + 4.0, gutter - 6.0), "m", &name);
    }
    for cell in &matrix.cells {
        let (Some(&down), Some(&across)) = (position.get(&cell.label), position.get(&cell.predicted)) else {
            continue;
        };
        let share = cell.count as f64 / samples.get(&cell.label).copied().unwrap_or(1).max(1) as f64;
        let x = gutter + side * across as f64;
        let y = gutter + side * down as f64;
        let tone = if cell.label == cell.predicted { 'r' } else { 'w' };
        // More than eight shades are hard to distinguish.
        let shade = (share * 8.0).ceil().clamp(1.0, 8.0);
        drawing.rectangle((x, y), (side, side), &format!("{tone}{shade}"));
        let text = format!("{:.0}", 100.0 * share);
        if side >= 22.0 && text != "0" {
            let class = if shade > 4.0 { "s mid o" } else { "s mid" };
            drawing.text((x + side / 2.0, y + side / 2.0 + 3.0), class, &text);
        }
    }
    drawing.rectangle((gutter, gutter), (all, all), "frame");
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_and_the_most_frequent_mistakes_come_first() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let matrix = ConfusionMatrix::of(&names, &[0, 0, 0, 1, 2, 2], &[0, 1, 1, 1, 0, 2]);
        let cell = |label, predicted, count| ConfusedPair { label, predicted, count };
        assert_eq!(matrix.cells, [cell(0, 0, 1), cell(0, 1, 2), cell(1, 1, 1), cell(2, 0, 1), cell(2, 2, 1)]);
        assert_eq!(matrix.mistakes(), [cell(0, 1, 2), cell(2, 0, 1)]);
        assert_eq!(most_frequent(&matrix.mistakes()), Some(&cell(0, 1, 2)));
        assert_eq!(most_frequent(&[cell(0, 1, 2), cell(2, 0, 2)]), None, "a tie");
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let matrix = ConfusionMatrix::of(&many, &[99, 99, 5], &[98, 98, 5]);
        let drawn = matrix.drawn();
        assert_eq!((drawn.len(), &drawn[18..], drawn[0]), (20, &[98, 99][..], 0));
    }
}
