//! `calmix label`: merges the answers of reviews into the lists of labels of a dataset.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use calmix_data::cloud::CloudUrl;
use calmix_data::source::{FolderLayout, SourceSpec};
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::drawn::Drawn;
use calmix_io::shown::shown;
use calmix_recipe::{Layers, SourceName, detect_source};
use serde_json::{Value, json};

use crate::args::labelling::label::LabelArgs;
use crate::args::options::data::existing_dataset;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::labelling::class_names::{SimilarClasses, similar_classes};
use crate::labelling::date::today;
use crate::labelling::lists::{LabelCounts, ListOptions, Lists, Place};
use crate::labelling::merge::{Effect, ListedLabel, merge};
use crate::labelling::review_file::read_reviews;
use crate::labelling::review_row::ReviewFile;
use crate::labelling::reviewers::{Answer, CombinedAnswers, ReviewPair, combine};
use crate::output::format::{class_list, counted, decimal, grouped, same_command, shell_quoted};
use crate::terminal::{Output, sentence};

/// The maximum number of rows of a kind that are listed.
const MAX_LISTED_ROWS: usize = 10;

/// What a merge did.
#[derive(Debug, Default)]
struct Merged {
    added: u64,
    confirmed: u64,
    corrected: u64,
    skipped: u64,
    unmarked: u64,
    conflicts: Vec<Conflict>,
    new_classes: BTreeSet<String>,
    similar_classes: Vec<SimilarClasses>,
    counts: LabelCounts,
    written: Vec<PathBuf>,
    /// The paths of the lists that did not exist before.
    created: BTreeSet<PathBuf>,
    /// What the new lists take precedence over, in words.
    replaced: Option<&'static str>,
    next: String,
}

/// A label that was not replaced.
#[derive(Debug)]
struct Conflict {
    file: String,
    old: String,
    new: String,
}

impl LabelArgs {
    pub fn run(self) -> Result<Exit> {
        if CloudUrl::is_url(&self.data) {
            let message = format!("{}: labels are added to local files only", shown(self.data.display()));
            return Err(CliError::invalid(message).into());
        }
        existing_dataset(&self.data)?;
        self.check_reviews()?;
        let mut reviews = Vec::new();
        for path in &self.reviews {
            reviews.extend(read_reviews(path)?);
        }
        let answers = combine(&reviews)?;
        if answers.answers.is_empty() && answers.disagreements.is_empty() {
            let names: Vec<String> = self.reviews.iter().map(|path| shown(path.display())).collect();
            let message = format!("{}: no row has an answer", names.join(", "));
            let hint = "fill in the column `label`, or annotate the tasks and export them again";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let mut lists = self.lists()?;
        let places = places(&lists, &reviews, &answers)?;
        let merged = self.merge(&mut lists, &places, &answers)?;
        let names: Vec<String> = reviews.iter().map(ReviewFile::name).collect();
        let output = Output { text: merged.text(&names, &answers), json: merged.json(&names, &answers) };
        output.print(self.json)?;
        Ok(Exit::Done)
    }

    /// Refuses a review that is named twice: it would agree with itself.
    fn check_reviews(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for path in &self.reviews {
            if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                let message = format!("{}: this review is named twice", shown(path.display()));
                return Err(CliError::invalid(message).hint("name the review of each person once").into());
            }
        }
        Ok(())
    }

    fn lists(&self) -> Result<Lists> {
        let columns = LabelColumns { path: self.path_column.clone(), label: self.label_column.clone() };
        let names_columns = columns.path.is_some() || columns.label.is_some();
        let source = detect_source(&self.data, names_columns);
        let (layout, groups) = self.folder_options()?;
        let options = ListOptions { layout, groups, columns, vector_column: self.vector_column.clone() };
        let data = shell_quoted(&self.data);
        match (&self.labels, source) {
            (Some(labels), SourceName::Vectors) => Lists::of_vectors(&self.data, labels, &options),
            (None, SourceName::Vectors) => {
                let message = format!(
                    "{}: the labels of vectors are in a file of their own, which --labels names or creates",
                    shown(self.data.display())
                );
                let reviews: Vec<String> = self.reviews.iter().map(|path| shell_quoted(path)).collect();
                let hint = format!("calmix label {data} {} --labels labels.csv", reviews.join(" "));
                Err(CliError::invalid(message).hint(hint).into())
            }
            (Some(_), _) => {
                let message =
                    "--labels names the list of vectors; that of images is labels.csv in their folder";
                Err(CliError::invalid(message).hint("leave --labels out").into())
            }
            (None, _) => Lists::of_images(&self.data, &options),
        }
    }

    /// Returns the layout and the level of groups as the reader of folders takes them.
    fn folder_options(&self) -> Result<(FolderLayout, u32)> {
        let mut layers = Layers::new().set("dataset.source=folder");
        layers = layers.set(&format!("dataset.groups={}", self.groups));
        if let Some(layout) = self.layout {
            layers = layers.set(&format!("dataset.layout={}", layout.word()));
        }
        match layers.resolve()?.recipe.dataset.source_spec() {
            SourceSpec::Folder { layout, groups, .. } => Ok((layout, groups)),
            _ => Ok((FolderLayout::Auto, self.groups)),
        }
    }

    /// Merges the answers into the lists and writes them.
    fn merge(&self, lists: &mut Lists, places: &[Place], answers: &CombinedAnswers) -> Result<Merged> {
        let today = today();
        let mut merged = Merged::default();
        let existing = lists.classes();
        for (Answer { row: review, .. }, place) in answers.answers.iter().zip(places) {
            let file = &mut lists.per_folder[place.list].file;
            let row = file.find(&place.key);
            let old = row.and_then(|row| file.label(row)).map(str::to_owned);
            let listed =
                ListedLabel { label: old.as_deref(), drawn: row.map_or(Drawn::Given, |row| file.drawn(row)) };
            let new = review.label.as_deref();
            let (effect, drawn) = merge(listed, new, review.drawn, self.replace);
            match effect {
                Effect::Added => merged.added += 1,
                Effect::Confirmed => merged.confirmed += 1,
                Effect::Corrected => merged.corrected += 1,
                Effect::Skipped => merged.skipped += 1,
                Effect::Kept => continue,
                Effect::Conflict => {
                    merged.conflicts.push(Conflict {
                        file: review.file.clone(),
                        old: old.unwrap_or_default(),
                        new: new.unwrap_or_default().to_owned(),
                    });
                    continue;
                }
            }
            merged.unmarked += u64::from(effect == Effect::Added && review.drawn.is_none());
            let label = new.unwrap_or_default();
            if !label.is_empty() && !existing.contains(label) {
                merged.new_classes.insert(label.to_owned());
            }
            let row = row.unwrap_or_else(|| file.push(&place.key, "", ""));
            file.set(row, label, drawn, &today);
        }
        merged.similar_classes = similar_classes(&merged.new_classes, &existing);
        merged.counts = lists.counts();
        merged.next = lists.train_command(self.vector_column.as_deref());
        merged.replaced = lists.replaced_labels();
        merged.written = lists.write()?;
        let is_new = |path: &&PathBuf| {
            lists.per_folder.iter().any(|list| list.file.is_new() && list.file.path() == path.as_path())
        };
        merged.created = merged.written.iter().filter(is_new).cloned().collect();
        Ok(merged)
    }
}

/// Finds the place of every answer. All answers are checked before anything is written, those of a disagreement, too.
fn places(
    lists: &Lists,
    reviews: &[ReviewFile],
    answers: &CombinedAnswers,
) -> Result<Vec<Place>, FormatError> {
    for review in reviews {
        for row in review.rows.iter().filter(|row| row.is_reviewed()) {
            let at =
                |problem: FormatProblem| FormatError::new(&review.path, problem).at(row.place.to_string());
            lists.place(&row.file, &at)?;
            if let Some(label) = &row.label {
                lists.check_label(label).map_err(at)?;
            }
        }
    }
    let place = |answer: &Answer| {
        let at = |problem| FormatError::new(&reviews[answer.review].path, problem);
        lists.place(&answer.row.file, &at)
    };
    answers.answers.iter().map(place).collect()
}

impl Merged {
    fn text(&self, reviews: &[String], answers: &CombinedAnswers) -> String {
        let is_complete = self.conflicts.is_empty() && answers.disagreements.is_empty();
        let mut lines = vec![self.headline(is_complete)];
        for path in &self.created {
            let path = shown(path.display());
            let now = match self.replaced {
                Some(replaced) => format!("{path} is new; from now on calmix reads it instead of {replaced}"),
                None => format!("{path} is new"),
            };
            lines.push(sentence(&now));
        }
        if self.unmarked > 0 {
            let labels = counted(self.unmarked, "label");
            lines.push(sentence(&format!(
                "{labels} without a word in the column `drawn` count as chosen: they are trained on, but no guarantee rests \
                 on them"
            )));
        }
        lines.extend(answers.agreements.iter().map(|pair| sentence(&agreement_text(pair, reviews))));
        push_disagreements(reviews, answers, &mut lines);
        self.push_conflicts(&mut lines);
        if !self.new_classes.is_empty() {
            let classes: Vec<String> = self.new_classes.iter().cloned().collect();
            lines.push(format!("new classes: {}", class_list(&classes)));
        }
        for SimilarClasses { new, other, difference } in &self.similar_classes {
            lines.push(sentence(&format!(
                "`{new}` and `{other}` differ {difference}: if they are one class, correct it in the review and in the list",
                new = shown(new),
                other = shown(other),
            )));
        }
        lines.push(self.counts_text());
        lines.push(format!("next: {}", self.next));
        lines.join("\n")
    }

    /// Says what was written. `is_complete`: every answer could be merged.
    fn headline(&self, is_complete: bool) -> String {
        let mut parts = Vec::new();
        let labels = [(self.added, "added"), (self.confirmed, "confirmed"), (self.corrected, "corrected")];
        for (count, what) in labels {
            if count > 0 {
                let noun = if parts.is_empty() { counted(count, "label") } else { grouped(count) };
                parts.push(format!("{noun} {what}"));
            }
        }
        if self.skipped > 0 {
            parts.push(format!("{} skipped", counted(self.skipped, "row")));
        }
        let parts = parts.join(", ");
        let Some(first) = self.written.first() else {
            return match (parts.is_empty(), is_complete) {
                (true, _) => "nothing was written: no answer could be merged".to_owned(),
                (false, true) => format!("nothing to change: all answers are in the list already ({parts})"),
                (false, false) => {
                    format!("nothing to change: the other answers are in the list already ({parts})")
                }
            };
        };
        let more = match self.written.len() {
            1 => String::new(),
            lists => format!(" and {}", counted(lists as u64 - 1, "other list")),
        };
        format!("{}{more}: {parts}", shown(first.display()))
    }

    fn push_conflicts(&self, lines: &mut Vec<String>) {
        let count = self.conflicts.len();
        if count == 0 {
            return;
        }
        let verb = if count == 1 { "has" } else { "have" };
        let rows = counted(count as u64, "row");
        lines.push(sentence(&format!("not merged: {rows} that {verb} another label")));
        for Conflict { file, old, new } in self.conflicts.iter().take(MAX_LISTED_ROWS) {
            lines.push(format!("  {}: {}, review: {}", shown(file), shown(old), shown(new)));
        }
        push_rest(count, lines);
        lines.push(format!("  to replace them: {} --replace", same_command("--json")));
    }

    fn counts_text(&self) -> String {
        let LabelCounts { all, given, random, by_class, chosen, audit, certified, skipped } = self.counts;
        let kinds = [
            (random, "random"),
            (by_class, "by class"),
            (chosen, "chosen"),
            (audit, "audit"),
            (certified, "certified"),
            (given, "given"),
        ];
        let named = kinds.iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = named.map(|(count, kind)| format!("{} {kind}", grouped(*count))).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let skipped =
            if skipped == 0 { String::new() } else { format!("; {} skipped", counted(skipped, "row")) };
        format!("{} now{kinds}{skipped}", counted(all, "label"))
    }

    fn json(&self, reviews: &[String], answers: &CombinedAnswers) -> Value {
        let review = |index: usize| reviews[index].as_str();
        let lists: Vec<Value> = self
            .written
            .iter()
            .map(|path| json!({ "path": path.display().to_string(), "is_new": self.created.contains(path) }))
            .collect();
        let conflicts: Vec<Value> = self
            .conflicts
            .iter()
            .map(|row| json!({ "file": row.file, "old": row.old, "new": row.new }))
            .collect();
        let mut disagreements = Vec::new();
        for row in &answers.disagreements {
            let labels = row.labels.iter();
            let labels: Vec<Value> =
                labels.map(|(index, label)| json!({ "review": review(*index), "label": label })).collect();
            disagreements.push(json!({ "file": row.file, "labels": labels }));
        }
        let mut agreement = Vec::new();
        for pair in &answers.agreements {
            agreement.push(json!({
                "reviews": [review(pair.first), review(pair.second)],
                "samples": pair.agreement.samples,
                "same": pair.agreement.same,
                "kappa": pair.agreement.kappa,
                "interval": pair.agreement.interval,
            }));
        }
        let similar: Vec<Value> = self
            .similar_classes
            .iter()
            .map(|pair| json!({ "new": pair.new, "other": pair.other, "difference": pair.difference }))
            .collect();
        let LabelCounts { all, given, random, by_class, chosen, audit, certified, skipped } = self.counts;
        json!({
            "lists": lists,
            "added": self.added,
            "confirmed": self.confirmed,
            "corrected": self.corrected,
            "skipped": self.skipped,
            "unanswered": answers.unanswered,
            "unmarked": self.unmarked,
            "conflicts": conflicts,
            "disagreements": disagreements,
            "agreement": agreement,
            "new_classes": self.new_classes,
            "similar_classes": similar,
            "labels": {
                "all": all,
                "given": given,
                "random": random,
                "by_class": by_class,
                "chosen": chosen,
                "audit": audit,
                "certified": certified,
                "skipped": skipped,
            },
            "next": self.next,
        })
    }
}

/// Lists the rows on which reviews differ.
fn push_disagreements(reviews: &[String], answers: &CombinedAnswers, lines: &mut Vec<String>) {
    let count = answers.disagreements.len();
    if count == 0 {
        return;
    }
    let rows = counted(count as u64, "row");
    lines.push(sentence(&format!("not merged: {rows} with different answers")));
    for row in answers.disagreements.iter().take(MAX_LISTED_ROWS) {
        let answer =
            |(review, label): &(usize, String)| format!("{} ({})", shown(label), shown(&reviews[*review]));
        let labels: Vec<String> = row.labels.iter().map(answer).collect();
        lines.push(format!("  {}: {}", shown(&row.file), labels.join(", ")));
    }
    push_rest(count, lines);
    lines.push("  to merge them, write the same label into every review, or leave all but one empty".into());
}

/// Says how many rows are not listed.
fn push_rest(count: usize, lines: &mut Vec<String>) {
    if count > MAX_LISTED_ROWS {
        lines.push(format!("  and {} more", grouped((count - MAX_LISTED_ROWS) as u64)));
    }
}

/// Says how often two reviews agree.
fn agreement_text(pair: &ReviewPair, reviews: &[String]) -> String {
    let first = shown(&reviews[pair.first]);
    let second = shown(&reviews[pair.second]);
    let agreement = &pair.agreement;
    let rows = counted(agreement.samples as u64, "row");
    let same = grouped(agreement.same as u64);
    let begin = format!("{first} and {second} agree on {same} of {rows}");
    match (agreement.kappa, agreement.interval) {
        (None, _) => format!("{begin}; Cohen's kappa is not defined, because they used a single class"),
        (Some(kappa), None) => {
            format!("{begin}: Cohen's kappa {kappa:.2}, too few different answers for an interval")
        }
        (Some(kappa), Some(interval)) => {
            format!("{begin}: Cohen's kappa {} (95% CI)", decimal(kappa, Some(interval)))
        }
    }
}
