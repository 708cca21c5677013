//! The badge of a certificate, for a README: a local drawing and a line of Markdown.

use super::document::Certificate;
use super::result::percent;

/// The name of the drawing.
const BADGE: &str = "badge.svg";

/// Returns the text of the badge: what is certified.
fn text(certificate: &Certificate) -> String {
    match certificate.result.certified_rows {
        0 => "not certified".to_owned(),
        _ => format!("at most {} wrong", percent(certificate.plan.error)),
    }
}

/// Returns the line of Markdown that shows the badge, with a link to the page of the certificate.
pub(crate) fn badge_markdown(certificate: &Certificate) -> String {
    format!("[![labels: {}]({BADGE})](certificate.html)\n", text(certificate))
}

/// Draws the badge. Its texts are made here, so none needs escaping.
pub(crate) fn badge_svg(certificate: &Certificate) -> String {
    const LEFT: usize = 50;
    const CHARACTER: usize = 7;
    let text = text(certificate);
    let right = CHARACTER * text.len() + 12;
    let width = LEFT + right;
    let colour = if certificate.result.certified_rows > 0 { "#1a7f37" } else { "#57606a" };
    let middle = LEFT + right / 2;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"20\" role=\"img\" aria-label=\"labels: {text}\">\
         <title>labels: {text}</title><rect width=\"{LEFT}\" height=\"20\" fill=\"#24292f\"/>\
         <rect x=\"{LEFT}\" width=\"{right}\" height=\"20\" fill=\"{colour}\"/>\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" text-anchor=\"middle\">\
         <text x=\"25\" y=\"14\">labels</text><text x=\"{middle}\" y=\"14\">{text}</text></g></svg>\n"
    )
}
