//! The page of a certificate of predicted labels, for a reader who was not there. It needs neither network nor scripts.

use calmix_io::shown::shown_lines;
use calmix_io::text::grouped;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The colours and typography of the HTML report.
const STYLE: &str = include_str!("page/page.css");

/// A browser may load nothing, and run nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What the page shows.
#[derive(Debug, Clone, Copy)]
pub struct CertificatePage<'a> {
    pub is_certified: bool,
    /// The largest share of wrong labels that the certificate allows, in words.
    pub limit: &'a str,
    /// What is claimed, and what is not.
    pub claims: &'a [String],
    /// Names and values: pool, model, hashes.
    pub facts: &'a [(&'a str, String)],
    pub shares: &'a [ShareLine],
    pub answers: &'a [AnswerLine],
}

/// A share of the pool, the surest rows first.
#[derive(Debug, Clone)]
pub struct ShareLine {
    pub rows: u64,
    pub share_of_pool: String,
    pub answers: u64,
    pub wrong: u64,
    pub highest_error: String,
    pub is_certified: bool,
}

/// An answer of an auditor.
#[derive(Debug, Clone)]
pub struct AnswerLine {
    /// The place in the order of the draw, from 1.
    pub place: u64,
    pub id: String,
    pub review: String,
    pub label: String,
    pub time: String,
}

/// Writes the page.
pub fn certificate_page(page: &CertificatePage<'_>) -> String {
    let title = if page.is_certified {
        format!("Certificate: at most {} of the labels are wrong", page.limit)
    } else {
        "Audit of predicted labels: nothing is certified yet".to_owned()
    };
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="calmix certify";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    section.assessment {
                        @for (at, claim) in page.claims.iter().enumerate() {
                            @if at == 0 { p.headline { (claim) } } @else { p.trust { (claim) } }
                        }
                    }
                    (shares(page))
                    section {
                        h2 { "What was certified" }
                        (table(&["", ""], page.facts.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()])))
                    }
                    section {
                        h2 { "Check it" }
                        p {
                            "The certificate, the labels and the samples suffice to compute every number again: "
                            code { "calmix verify certificate.json DATA" }
                            ", or a short program of your own: the format is described in calmix's documentation."
                        }
                    }
                    (answers(page))
                }
                footer { p { "Created by calmix certify." } }
            }
        }
    };
    // HTML also has no use for control characters and marks that reorder text.
    shown_lines(&markup.into_string())
}

fn shares(page: &CertificatePage<'_>) -> Markup {
    let head = ["Surest labels", "Of the pool", "Answers", "Wrong", "At most wrong (95%)", ""];
    let line = |share: &ShareLine| {
        let state = if share.is_certified { "certified" } else { "not certified" };
        vec![
            grouped(share.rows),
            share.share_of_pool.clone(),
            grouped(share.answers),
            grouped(share.wrong),
            share.highest_error.clone(),
            state.to_owned(),
        ]
    };
    html! {
        section {
            h2 { "The audit" }
            p {
                "The model's labels were frozen first. Rows were then drawn at random and answered without its prediction; a skipped \
                 row, or one on which auditors differ, counts as wrong. A larger share counts only if the smaller ones are certified."
            }
            (table(&head, page.shares.iter().map(line)))
        }
    }
}

fn answers(page: &CertificatePage<'_>) -> Markup {
    let head = ["Place", "Sample", "Review", "Answer", "Read at"];
    let line = |answer: &AnswerLine| {
        vec![
            grouped(answer.place),
            answer.id.clone(),
            answer.review.clone(),
            answer.label.clone(),
            answer.time.clone(),
        ]
    };
    html! {
        section {
            h2 { "Answers" }
            @if page.answers.is_empty() {
                p { "There are none yet." }
            } @else {
                details {
                    summary { "All " (grouped(page.answers.len() as u64)) }
                    (table(&head, page.answers.iter().map(line)))
                }
            }
        }
    }
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Markup {
    html! {
        div.scroll.glance tabindex="0" role="region" aria-label="Table" {
            table {
                @if head.iter().any(|name| !name.is_empty()) {
                    thead { tr { @for name in head { th scope="col" { (name) } } } }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_are_escaped() {
        let hostile = "</p><script>alert(1)</script>\u{202e}";
        let answer = AnswerLine {
            place: 1,
            id: hostile.to_owned(),
            review: hostile.to_owned(),
            label: hostile.to_owned(),
            time: hostile.to_owned(),
        };
        let html = certificate_page(&CertificatePage {
            is_certified: true,
            limit: "5%",
            claims: &[hostile.to_owned(), hostile.to_owned()],
            facts: &[("Model", hostile.to_owned())],
            shares: &[],
            answers: &[answer],
        });
        assert!(!html.contains("<script") && !html.contains('\u{202e}'));
        assert!(html.contains("&lt;script&gt;") && html.contains("default-src 'none'"));
    }
}
