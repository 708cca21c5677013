//! The output of `calmix predict`, and how an interrupted one is resumed.
//!
//! An output grows by whole rows or whole parts, and only one process at a time writes it. `FILE.predict.json` beside it
//! records the model and the options. A kill can leave an incomplete row or part at the end; the next process continues
//! after the last complete one.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use calmix_data::cloud::{CloudUrl, RemoteOutput};
use calmix_data::error::DataError;
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_io::system::is_stdout_closed;
use calmix_io::{atomic_file, safe_open};
use serde_json::Value;

use super::out_path::{beside, refuse_foreign};
use super::part_folder::PartFolder;
use super::row::{PredictedRow, RowFormat, WrittenRows};
use super::row_file::RowFile;
use crate::args::predict::RowKind;
use crate::error::CliError;

/// The maximum size of a sidecar: the paths of a whole command line, escaped.
const MAX_NOTE_BYTES: u64 = 64 << 20;

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
}

impl<'a> RowOutput<'a> {
    /// Starts a new output.
    pub fn create(path: Option<&Path>, made_by: &Value, format: &'a RowFormat<'a>) -> Result<Self> {
        let Some(path) = path else {
            if is_stdout_closed() {
                let message = "standard output is closed, so the rows would be lost";
                return Err(CliError::failed(message).hint("name a file with `--out`").into());
            }
            let mut output = Self { format, place: RowPlace::Stdout };
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
        Ok(Self { format, place })
    }

    /// Starts or continues an output in object storage. Its files are written to a local folder and uploaded when they are
    /// complete.
    pub fn open_remote(
        url: &CloudUrl,
        is_resumed: bool,
        made_by: &Value,
        format: &'a RowFormat<'a>,
    ) -> Result<(Self, WrittenRows)> {
        if format.kind != RowKind::Parquet {
            let message = format!("{}: only Parquet can be written to object storage", shown(url));
            return Err(CliError::invalid(message).hint("name the output *.parquet, or a local file").into());
        }
        let remote = RemoteOutput::open(url).map_err(DataError::from)?;
        let local = remote.local();
        let (mut output, written) = if is_resumed {
            remote.restore().map_err(DataError::from)?;
            Self::resume(&local, made_by, format)?
        } else {
            if remote.is_stored().map_err(DataError::from)? {
                let message = format!("{}: already exists", shown(url));
                let hint = "add `--resume` to continue it, or name another one with `--out`";
                return Err(CliError::invalid(message).hint(hint).into());
            }
            remote.clear_local().map_err(DataError::from)?;
            (Self::create(Some(&local), made_by, format)?, WrittenRows::default())
        };
        let note = serde_json::to_vec_pretty(made_by)?;
        remote.replace(&beside(&local, ".predict.json"), note).map_err(DataError::from)?;
        if let RowPlace::Parts(parts) = &mut output.place {
            parts.store_in(remote);
        }
        Ok((output, written))
    }

    /// Continues an output that was written with the same model and options.
    pub fn resume(path: &Path, made_by: &Value, format: &'a RowFormat<'a>) -> Result<(Self, WrittenRows)> {
        if !safe_open::exists(path) {
            return Ok((Self::create(Some(path), made_by, format)?, WrittenRows::default()));
        }
        // Lock before comparing or cutting anything, because another process may still be writing.
        let mut file = match format.kind {
            RowKind::Parquet => RowFile::open(&PartFolder::list(path))?,
            _ => RowFile::open(path)?,
        };
        if format.kind != RowKind::Parquet && file.is_empty()? {
            let place = RowPlace::File(started(file, path, made_by, format)?);
            return Ok((Self { format, place }, WrittenRows::default()));
        }
        let before = note(path)?;
        if let Some(difference) = difference(&before, made_by) {
            let message = format!("{}: {difference}, so it cannot be resumed", shown(path.display()));
            let hint = "use the model and the options that it was started with, or name another file";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        if format.kind == RowKind::Parquet {
            let (parts, written) = PartFolder::resume(path, file, format)?;
            return Ok((Self { format, place: RowPlace::Parts(Box::new(parts)) }, written));
        }
        let mut written = WrittenRows::default();
        file.resume(&format.header(), |row| {
            written.rows += 1;
            written.last = String::from_utf8_lossy(row).into_owned();
            Ok(())
        })?;
        Ok((Self { format, place: RowPlace::File(file) }, written))
    }

    /// Writes the rows of a batch at once: a kill loses none of them, or at most an unfinished part.
    pub fn write(&mut self, rows: &[PredictedRow<'_>]) -> Result<()> {
        if let RowPlace::Parts(parts) = &mut self.place {
            return rows.iter().try_for_each(|row| parts.add(self.format, row));
        }
        let rows: String = rows.iter().map(|row| self.format.row(row)).collect();
        self.write_text(&rows)
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

    /// Flushes all rows to disk, so that they survive a power failure.
    pub fn finish(self) -> Result<()> {
        match self.place {
            RowPlace::Stdout => Ok(()),
            RowPlace::File(file) => file.sync(),
            RowPlace::Parts(mut parts) => parts.finish(self.format),
        }
    }
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
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn format(kind: RowKind, classes: &[String]) -> RowFormat<'_> {
        RowFormat { kind, classes, rows_of_part: 2, ..RowFormat::default() }
    }

    fn image(path: &str) -> PredictedRow<'_> {
        let error = Some("no image".to_owned());
        PredictedRow { name: path.to_owned(), error, ..PredictedRow::default() }
    }

    #[test]
    fn a_torn_row_is_cut_off_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.csv");
        let (made_by, classes) = (json!({"model": "abc", "coverage": 0.9}), ["cat".to_owned()]);
        let (format, images) = (format(RowKind::Csv, &classes), [image("a"), image("b")]);
        let mut output = RowOutput::create(Some(&path), &made_by, &format).unwrap();
        output.write(&images).unwrap();
        output.finish().unwrap();
        assert!(RowOutput::create(Some(&path), &made_by, &format).is_err());
        let whole = fs::read(&path).unwrap();
        // Torn at every byte, the rest written again is the same file.
        for end in 0..=whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let (mut output, written) = RowOutput::resume(&path, &made_by, &format).unwrap();
            let last = written.rows.checked_sub(1).map(|last| format.row(&images[last as usize]));
            assert_eq!(written.last, last.unwrap_or_default());
            output.write(&images[written.rows as usize..]).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "torn at {end}");
        }
        let other = json!({"model": "xyz", "coverage": 0.9});
        let error = RowOutput::resume(&path, &other, &format).unwrap_err().to_string();
        assert!(error.contains("it was written with model \"abc\", not \"xyz\""), "{error}");
        fs::write(&path, "path,other\n").unwrap();
        assert!(RowOutput::resume(&path, &made_by, &format).is_err());
    }

    /// A kill may leave a file without rows and without its note, and a user may remove a folder without its list.
    #[test]
    fn leftovers_do_not_end_up_in_an_output() {
        let temp = tempfile::tempdir().unwrap();
        let (made_by, classes) = (json!({"model": "abc"}), ["cat".to_owned()]);
        let csv = format(RowKind::Csv, &classes);
        let empty = temp.path().join("out.csv");
        fs::write(&empty, "").unwrap();
        let (mut output, written) = RowOutput::resume(&empty, &made_by, &csv).unwrap();
        assert_eq!(written, WrittenRows::default());
        output.write(&[image("a")]).unwrap();
        assert_eq!(fs::read_to_string(&empty).unwrap(), csv.header() + &csv.row(&image("a")));

        let parts = format(RowKind::Parquet, &classes);
        let folder = temp.path().join("out.parquet");
        for (rows, lines) in [(&["a", "b", "c"][..], 2), (&["a"], 1)] {
            let made_by = json!({"version": "1", "model": "abc", "coverage": 0.9, "paths": []});
            let mut output = RowOutput::create(Some(&folder), &made_by, &parts).unwrap();
            output.write(&rows.iter().map(|row| image(row)).collect::<Vec<_>>()).unwrap();
            output.finish().unwrap();
            let list = fs::read_to_string(temp.path().join("out.parquet.parts.jsonl")).unwrap();
            assert_eq!(list.lines().count(), lines, "{list}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    /// A process that was killed while it wrote the note leaves its scratch file.
    #[test]
    fn scratch_of_a_killed_note_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        for (name, kind) in [("out.csv", RowKind::Csv), ("out.parquet", RowKind::Parquet)] {
            let scratch = temp.path().join(format!(".{name}.predict.json.tmp-1-0"));
            fs::write(&scratch, "{").unwrap();
            let other = temp.path().join(".other.predict.json.tmp-1-0");
            fs::write(&other, "{").unwrap();
            let made_by = json!({"model": "abc"});
            let format = format(kind, &[]);
            RowOutput::resume(&temp.path().join(name), &made_by, &format).unwrap().0.finish().unwrap();
            assert!(!scratch.exists() && other.exists());
        }
    }

    /// A folder without rows has one part, also after it is resumed.
    #[test]
    fn resumed_folder_without_rows_has_none() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.parquet");
        let made_by = json!({"model": "abc"});
        let format = format(RowKind::Parquet, &[]);
        RowOutput::create(Some(&path), &made_by, &format).unwrap().finish().unwrap();
        let (output, written) = RowOutput::resume(&path, &made_by, &format).unwrap();
        assert_eq!(written, WrittenRows::default());
        output.finish().unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    }

    /// Killed between any two writes: whole parts stay, the others are written again.
    #[test]
    fn a_folder_of_parts_goes_on_after_the_last_whole_one() {
        let temp = tempfile::tempdir().unwrap();
        let (path, list) = (temp.path().join("out.parquet"), temp.path().join("out.parquet.parts.jsonl"));
        let (made_by, classes) = (json!({"model": "abc"}), ["cat".to_owned()]);
        let format = format(RowKind::Parquet, &classes);
        let images = ["a", "b", "c", "d", "e"].map(image);
        let mut output = RowOutput::create(Some(&path), &made_by, &format).unwrap();
        output.write(&images).unwrap();
        output.finish().unwrap();
        let parts = || {
            let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
            names.sort();
            names.iter().map(|part| fs::read(part).unwrap()).collect::<Vec<_>>()
        };
        let (whole, lines) = (parts(), fs::read_to_string(&list).unwrap());
        assert_eq!((whole.len(), lines.lines().count()), (3, 3));
        for end in 0..=lines.len() {
            fs::write(&list, &lines[..end]).unwrap();
            let (mut output, written) = RowOutput::resume(&path, &made_by, &format).unwrap();
            let kept = lines[..end].matches('\n').count();
            assert_eq!(written.rows, [0, 2, 4, 5][kept]);
            assert_eq!(written.last, ["", "b\n", "d\n", "e\n"][kept]);
            output.write(&images[written.rows as usize..]).unwrap();
            output.finish().unwrap();
            assert!(parts() == whole && fs::read_to_string(&list).unwrap() == lines, "torn at {end}");
        }
        for (place, what) in [(path.join("part-00001.parquet"), "it was changed"), (list, "not a file of")] {
            let intact = fs::read(&place).unwrap();
            let mut bytes = intact.clone();
            bytes[9] ^= 1;
            fs::write(&place, bytes).unwrap();
            let error = RowOutput::resume(&path, &made_by, &format).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            fs::write(&place, intact).unwrap();
        }
        fs::remove_file(path.join("part-00000.parquet")).unwrap();
        assert!(RowOutput::resume(&path, &made_by, &format).is_err());
    }
}
