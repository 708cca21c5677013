//! Marks over two axes with a legend below.

use super::{Axis, Drawing, TONES};

/// A mark over the axes, in their units. Tones beyond the last wrap around to the first.
#[derive(Debug, Clone, PartialEq)]
pub enum PlotMark {
    Line {
        points: Vec<(f64, f64)>,
        tone: usize,
    },
    Dots {
        points: Vec<(f64, f64)>,
        tone: usize,
    },
    /// The area between two lines: x, and the lower and upper y.
    Band {
        points: Vec<(f64, f64, f64)>,
        tone: usize,
    },
    /// A bar on the lower edge: its range in x, and its height.
    Bar {
        from_to: (f64, f64),
        height: f64,
        tone: usize,
    },
    /// A thin reference line between two points.
    Ideal((f64, f64), (f64, f64)),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub text: String,
    pub tone: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The marks, in the order in which they are drawn.
    pub marks: Vec<PlotMark>,
}

/// The maximum length of a legend entry, in characters; more do not fit below a panel.
const LEGEND: usize = 52;
/// Pixels between lines of the legend.
const LINE: f64 = 16.0;
/// Pixels left of a frame, for the labels of its axis.
pub(super) const LEFT: f64 = 56.0;
/// Pixels right of a frame.
const RIGHT: f64 = 18.0;
/// Pixels below a frame, for ticks and label.
const BELOW: f64 = 42.0;
/// Pixels above a frame, for its title.
const ABOVE: f64 = 26.0;

impl Plot {
    /// Draws a panel, `width` pixels wide, with frames one below the other, each with its height in pixels.
    pub fn panel(title: &str, width: f64, plots: &[(Self, f64)], legend: &[Key]) -> Drawing {
        let frames: f64 = plots.iter().map(|(_, height)| height + BELOW).sum();
        let mut drawing = Drawing::new(title, width, ABOVE + frames + LINE * legend.len() as f64 + 4.0);
        drawing.text((LEFT, 16.0), "h", title);
        let mut top = ABOVE;
        for (plot, height) in plots {
            plot.draw(&mut drawing, (LEFT, top), (width - LEFT - RIGHT, *height));
            top += height + BELOW;
        }
        for key in legend {
            let middle = top + 6.0;
            let tone = key.tone % TONES;
            drawing.line(&[(LEFT, middle), (LEFT + 22.0, middle)], &format!("l{tone}"));
            drawing.text((LEFT + 30.0, middle + 4.0), "", &super::shortened(&key.text, LEGEND));
            top += LINE;
        }
        drawing
    }

    fn draw(&self, on: &mut Drawing, (left, top): (f64, f64), (width, height): (f64, f64)) {
        let x = |value: f64| left + width * self.x.place(value);
        let y = |value: f64| top + height * (1.0 - self.y.place(value));
        let point = |&(across, up): &(f64, f64)| (x(across), y(up));
        for (at, text) in &self.y.ticks {
            on.line(&[(left, y(*at)), (left + width, y(*at))], "grid");
            on.text((left - 6.0, y(*at) + 4.0), "m end", text);
        }
        for (at, text) in &self.x.ticks {
            on.line(&[(x(*at), top), (x(*at), top + height)], "grid");
            on.text((x(*at), top + height + 16.0), "m mid", text);
        }
        for mark in &self.marks {
            match mark {
                PlotMark::Line { points, tone } => {
                    let points: Vec<_> = points.iter().map(point).collect();
                    on.line(&points, &format!("l{}", tone % TONES));
                }
                PlotMark::Dots { points, tone } => {
                    for place in points.iter().map(point) {
                        on.dot(place, 2.6, &format!("f{}", tone % TONES));
                    }
                }
                PlotMark::Band { points, tone } => {
                    let lower = points.iter().map(|&(across, low, _)| (x(across), y(low)));
                    let upper = points.iter().rev().map(|&(across, _, high)| (x(across), y(high)));
                    let outline: Vec<_> = lower.chain(upper).collect();
                    on.area(&outline, &format!("b{}", tone % TONES));
                }
                &PlotMark::Bar { from_to: (from, to), height: up, tone } => {
                    let place = (x(from), y(up));
                    let size = (x(to) - x(from), top + height - y(up));
                    on.rectangle(place, size, &format!("f{}", tone % TONES));
                }
                PlotMark::Ideal(from, to) => on.line(&[point(from), point(to)], "ideal"),
            }
        }
        on.rectangle((left, top), (width, height), "frame");
        on.text((left + width / 2.0, top + height + 33.0), "mid", &self.x.label);
        on.upright_text((13.0, top + height / 2.0), "mid", &self.y.label);
    }
}
