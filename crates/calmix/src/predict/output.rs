//! The output of `calmix predict`, and how an interrupted one is resumed.
//!
//! An output grows by whole rows or whole parts, and only one process at a time writes it. `FILE.predict.json` beside it
//! records the model and the options. A kill can leave an incomplete row or part at the end; the next process continues
//! after the last complete one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix_data::cloud::{CloudUrl, RemoteOutput};
use calmix_data::error::DataError;
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_io::system::is_stdout_closed;
use calmix_io::{atomic_file, safe_open};
use calmix_metrics::shift::BatchSums;
use serde::Deserialize;
use serde_json::Value;

use super::batch_verdict::BatchVerdict;
use super::out_path::{beside, refuse_foreign};
use super::part_folder::PartFolder;
use super::row::{PredictedRow, RowFormat, WrittenRows};
use super::row_file::RowFile;
use super::sums_journal::{SavedSums, SumsJournal};
use crate::args::predict::RowKind;
use crate::error::CliError;

/// The maximum size of a sidecar: the paths of a whole command line, escaped.
pub(crate) const MAX_NOTE_BYTES: u64 = 64 << 20;

/// The destination of rows.
#[derive(Debug)]
enum RowPlace {
    Stdout,
    File(RowFile),
    Parts(Box<PartFolder>),
}

/// The destination of rows, with their format.
#[derive(Debug)]
pub struct RowOutput<'a> {
    format: &'a RowFormat<'a>,
    place: RowPlace,
    /// The sums over all rows; `None` if the model has no reference, or the output was begun without them.
    sums: Option<SavedSums>,
    journal: Option<SumsJournal>,
    /// The sidecar, with its path; `None` for standard output.
    note: Option<(PathBuf, Value)>,
}

impl<'a> RowOutput<'a> {
    /// Starts a new output. `empty` are the sums of no rows, if sums are kept.
    pub fn create(
        path: Option<&Path>,
        made_by: &Value,
        format: &'a RowFormat<'a>,
        empty: Option<BatchSums>,
    ) -> Result<Self> {
        let sums = empty.map(|sums| SavedSums { written: 0, sums });
        let Some(path) = path else {
            if is_stdout_closed() {
                let message = "standard output is closed, so the rows would be lost";
                return Err(CliError::failed(message).hint("name a file with `--out`").into());
            }
            let mut output = Self { format, place: RowPlace::Stdout, sums, journal: None, note: None };
            output.write_text(&format.header())?;
            return Ok(output);
        };
        refuse_foreign(path)?;
        safe_open::check_names(path).map_err(|error| FileError::new(path, error))?;
        if safe_open::exists(path) {
            let message = format!("{}: already exists", shown(path.display()));
            let hint = "add `--resume` to continue it, or name another file with `--out`";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        // Lock before writing the note, so that of two processes that start at the same time one refuses.
        let place = if format.kind == RowKind::Parquet {
            let lines = RowFile::open_or_create(&PartFolder::list(path))?;
            write_note(path, made_by)?;
            RowPlace::Parts(Box::new(PartFolder::create(path, lines, format)?))
        } else {
            RowPlace::File(started(RowFile::create(path)?, path, made_by, format)?)
        };
        Self::started(place, path, made_by, format, sums)
    }

    /// Creates the output of a place without rows.
    fn started(
        place: RowPlace,
        path: &Path,
        made_by: &Value,
        format: &'a RowFormat<'a>,
        sums: Option<SavedSums>,
    ) -> Result<Self> {
        // A folder of parts has its sums in the list of parts.
        let has_journal = sums.is_some() && matches!(place, RowPlace::File(_));
        let journal = has_journal.then(|| SumsJournal::create(path)).transpose()?;
        Ok(Self { format, place, sums, journal, note: Some((path.to_owned(), made_by.clone())) })
    }

    /// Starts or continues an output in object storage. Its files are written to a local folder and uploaded when they are
    /// complete.
    pub fn open_remote(
        url: &CloudUrl,
        is_resumed: bool,
        made_by: &Value,
        format: &'a RowFormat<'a>,
        empty: Option<BatchSums>,
    ) -> Result<(Self, WrittenRows)> {
        if format.kind != RowKind::Parquet {
            let message = format!("{}: only Parquet can be written to object storage", shown(url));
            return Err(CliError::invalid(message).hint("name the output *.parquet, or a local file").into());
        }
        let remote = RemoteOutput::open(url).map_err(DataError::from)?;
        let local = remote.local();
        let (mut output, written) = if is_resumed {
            remote.restore().map_err(DataError::from)?;
            Self::resume(&local, made_by, format, empty)?
        } else {
            if remote.is_stored().map_err(DataError::from)? {
                let message = format!("{}: already exists", shown(url));
                let hint = "add `--resume` to continue it, or name another one with `--out`";
                return Err(CliError::invalid(message).hint(hint).into());
            }
            remote.clear_local().map_err(DataError::from)?;
            (Self::create(Some(&local), made_by, format, empty)?, WrittenRows::default())
        };
        let note = serde_json::to_vec_pretty(made_by)?;
        remote.replace(&beside(&local, ".predict.json"), note).map_err(DataError::from)?;
        if let RowPlace::Parts(parts) = &mut output.place {
            parts.store_in(remote);
        }
        Ok((output, written))
    }

    /// Continues an output that was written with the same model and options.
    pub fn resume(
        path: &Path,
        made_by: &Value,
        format: &'a RowFormat<'a>,
        empty: Option<BatchSums>,
    ) -> Result<(Self, WrittenRows)> {
        if !safe_open::exists(path) {
            return Ok((Self::create(Some(path), made_by, format, empty)?, WrittenRows::default()));
        }
        // Lock before comparing or cutting anything, because another process may still be writing.
        let mut file = match format.kind {
            RowKind::Parquet => RowFile::open(&PartFolder::list(path))?,
            _ => RowFile::open(path)?,
        };
        if format.kind != RowKind::Parquet && file.is_empty()? {
            let place = RowPlace::File(started(file, path, made_by, format)?);
            let sums = empty.map(|sums| SavedSums { written: 0, sums });
            return Ok((Self::started(place, path, made_by, format, sums)?, WrittenRows::default()));
        }
        let before = note(path)?;
        if let Some(difference) = difference(&before, made_by) {
            let message = format!("{}: {difference}, so it cannot be resumed", shown(path.display()));
            let hint = "use the model and the options that it was started with, or name another file";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let written_note = Some((path.to_owned(), made_by.clone()));
        if format.kind == RowKind::Parquet {
            let (parts, written, sums) = PartFolder::resume(path, file, format)?;
            let place = RowPlace::Parts(Box::new(parts));
            let sums = if written.rows == 0 { empty.clone() } else { sums };
            let sums = sums.filter(|sums| empty.is_some_and(|empty| empty.has_shape_of(sums)));
            let sums = sums.map(|sums| SavedSums { written: written.rows, sums });
            return Ok((Self { format, place, sums, journal: None, note: written_note }, written));
        }
        let saved = empty.as_ref().map(|empty| saved_sums(path, &before, empty)).transpose()?.flatten();
        let (journal, mut saved) = saved.unzip();
        if let (Some(saved), Some(sums)) = (&mut saved, empty) {
            saved.insert(0, SavedSums { written: 0, sums });
        }
        let is_saved = |rows: u64| {
            saved
                .as_ref()
                .is_none_or(|saved| saved.binary_search_by_key(&rows, |saved| saved.written).is_ok())
        };
        let mut written = WrittenRows::default();
        let mut rows = 0;
        // Rows that no line of the journal covers are cut: their features are not known, so they are predicted again.
        file.resume_at(&format.header(), |row| {
            rows += 1;
            let is_kept = is_saved(rows);
            if is_kept {
                written = WrittenRows { rows, last: String::from_utf8_lossy(row).into_owned() };
            }
            Ok(is_kept)
        })?;
        let sums = saved.and_then(|saved| saved.into_iter().rfind(|saved| saved.written == written.rows));
        Ok((Self { format, place: RowPlace::File(file), sums, journal, note: written_note }, written))
    }

    /// Returns the sums over all rows so far, if they are kept.
    pub fn sums(&self) -> Option<&BatchSums> {
        self.sums.as_ref().map(|saved| &saved.sums)
    }

    /// Writes the rows of a batch at once: a kill loses none of them, or at most an unfinished part.
    pub fn write(&mut self, rows: &[PredictedRow<'_>]) -> Result<()> {
        let Self { format, place, sums, .. } = self;
        if let RowPlace::Parts(parts) = place {
            for row in rows {
                if let Some(sums) = sums {
                    sums.add(row);
                }
                parts.add(format, row, sums.as_ref().map(|saved| &saved.sums))?;
            }
            return Ok(());
        }
        let text: String = rows.iter().map(|row| format.row(row)).collect();
        if let Some(sums) = sums {
            for row in rows {
                sums.add(row);
            }
        }
        self.write_text(&text)?;
        match (&mut self.journal, &self.sums) {
            (Some(journal), Some(sums)) => journal.save(sums),
            _ => Ok(()),
        }
    }

    fn write_text(&mut self, rows: &str) -> Result<()> {
        match &mut self.place {
            RowPlace::Stdout => {
                let mut out = io::stdout().lock();
                let written = out.write_all(rows.as_bytes()).and_then(|()| out.flush());
                written.context("cannot write to standard output")
            }
            RowPlace::File(file) => file.write(rows),
            RowPlace::Parts(_) => Ok(()),
        }
    }

    /// Flushes all rows to disk, so that they survive a power failure. `verdict` is written into the sidecar with the sums; `None`
    /// if rows are missing.
    pub fn finish(mut self, verdict: Option<&BatchVerdict>) -> Result<()> {
        let sums = self.sums.as_ref().map(|saved| &saved.sums);
        match &mut self.place {
            RowPlace::Stdout => return Ok(()),
            RowPlace::File(file) => file.sync()?,
            RowPlace::Parts(parts) => parts.finish(self.format, sums)?,
        }
        let remote = match &self.place {
            RowPlace::Parts(parts) => parts.remote(),
            RowPlace::Stdout | RowPlace::File(_) => None,
        };
        if let Some(((path, note), verdict)) = self.note.as_mut().zip(verdict) {
            note["verdict"] = serde_json::to_value(verdict)?;
            note["sums"] = serde_json::to_value(&self.sums)?;
            write_note(path, note)?;
            if let Some(remote) = remote {
                let note = serde_json::to_vec_pretty(note)?;
                remote.replace(&beside(path, ".predict.json"), note).map_err(DataError::from)?;
            }
        }
        if let Some(remote) = remote {
            remote.remove_local();
        }
        match (self.journal, verdict) {
            (Some(journal), Some(_)) => journal.remove(),
            (Some(journal), None) => journal.sync(),
            (None, _) => Ok(()),
        }
    }
}

/// Reads the sums of an interrupted or finished output, with the number of rows that each covers, ascending; `None` if it was begun
/// without sums. A finished output has a new journal.
fn saved_sums(path: &Path, note: &Value, empty: &BatchSums) -> Result<Option<(SumsJournal, Vec<SavedSums>)>> {
    let finished: Option<SavedSums> = note.get("sums").and_then(|sums| SavedSums::deserialize(sums).ok());
    let finished = finished.filter(|finished| empty.has_shape_of(&finished.sums));
    let (journal, mut saved) = match SumsJournal::resume(path, empty)? {
        Some(resumed) => resumed,
        None if finished.is_some() => (SumsJournal::create(path)?, Vec::new()),
        None => return Ok(None),
    };
    saved.extend(finished);
    saved.sort_by_key(|saved| saved.written);
    Ok(Some((journal, saved)))
}

/// Creates a file without rows, with its sidecar and its header.
fn started(mut file: RowFile, path: &Path, made_by: &Value, format: &RowFormat<'_>) -> Result<RowFile> {
    write_note(path, made_by)?;
    file.write(&format.header())?;
    Ok(file)
}

/// Writes the sidecar with the model and options of an output.
fn write_note(path: &Path, made_by: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(made_by)?;
    let note = beside(path, ".predict.json");
    // A process that was killed while writing the sidecar left a scratch file in the user's folder.
    atomic_file::sweep_abandoned_of(&note);
    Ok(atomic_file::write(&note, text.as_bytes())?)
}

/// Reads the model and options of an output.
fn note(path: &Path) -> Result<Value> {
    let note = beside(path, ".predict.json");
    let unknown = |what: String| {
        let message =
            format!("{}: {what}, so {} cannot be resumed", shown(note.display()), shown(path.display()));
        CliError::invalid(message).hint("predict everything again, into another file")
    };
    let bytes = safe_open::read(&note, MAX_NOTE_BYTES).map_err(|error| unknown(error.problem.to_string()))?;
    let made_by = serde_json::from_slice(&bytes);
    Ok(made_by.map_err(|error| unknown(format!("not a file of `calmix predict` ({error})")))?)
}

/// Returns the first difference between the options of an output and those that would continue it.
fn difference(before: &Value, now: &Value) -> Option<String> {
    let now = now.as_object()?;
    now.iter().find_map(|(key, now)| {
        let before = before.get(key).unwrap_or(&Value::Null);
        let shortened = |value: &Value| shown(value).chars().take(80).collect::<String>();
        (before != now)
            .then(|| format!("it was written with {key} {}, not {}", shortened(before), shortened(now)))
    })
}

#[cfg(test)]
mod tests;
