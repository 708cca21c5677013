//! `calmix verify`: recomputes a certificate.

use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_io::text::{counted, grouped};
use serde_json::json;

use crate::args::labelling::verify::VerifyArgs;
use crate::args::options::data::existing_dataset;
use crate::certificate::{Certificate, LABELS, LabelsFile, Verification, verify_contents};
use crate::error::exit::Exit;
use crate::process::stop::Stop;
use crate::terminal::{Output, clear_line, status_in_place};

/// The maximum number of problems that are listed.
const MAX_LISTED: usize = 10;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    existing_dataset(&args.data)?;
    let (certificate, is_intact) = Certificate::read(&args.certificate)?;
    let labels = LabelsFile::read(&args.certificate.with_file_name(LABELS))?;
    let stop = Stop::listen()?;
    let mut found = Verification::of(&certificate, is_intact, &labels)?;
    let rows = labels.rows.len();
    let mut on_row = |row: usize| {
        if row % 1_000 == 999 {
            status_in_place(&format!("checked {} of {}", grouped(row as u64 + 1), grouped(rows as u64)));
        }
        !stop.flag().load(Ordering::Relaxed)
    };
    let column = args.vector_column.as_deref();
    found.problems.extend(verify_contents(certificate.pool.kind, &args.data, column, &labels, &mut on_row)?);
    if stop.flag().load(Ordering::Relaxed) {
        clear_line();
        return Ok(stop.exit());
    }
    let problems = &found.problems;
    let is_verified = problems.is_empty();
    let document = json!({
        "verified": is_verified,
        "problems": problems,
        "claims": certificate.claims,
        "certified_rows": certificate.result.certified_rows,
        "pool_rows": certificate.pool.rows,
    });
    let text = if is_verified {
        let [claim, limits] = &certificate.claims[..] else { anyhow::bail!("a certificate has two claims") };
        format!("verified: {}\n{claim}\n{limits}", shown(args.certificate.display()))
    } else {
        let mut lines = vec![format!(
            "not verified: {} ({})",
            shown(args.certificate.display()),
            counted(problems.len() as u64, "problem")
        )];
        lines.extend(problems.iter().take(MAX_LISTED).map(|problem| format!("  {problem}")));
        if problems.len() > MAX_LISTED {
            lines.push(format!("  and {} more", grouped((problems.len() - MAX_LISTED) as u64)));
        }
        lines.join("\n")
    };
    Output { text, json: document }.print(args.json)?;
    Ok(if is_verified { Exit::Done } else { Exit::Failed })
}
