//! The summary of how many snippets ran, and which did not.

use std::collections::BTreeMap;

use super::plan::{LeftOut, Plan};
use crate::check::snippets::block::When;
use crate::check::tier::Tier;

/// Counts of snippets per document.
#[derive(Debug, Default)]
pub(super) struct Summary {
    documents: BTreeMap<String, Count>,
}

#[derive(Debug, Default)]
struct Count {
    run: usize,
    doctests: usize,
    left_out: Vec<LeftOut>,
}

impl Summary {
    pub(super) fn add(&mut self, document: &str, plan: &Plan) {
        if plan.run + plan.doctests + plan.left_out.len() == 0 {
            return;
        }
        let count = self.documents.entry(document.to_owned()).or_default();
        count.run += plan.run;
        count.doctests += plan.doctests;
        count.left_out.extend(plan.left_out.iter().cloned());
    }

    /// Formats a line for each document, and one for each of its snippets that did not run.
    pub(super) fn by_document(&self) -> String {
        let mut lines = Vec::new();
        for (document, count) in &self.documents {
            lines.push(format!("   {document}: {} run, {} not", count.run, count.left_out.len()));
            lines.extend(count.left_out.iter().map(|it| {
                let when = if it.when == When::UnlessNightly { "nightly: " } else { "" };
                format!("      {document}:{}: {when}{}: {}", it.line, it.reason, it.snippet.trim())
            }));
        }
        lines.join("\n")
    }

    /// Formats all counts in one line, with the reasons of the marked snippets.
    pub(super) fn line(&self, tier: Tier) -> String {
        let run: usize = self.documents.values().map(|count| count.run).sum();
        let doctests: usize = self.documents.values().map(|count| count.doctests).sum();
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut nightly_only = 0;
        for left_out in self.documents.values().flat_map(|count| &count.left_out) {
            match left_out.when {
                When::UnlessNightly => nightly_only += 1,
                When::Always => *reasons.entry(&left_out.reason).or_default() += 1,
            }
        }
        let marked: usize = reasons.values().sum();
        let reasons: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let nightly_only =
            if tier == Tier::Nightly { String::new() } else { format!(", {nightly_only} nightly only") };
        format!("snippets: {run} run, {doctests} by doctests, {marked} marked{reasons}{nightly_only}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_reasons() {
        let left_out = |reason: &str, when| LeftOut {
            line: 3,
            snippet: "x".to_owned(),
            reason: reason.to_owned(),
            when,
        };
        let mut summary = Summary::default();
        let marked = vec![
            left_out("needs a GPU", When::Always),
            left_out("needs Docker", When::Always),
            left_out("slow", When::UnlessNightly),
        ];
        summary.add("a.md", &Plan { run: 4, doctests: 1, left_out: marked, ..Plan::default() });
        let marked = vec![left_out("needs a GPU", When::Always)];
        summary.add("b.md", &Plan { run: 1, left_out: marked, ..Plan::default() });
        summary.add("c.md", &Plan::default());
        let expected =
            "snippets: 5 run, 1 by doctests, 3 marked (1 needs Docker, 2 needs a GPU), 1 nightly only";
        assert_eq!(summary.line(Tier::Usual), expected);
        assert_eq!(summary.by_document().lines().count(), 6);
    }
}
