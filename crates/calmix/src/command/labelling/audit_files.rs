//! The files of `calmix certify` beside the certificate: the rows to answer, the page for a reader, the certified labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::drawn::Drawn;
use calmix_io::text::grouped;
use calmix_io::{atomic_file, safe_open};
use calmix_recipe::Data;
use calmix_report::certificate_page::{AnswerLine, CertificatePage, ShareLine, certificate_page};
use calmix_report::review_page::{self, AuditSoFar, Program, ReviewPage, review_page};

use crate::certificate::{
    AuditPlan, CERTIFICATE, Certificate, LABELS, LabelsFile, LoggedAnswer, ShareResult, audited_rows,
    badge_markdown, badge_svg, percent, sha256, share_of_pool, upper_bound,
};
use crate::output::format::shell_quoted;
use crate::review::{Pool, Reason, ReviewRow, SampleTexts, thumbnail, to_csv};

const PAGE: &str = "certificate.html";
pub(super) const CERTIFIED: &str = "certified.csv";

/// The folder of a certificate.
pub(super) struct AuditFiles<'a> {
    pub(super) out: &'a Path,
}

/// The files with the next rows to answer.
#[derive(Debug)]
pub(super) struct NextRows {
    pub(super) csv: PathBuf,
    pub(super) page: PathBuf,
    pub(super) rows: usize,
}

/// The pool with what a page shows of its samples.
pub(super) struct ShownPool<'a> {
    pub(super) pool: &'a Pool,
    pub(super) dataset: &'a Dataset,
    pub(super) data: &'a Data,
    pub(super) has_images: bool,
    pub(super) classes: &'a [String],
}

/// The rows to answer next, in an audit.
pub(super) struct OpenRows<'a> {
    pub(super) certificate: &'a Certificate,
    pub(super) labels: &'a LabelsFile,
    /// Their places in the order of the draw, increasing.
    pub(super) places: &'a [usize],
    /// Their samples in the pool.
    pub(super) samples: &'a [usize],
}

impl OpenRows<'_> {
    /// Returns the order of the draw up to the last of them: ranks, and whether the label is wrong.
    fn order(&self) -> Vec<(u64, Option<bool>)> {
        let Certificate { plan, answers, .. } = self.certificate;
        let end = self.places.last().map_or(0, |last| last + 1);
        let rows = audited_rows(self.labels, plan, answers);
        rows.into_iter().take(end).map(|row| (row.rank, row.is_wrong)).collect()
    }

    /// Returns the digests by which the page compares answers with the labels that are audited, without having these.
    fn digests(&self, storage_key: &str, pool: &Pool, order: &[(u64, Option<bool>)]) -> Vec<String> {
        let rows = self.places.iter().zip(self.samples);
        let digest = |(&place, &sample): (&usize, &usize)| {
            let label = order.get(place).and_then(|&(rank, _)| self.labels.predicted(rank))?;
            let file = pool.samples.get(sample)?.name.as_str();
            Some(sha256([storage_key, file, label].join("\n").as_bytes()))
        };
        rows.map(|row| digest(row).unwrap_or_default()).collect()
    }
}

impl AuditFiles<'_> {
    /// Writes rows as a page and a CSV, named after the number of the first among all answered rows. Existing ones are kept: they are the
    /// same, and may have answers.
    pub(super) fn write_rows(
        &self,
        shown: &ShownPool<'_>,
        number: usize,
        open: &OpenRows<'_>,
        command: &dyn Fn(&Path) -> String,
    ) -> Result<NextRows> {
        let csv_name = format!("review-{number}.csv");
        let csv = self.out.join(&csv_name);
        let page = self.out.join(format!("review-{number}.html"));
        let rows: Vec<ReviewRow> = open.samples.iter().map(|&sample| audit_row(sample)).collect();
        let written = NextRows { csv, page, rows: rows.len() };
        if safe_open::exists(&written.csv) && safe_open::exists(&written.page) {
            return Ok(written);
        }
        let text = to_csv(shown.pool, &rows)?;
        let texts = match shown.data.labels.as_str() {
            "" => SampleTexts::default(),
            list => SampleTexts::read(Path::new(list), &LabelColumns::default()),
        };
        let mut images = Vec::with_capacity(rows.len());
        let mut fields = Vec::with_capacity(rows.len());
        for row in &rows {
            let sample = &shown.pool.samples[row.sample];
            let image =
                if shown.has_images { thumbnail(shown.dataset, sample.id, rows.len())? } else { None };
            images.push(image);
            fields.push(texts.of(&sample.name));
        }
        let mut shown_rows = Vec::with_capacity(rows.len());
        for ((row, image), fields) in rows.iter().zip(&images).zip(&fields) {
            shown_rows.push(review_page::ReviewRow {
                file: &shown.pool.samples[row.sample].name,
                label: None,
                given: None,
                predicted: None,
                confidence: None,
                why: row.reason.word(),
                drawn: row.drawn.word(),
                vector: None,
                image: image.as_deref(),
                fields,
            });
        }
        let storage_key = format!("calmix-audit-{}", blake3::hash(&text).to_hex());
        let order = open.order();
        let digests = open.digests(&storage_key, shown.pool, &order);
        let plan = &open.certificate.plan;
        let audit = AuditSoFar {
            limit: plan.error,
            delta: plan.delta,
            shares: &plan.shares,
            order: &order,
            places: open.places,
            labels: &digests,
        };
        let html = review_page(&ReviewPage {
            title: "Audit of predicted labels",
            storage_key: &storage_key,
            classes: shown.classes,
            rows: &shown_rows,
            csv_name: &csv_name,
            command: &command(Path::new(&csv_name)),
            program: Some(Program::Audit(audit)),
        });
        atomic_file::write(&written.page, html.as_bytes())?;
        atomic_file::write(&written.csv, &text)?;
        Ok(written)
    }

    /// Writes what follows from a certificate: the page, the badge and, if some are certified, the labels.
    pub(super) fn write_views(&self, certificate: &Certificate, labels: &LabelsFile) -> Result<()> {
        atomic_file::write(&self.out.join("badge.svg"), badge_svg(certificate).as_bytes())?;
        atomic_file::write(&self.out.join("badge.md"), badge_markdown(certificate).as_bytes())?;
        atomic_file::write(&self.out.join(PAGE), page(certificate).as_bytes())?;
        if certificate.result.certified_rows > 0 {
            atomic_file::write(&self.out.join(CERTIFIED), &certified_csv(certificate, labels)?)?;
        }
        Ok(())
    }
}

/// A row of an audit: drawn at random, so it is shown without a prediction.
fn audit_row(sample: usize) -> ReviewRow {
    ReviewRow { sample, reason: Reason::Random, drawn: Drawn::Audit, predicted: None, is_answered: false }
}

/// Formats the certified labels. Audited rows have the label of the audit; those that were skipped or disagreed on are left out.
fn certified_csv(certificate: &Certificate, labels: &LabelsFile) -> Result<Vec<u8>> {
    let mut answered: BTreeMap<&str, BTreeMap<&str, Option<&str>>> = BTreeMap::new();
    for answer in &certificate.answers {
        answered.entry(&answer.id).or_default().insert(&answer.review, answer.label.as_deref());
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["file", "label", "drawn", "certificate"])?;
    let rows = usize::try_from(certificate.result.certified_rows).unwrap_or(usize::MAX);
    for row in labels.rows.iter().take(rows) {
        let Some((predicted, _)) = &row.predicted else { continue };
        let (label, drawn) = match answered.get(row.id.as_str()) {
            None => (Some(predicted.as_str()), Drawn::Certified),
            Some(answers) => {
                let mut given = answers.values().copied();
                let first = given.next().flatten();
                (first.filter(|_| given.all(|label| label == first)), Drawn::Audit)
            }
        };
        if let Some(label) = label {
            writer.write_record([row.id.as_str(), label, drawn.word(), &certificate.hash])?;
        }
    }
    Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

/// Writes the page for a reader.
fn page(certificate: &Certificate) -> String {
    let Certificate { claims, pool, model, created, plan, result, answers, .. } = certificate;
    let facts = [
        ("Pool", format!("{} {}", grouped(pool.rows), pool.kind.word())),
        ("Fingerprint of the pool", pool.fingerprint.clone()),
        ("Model", format!("{} (BLAKE3 {})", model.run, model.blake3)),
        ("calmix", model.calmix.clone()),
        ("Created", created.clone()),
        (LABELS, format!("SHA-256 {}", certificate.labels_sha256)),
        ("Seed of the draw", plan.seed.clone()),
        ("Answers changed later", grouped(result.changed_answers)),
        ("Rows with several auditors", several_auditors(certificate)),
        (CERTIFICATE, format!("SHA-256 {}", certificate.hash)),
    ];
    let share = |share: &ShareResult| ShareLine {
        rows: share.rows,
        share_of_pool: share_of_pool(share.rows, pool.rows),
        answers: share.answers,
        wrong: share.wrong,
        highest_error: upper_bound(share.highest_error),
        is_certified: share.is_certified,
    };
    let shares: Vec<ShareLine> = result.shares.iter().map(share).collect();
    let line = |answer: &LoggedAnswer| AnswerLine {
        place: answer.place + 1,
        id: answer.id.clone(),
        review: answer.review.clone(),
        label: answer.label.clone().unwrap_or_else(|| "(skipped)".to_owned()),
        time: answer.time.clone(),
    };
    let answers: Vec<AnswerLine> = answers.iter().map(line).collect();
    certificate_page(&CertificatePage {
        is_certified: result.certified_rows > 0,
        limit: &percent(plan.error),
        claims,
        facts: &facts,
        shares: &shares,
        answers: &answers,
    })
}

fn several_auditors(certificate: &Certificate) -> String {
    let result = &certificate.result;
    match result.answered_twice {
        0 => "none".to_owned(),
        rows => format!("{}, of which {} differ", grouped(rows), grouped(result.disagreements)),
    }
}

/// Returns the places in the order that have an answer.
pub(super) fn answered_places(certificate: &Certificate) -> BTreeSet<u64> {
    certificate.answers.iter().map(|answer| answer.place).collect()
}

/// Returns the places of the next rows to answer: the first unanswered ones of the first share that is not certified.
pub(super) fn next_places(
    certificate: &Certificate,
    plan: &AuditPlan,
    order: &[u64],
    count: usize,
) -> Vec<usize> {
    let Some(share) = certificate.result.next_share() else { return Vec::new() };
    // One wrong row more than the limit allows settles it.
    if share.wrong > (plan.error * share.rows as f64).floor() as u64 {
        return Vec::new();
    }
    let answered = answered_places(certificate);
    let of_share = order.iter().enumerate().filter(|&(_, &rank)| rank < share.rows);
    let open = of_share.filter(|(place, _)| !answered.contains(&(*place as u64)));
    open.map(|(place, _)| place).take(count).collect()
}

/// Returns the command that verifies a certificate.
pub(super) fn verify_command(out: &Path, data: &Path, vector_column: Option<&str>) -> String {
    let column = vector_column.map(|name| format!(" --vector-column {}", shell_quoted(Path::new(name))));
    format!(
        "calmix verify {} {}{}",
        shell_quoted(&out.join(CERTIFICATE)),
        shell_quoted(data),
        column.unwrap_or_default()
    )
}
