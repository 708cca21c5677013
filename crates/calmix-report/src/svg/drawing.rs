//! A finished drawing, and its output as SVG. Text is escaped, since it may come from an untrusted file.

use std::fmt::Write as _;

use calmix_io::shown::shown;

/// The colours of every drawing, light and dark. A page includes it once; each SVG file has its own copy.
pub const STYLE: &str = include_str!("drawing.css");

/// A drawing of a fixed size, in pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    pub title: String,
    pub width: f64,
    pub height: f64,
    pub(super) body: String,
}

impl Drawing {
    pub fn new(title: &str, width: f64, height: f64) -> Self {
        Self { title: title.to_owned(), width, height, body: String::new() }
    }

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
        let [width, height] = [self.width, self.height].map(number);
        let title = escaped(&self.title);
        let body = &self.body;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-label=\"{title}\">{body}</svg>"
        )
    }

    pub fn file(&self) -> String {
        let [width, height] = [self.width, self.height].map(number);
        let title = escaped(&self.title);
        let body = &self.body;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\"><title>{title}</title><style>{STYLE}</style>\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>{body}</svg>\n"
        )
    }

    /// Adds a text; `class` determines its appearance and anchor.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let [x, y] = [x, y].map(number);
        let text = escaped(text);
        let _ = write!(self.body, r#"<text x="{x}" y="{y}" class="{class}">{text}</text>"#);
    }

    pub fn upright_text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let [x, y] = [x, y].map(number);
        let text = escaped(text);
        let _ = write!(
            self.body,
            r#"<text transform="translate({x} {y}) rotate(-90)" class="{class}">{text}</text>"#
        );
    }

    pub fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let _ =
            write!(self.body, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{class}"/>"#);
    }

    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, class: &str) {
        let [x, y, radius] = [x, y, radius].map(number);
        let _ = write!(self.body, r#"<circle cx="{x}" cy="{y}" r="{radius}" class="{class}"/>"#);
    }

    pub fn line(&mut self, points: &[(f64, f64)], class: &str) {
        let _ = write!(self.body, r#"<path d="{}" class="{class}"/>"#, path(points));
    }

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

/// Formats a coordinate to a hundredth of a pixel.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes a text for HTML and XML: no markup, no control characters, no marks that reorder text.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in shown(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML does not allow these, even escaped.
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Shortens a text to at most `max_chars` characters, with an ellipsis if something is left out.
pub fn shortened(text: &str, max_chars: usize) -> String {
    let text = shown(text);
    if text.chars().count() <= max_chars {
        return text;
    }
    text.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect()
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

    #[test]
    fn names_are_cut_by_characters() {
        assert_eq!(shortened("Größe", 5), "Größe");
        assert_eq!(shortened("Größen", 5), "Größ…");
    }

    #[test]
    fn escaped_text_is_not_markup() {
        assert_eq!(escaped("\u{ffff}</svg><script>"), "\u{fffd}&lt;/svg&gt;&lt;script&gt;");
        assert_eq!(
            escaped("<b>'cat' & \"dog\"\u{1b}"),
            r"&lt;b&gt;&#39;cat&#39; &amp; &quot;dog&quot;\u{1b}"
        );
    }
}
