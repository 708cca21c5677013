//! A finished drawing, and how it is written as SVG.

use std::fmt::Write as _;

use super::text::escaped;

/// The colours of every drawing, light and dark. A page includes it once, each SVG file has its own copy.
pub const STYLE: &str = include_str!("drawing.css");

/// A drawing of a fixed size, in pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// What it shows, for screen readers.
    pub title: String,
    /// The width in pixels.
    pub width: f64,
    /// The height in pixels.
    pub height: f64,
    /// The elements.
    pub(super) body: String,
}

impl Drawing {
    /// Makes an empty drawing.
    pub fn new(title: &str, width: f64, height: f64) -> Self {
        Self { title: title.to_owned(), width, height, body: String::new() }
    }

    /// Puts several drawings side by side.
    #[must_use]
    pub fn beside(drawings: &[Self]) -> Self {
        let titles: Vec<&str> = drawings.iter().map(|drawing| drawing.title.as_str()).collect();
        let mut all = Self::new(&titles.join("; "), 0.0, 0.0);
        for drawing in drawings {
            let _ = write!(all.body, r#"<g transform="translate({} 0)">"#, number(all.width));
            all.body += &drawing.body;
            all.body += "</g>";
            all.width += drawing.width;
            all.height = all.height.max(drawing.height);
        }
        all
    }

    /// Writes the drawing as an element of a page, which has [`STYLE`].
    pub fn element(&self) -> String {
        let width = number(self.width);
        let height = number(self.height);
        let title = escaped(&self.title);
        let body = &self.body;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-label=\"{title}\">{body}</svg>"
        )
    }

    /// Writes the drawing as an SVG file.
    pub fn file(&self) -> String {
        let width = number(self.width);
        let height = number(self.height);
        let title = escaped(&self.title);
        let body = &self.body;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\"><title>{title}</title><style>{STYLE}</style>\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>{body}</svg>\n"
        )
    }

    /// A text; `class` says how it looks and where it is anchored.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let x = number(x);
        let y = number(y);
        let text = escaped(text);
        let _ = write!(self.body, r#"<text x="{x}" y="{y}" class="{class}">{text}</text>"#);
    }

    /// A text that reads upwards.
    pub fn upright_text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let x = number(x);
        let y = number(y);
        let text = escaped(text);
        let _ = write!(
            self.body,
            r#"<text transform="translate({x} {y}) rotate(-90)" class="{class}">{text}</text>"#
        );
    }

    /// A rectangle.
    pub fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let _ =
            write!(self.body, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{class}"/>"#);
    }

    /// A circle of a radius.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, class: &str) {
        let [x, y, radius] = [x, y, radius].map(number);
        let _ = write!(self.body, r#"<circle cx="{x}" cy="{y}" r="{radius}" class="{class}"/>"#);
    }

    /// A line through points.
    pub fn line(&mut self, points: &[(f64, f64)], class: &str) {
        let _ = write!(self.body, r#"<path d="{}" class="{class}"/>"#, path(points));
    }

    /// An area within points.
    pub fn area(&mut self, points: &[(f64, f64)], class: &str) {
        let _ = write!(self.body, r#"<path d="{}Z" class="{class}"/>"#, path(points));
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (at, &(x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if at == 0 { 'M' } else { 'L' }, number(x), number(y));
    }
    path
}

/// A coordinate to a hundredth of a pixel.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_drawing_is_not_markup() {
        let mut drawing = Drawing::new("<i>", 10.0, 5.5);
        drawing.text((1.0, 2.004), "t", "</text><script>alert(1)</script>");
        for text in [drawing.element(), drawing.file()] {
            assert!(!text.contains("<script") && !text.contains("<i>"), "{text}");
            assert!(text.contains(r#"<text x="1" y="2" class="t">&lt;/text&gt;"#), "{text}");
        }
        let both = Drawing::beside(&[drawing.clone(), drawing]);
        assert_eq!((both.width, both.height), (20.0, 5.5));
        assert_eq!([number(-0.001), number(1.5), number(20.0)], ["0", "1.5", "20"]);
    }
}
