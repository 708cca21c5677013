//! The page of `calmix review`: one HTML file that shows samples one at a time, takes their labels and saves `review.csv`.
//!
//! It works from disk, without a server. Data is one block of JSON, which the script writes into the page as text only. The
//! content security policy allows this script and this style by their digests, images within the page, and no connection.

mod audit;
mod live;
mod program;

use std::fmt::Write as _;

use calmix_io::shown::{is_command, shown_lines};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

pub use audit::AuditSoFar;
pub use live::LivePool;
pub use program::Program;

/// The colours and typography of the HTML report, and what this page adds.
const STYLE: &str = concat!(include_str!("page/page.css"), include_str!("review_page/review.css"));

const SCRIPT: &str = include_str!("review_page/review.js");

/// The content security policy with the SHA-256 digests of [`SCRIPT`] and [`STYLE`]. A test computes them; it prints the
/// right ones.
const POLICY: &str = "default-src 'none'; \
     script-src 'sha256-q5ZOdwK9NwyuPeJfZHrNNLLs/SGduQPEi2oM+iZhdHg='; \
     style-src 'sha256-izBv2ZFVWxYwRIaiM7fZwEMygZDJjZ1g6HnAxeee87E='; \
     img-src data:; base-uri 'none'; form-action 'none'";

/// The reason of rows that are shown without a prediction.
const RANDOM: &str = "random";

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewPage<'a> {
    pub title: &'a str,
    /// The command that reads the saved file, shown as it is.
    pub command: &'a str,
    /// The key of the answers in the browser's storage, which pages on the same disk share: different for each review.
    pub storage_key: &'a str,
    /// The first nine can be chosen by the keys 1 to 9.
    pub classes: &'a [String],
    pub rows: &'a [ReviewRow<'a>],
    /// The name of the file that the page saves.
    pub csv_name: &'a str,
    /// What the page computes from its answers, if anything.
    pub program: Option<Program<'a>>,
}

/// A sample to label.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ReviewRow<'a> {
    /// The sample's path or id, which no other row has.
    pub file: &'a str,
    /// The answer of an earlier review.
    pub label: Option<&'a str>,
    /// The label in the dataset.
    pub given: Option<&'a str>,
    /// Left out of the page if `why` is `random`: a prediction would influence the answer.
    pub predicted: Option<&'a str>,
    /// Left out like `predicted`.
    pub confidence: Option<f64>,
    /// `first`, `check`, `copies`, `random` or `margin`: the page has a sentence for each.
    pub why: &'a str,
    pub drawn: &'a str,
    /// The row of its vector in the pool of a page that learns.
    pub vector: Option<usize>,
    /// A data URL.
    #[serde(skip)]
    pub image: Option<&'a str>,
    /// The names and texts of columns.
    pub fields: &'a [(String, String)],
}

/// What the script reads first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageData<'a> {
    #[serde(flatten)]
    page: ReviewPage<'a>,
    /// Whether a block of its own, behind the script, holds an image of the row.
    has_image: Vec<bool>,
}

/// Writes the page.
pub fn review_page(page: &ReviewPage<'_>) -> String {
    let rows: Vec<ReviewRow<'_>> = page.rows.iter().map(without_influence).collect();
    let has_image = rows.iter().map(|row| row.image.is_some()).collect();
    let data = PageData { page: ReviewPage { rows: &rows, ..*page }, has_image };
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(page.program.as_ref()));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="calmix review";
                title { (shown_lines(page.title)) }
                style { (PreEscaped(STYLE)) }
            }
            body.review {
                (skeleton(page.title, page.program.is_some()))
                script type="application/json" id="data" { (PreEscaped(inert_json(data))) }
                script { (PreEscaped(SCRIPT)) }
                @if let Some(program) = &page.program { (program.blocks()) }
                // Behind the script: it runs before a browser has read thousands of images.
                @for (at, row) in rows.iter().enumerate() {
                    @if let Some(image) = row.image {
                        script type="application/json" id={ "image-" (at) } { (PreEscaped(inert_json(image))) }
                    }
                }
            }
        }
    };
    markup.into_string()
}

/// Returns the policy of a page; one with a program also allows its scripts, its worker and WebAssembly, which is not `eval`.
fn policy(program: Option<&Program<'_>>) -> String {
    let styles = "; style-src";
    match program {
        Some(program) => POLICY.replacen(styles, &format!("{}{styles}", program.sources()), 1),
        None => POLICY.to_owned(),
    }
}

fn without_influence<'a>(row: &ReviewRow<'a>) -> ReviewRow<'a> {
    match row.why {
        RANDOM => ReviewRow { predicted: None, confidence: None, ..*row },
        _ => *row,
    }
}

/// Returns the elements that the script fills.
fn skeleton(title: &str, has_program: bool) -> Markup {
    html! {
        header {
            h1 { (shown_lines(title)) }
            div.progress {
                progress id="progress" aria-label="Answered and skipped samples" value="0" max="1" {}
                span id="counts" {}
            }
            button.primary id="save" type="button" {}
            p id="saving" {}
            @if has_program {
                p { span id="model" role="status" {} " " span id="fit" {} }
            }
            p.warning id="storage" role="alert" {}
            noscript { p.warning { "This page needs JavaScript." } }
        }
        main {
            section id="sample" tabindex="-1" aria-labelledby="position" {
                div id="stage" {}
                h2 id="position" {}
                p id="why" {}
                p id="file" {}
                p id="answer" {}
            }
            section id="choice" aria-label="Label" {
                button.primary id="confirm" type="button" aria-keyshortcuts="Enter c" {}
                label for="search" { "Find or add a class " kbd aria-hidden="true" { "/" } }
                input id="search" type="text" autocomplete="off" autocapitalize="off" spellcheck="false"
                    maxlength="200" aria-keyshortcuts="/" aria-describedby="matches";
                p.notes id="matches" {}
                div id="classes" role="group" aria-label="Classes" {}
                button id="add" type="button" {}
                div id="actions" role="group" aria-label="Samples" {
                    (action("skip", "Skip", "s", "s"))
                    (action("undo", "Undo", "u", "u"))
                    (action("previous", "Previous", "ArrowLeft", "←"))
                    (action("next", "Next", "ArrowRight", "→"))
                }
                p.notes id="last" {}
                details {
                    summary { "Keys" }
                    p.notes {
                        kbd { "1" } "–" kbd { "9" } " choose a class, " kbd { "/" } " searches, and " kbd { "Enter" }
                        " in the search chooses the first match. " kbd { "Enter" } " or " kbd { "c" }
                        " keeps the label that is given. " kbd { "s" } " skips, " kbd { "u" } " or " kbd { "Ctrl" } "+"
                        kbd { "Z" } " undoes, and " kbd { "←" } " and " kbd { "→" } " move."
                    }
                    label.check { input id="keys" type="checkbox" checked; " Use these keys" }
                }
            }
            nav id="strip" aria-label="All samples" {}
        }
        p.offscreen id="announcement" aria-live="polite" {}
    }
}

fn action(id: &str, name: &str, keys: &str, shown: &str) -> Markup {
    html! {
        button id=(id) type="button" aria-keyshortcuts=(keys) { (name) kbd aria-hidden="true" { (shown) } }
    }
}

/// Returns JSON that has no meaning to an HTML parser: neither `<`, `>` and `&`, nor any character outside ASCII. ASCII alone
/// also halves what a browser needs to keep it.
fn inert_json(value: impl Serialize) -> String {
    // Only strings, numbers and lists: nothing that JSON cannot express.
    let json = serde_json::to_string(&value).unwrap_or_default();
    let mut inert = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && !is_command(c) && !matches!(c, '<' | '>' | '&') {
            inert.push(c);
            continue;
        }
        // All of these are within strings, where `\u` stands for them; above U+FFFF it takes two.
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(inert, "\\u{unit:04x}");
        }
    }
    inert
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine};
    use ring::digest::{SHA256, digest};

    use super::*;

    const ROW: ReviewRow<'_> = ReviewRow {
        file: "a.png",
        label: None,
        given: None,
        predicted: Some("cat"),
        confidence: Some(0.625),
        why: "margin",
        drawn: "chosen",
        vector: None,
        image: None,
        fields: &[],
    };

    const PAGE: ReviewPage<'_> = ReviewPage {
        title: "Review of photos",
        command: "calmix label photos review.csv",
        storage_key: "calmix-review-1",
        classes: &[],
        rows: &[ROW],
        csv_name: "review.csv",
        program: None,
    };

    /// Returns the data as the browser reads it.
    fn parsed(html: &str) -> serde_json::Value {
        let start = "<script type=\"application/json\" id=\"data\">";
        let (_, rest) = html.split_once(start).unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        assert!(json.is_ascii());
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn policy_names_digests_of_script_and_style() {
        for text in [SCRIPT, STYLE] {
            let source = format!("'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())));
            assert!(POLICY.contains(&source), "write {source} into POLICY");
        }
        assert!(POLICY.starts_with("default-src 'none';") && !POLICY.contains("unsafe"));
        let html = review_page(&PAGE);
        let meta = html! { meta http-equiv="Content-Security-Policy" content=(POLICY); };
        assert!(html.contains(&meta.into_string()));
        // A digest is that of the text between the tags: not a line break more.
        assert!(html.contains(&format!("<style>{STYLE}</style>")));
        assert!(html.contains(&format!("<script>{SCRIPT}</script>")));
    }

    #[test]
    fn only_a_page_with_a_program_may_run_webassembly() {
        let vectors = [0.5, -1.0, 2.0, 0.25];
        let labels = [(1, 0, false)];
        let live = Program::Live(LivePool {
            ids: &[3, 9],
            width: 2,
            vectors: &vectors,
            labels: &labels,
            folds: 10,
            seed: [7, 1],
        });
        let html = review_page(&ReviewPage { program: Some(live), ..PAGE });
        assert!(html.contains(&format!("<script>{}</script>", live::SCRIPT)));
        let with_program = policy(Some(&live));
        let allowed = format!("{} 'wasm-unsafe-eval'; worker-src blob:; style-src", live::SOURCE);
        assert!(with_program.contains(&allowed), "{with_program}");
        assert!(!with_program.contains("'unsafe") && !POLICY.contains("wasm"));
        assert_eq!(parsed(&html)["program"]["live"]["labels"][0], serde_json::json!([1, 0, false]));
        assert!(html.contains("id=\"vectors\">AAAAPwAAgL8AAABAAACAPg==</script>"), "four numbers in base64");
        // Scripts and numbers are no markup: five blocks more than in every page.
        assert_eq!(html.matches("<script").count(), 7);
        assert_eq!(html.matches("</script").count(), 7);
    }

    #[test]
    fn page_of_an_audit_has_no_prediction() {
        let random = ReviewRow { why: RANDOM, drawn: "audit", ..ROW };
        let audit = Program::Audit(AuditSoFar {
            limit: 0.05,
            delta: 0.05,
            shares: &[100, 300],
            order: &[(120, Some(false)), (7, None)],
            places: &[1],
            labels: &["00ff".to_owned()],
        });
        let html = review_page(&ReviewPage { rows: &[random], program: Some(audit), ..PAGE });
        let data = parsed(&html);
        assert_eq!(data["program"]["audit"]["order"], serde_json::json!([[120, false], [7, null]]));
        assert!(!data.to_string().contains("cat"));
        assert!(html.contains(audit::SCRIPT) && !html.contains(live::SCRIPT));
    }

    #[test]
    fn hostile_texts_stay_inside_the_json() {
        let hostile =
            "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> \"'&\\\n\u{2028}\u{202e}𝄞é";
        let classes = [hostile.to_owned()];
        let fields = [(hostile.to_owned(), hostile.to_owned())];
        let image = Some(hostile);
        let row =
            ReviewRow { file: hostile, given: Some(hostile), why: hostile, image, fields: &fields, ..ROW };
        let page =
            ReviewPage { title: hostile, classes: &classes, rows: &[row], storage_key: hostile, ..PAGE };
        let html = review_page(&page);
        assert_eq!(html.matches("<script").count(), 3, "data, script and image");
        assert_eq!(html.matches("</script").count(), 3);
        for part in ["<!--", "<img", "\u{2028}", "\u{202e}"] {
            assert!(!html.contains(part), "{part:?}");
        }
        let data = parsed(&html);
        for value in [&data["classes"][0], &data["rows"][0]["file"], &data["rows"][0]["fields"][0][1]] {
            assert_eq!(value, hostile, "the same text comes out");
        }
    }

    #[test]
    fn page_names_no_other_address() {
        let html = review_page(&PAGE);
        for part in ["http:", "https:", "//cdn", "@import", "url(", "src=", "<link"] {
            assert!(!html.contains(part), "{part}");
        }
    }

    #[test]
    fn random_row_has_no_prediction() {
        let random = ReviewRow { why: RANDOM, drawn: "random", ..ROW };
        let data = parsed(&review_page(&ReviewPage { rows: &[ROW, random], ..PAGE }));
        assert_eq!(data["rows"][0]["predicted"], "cat");
        assert_eq!(data["rows"][0]["confidence"], 0.625);
        assert!(data["rows"][1]["predicted"].is_null() && data["rows"][1]["confidence"].is_null());
        assert_eq!(data["rows"][1]["drawn"], "random");
    }
}
