//! `calmix certify` and `calmix verify`: predicted labels of a pool with a bound on their errors that anybody can recompute.
//!
//! The predicted labels are written down first ([`LabelsFile`]), then the [plan](AuditPlan): nested shares of the most confident
//! rows, and one random order of the largest, which follows from the labels. The answers of auditors are a [log](LoggedAnswer) that
//! only grows; what they show is computed from nothing else ([`AuditResult`]). The [`Certificate`] holds all of it, so verifying is
//! computing it again. docs/reference/certificate.md describes the files.

mod answers;
mod badge;
mod contents;
mod digest;
mod document;
mod labels_file;
mod plan;
mod result;
mod verification;

pub(crate) use answers::{LoggedAnswer, new_answers};
pub(crate) use badge::{badge_markdown, badge_svg};
pub(crate) use contents::{image_content, vector_contents};
pub(crate) use digest::sha256;
pub(crate) use document::{CERTIFICATE, Certificate, ModelName, PoolKind, PoolSummary};
pub(crate) use labels_file::{LABELS, LabelRow, LabelsFile};
pub(crate) use plan::{AuditPlan, check_error};
pub(crate) use result::{
    AuditResult, ShareResult, audited_rows, claims, percent, share_of_pool, upper_bound,
};
pub(crate) use verification::{Verification, verify_contents};
