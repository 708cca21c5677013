//! Where rows are written, and how an interrupted output goes on.
//!
//! A file grows by whole batches of rows. Beside it stands `FILE.predict.json`, which says which model and options made it.
//! A kill can leave a torn row at the end; the next process cuts it off and goes on after the last whole one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix::core::shown::shown;
use serde_json::Value;

use crate::error::CliError;

/// Where rows go.
#[derive(Debug)]
pub(crate) enum RowOutput {
    /// Standard output.
    Stdout,
    /// A file, at its end.
    File(File, PathBuf),
}

/// What an interrupted output already has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenRows {
    /// Whole rows.
    pub(crate) rows: u64,
    /// The last of them.
    pub(crate) last: String,
}

impl RowOutput {
    /// Starts a new output. `header` is its first line.
    pub(crate) fn create(path: Option<&Path>, made_by: &Value, header: &str) -> Result<Self> {
        let mut output = match path {
            None => Self::Stdout,
            Some(path) => {
                if path.exists() {
                    let message = format!("{}: already exists", shown(path.display()));
                    let hint = "add `--resume` to go on with it, or name another file with `--out`";
                    return Err(CliError::invalid(message).hint(hint).into());
                }
                write_whole(&note(path), serde_json::to_string_pretty(made_by)?.as_bytes())?;
                let file = File::options().append(true).create_new(true).open(path);
                Self::File(file.with_context(|| shown(path.display()))?, path.to_owned())
            }
        };
        output.write(header)?;
        Ok(output)
    }

    /// Goes on with an output that the same model and options made; a torn row at its end is cut off.
    pub(crate) fn resume(path: &Path, made_by: &Value, header: &str) -> Result<(Self, WrittenRows)> {
        let place = shown(path.display());
        let note = note(path);
        if !path.exists() {
            return Ok((Self::create(Some(path), made_by, header)?, WrittenRows::default()));
        }
        let before = fs::read(&note).with_context(|| shown(note.display()))?;
        let before: Value = serde_json::from_slice(&before).with_context(|| shown(note.display()))?;
        if let Some(difference) = difference(&before, made_by) {
            let message = format!("{place}: {difference}, so it cannot be resumed");
            let hint = "use the model and the options that it was started with, or name another file";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let mut file = File::options().read(true).append(true).open(path).with_context(|| place.clone())?;
        let (mut written, mut end) = (WrittenRows::default(), 0);
        let (mut lines, mut line) = (BufReader::with_capacity(1 << 16, &file), Vec::new());
        let mut is_first = true;
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).with_context(|| place.clone())?;
            if !line.ends_with(b"\n") {
                break;
            }
            if is_first && !header.is_empty() {
                if line != header.as_bytes() {
                    let message = format!("{place}: its first line is not that of these predictions");
                    return Err(CliError::invalid(message).into());
                }
            } else {
                written.rows += 1;
                written.last = String::from_utf8_lossy(&line).into_owned();
            }
            (is_first, end) = (false, end + length as u64);
        }
        file.set_len(end).with_context(|| place.clone())?;
        file.seek(SeekFrom::End(0)).with_context(|| place.clone())?;
        let mut output = Self::File(file, path.to_owned());
        if is_first {
            output.write(header)?;
        }
        Ok((output, written))
    }

    /// Writes rows at once, so that a kill loses none of them.
    pub(crate) fn write(&mut self, rows: &str) -> Result<()> {
        match self {
            // Without context: a pipe that its reader has closed is no failure.
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(rows.as_bytes())?;
                Ok(out.flush()?)
            }
            Self::File(file, path) => file.write_all(rows.as_bytes()).with_context(|| shown(path.display())),
        }
    }

    /// All rows are there: they survive a failure of the power, too.
    pub(crate) fn finish(self) -> Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(file, path) => file.sync_all().with_context(|| shown(path.display())),
        }
    }
}

/// The file that says what made an output.
fn note(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".predict.json");
    path.with_file_name(name)
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot = || shown(path.display());
    let mut scratch = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    scratch.write_all(bytes).with_context(cannot)?;
    scratch.as_file().sync_all().with_context(cannot)?;
    scratch.persist(path).with_context(cannot)?;
    Ok(())
}

/// The first thing that differs between what made an output and what goes on with it.
fn difference(before: &Value, now: &Value) -> Option<String> {
    let now = now.as_object()?;
    now.iter().find_map(|(key, now)| {
        let before = before.get(key).unwrap_or(&Value::Null);
        let told = |value: &Value| shown(value).chars().take(80).collect::<String>();
        (before != now).then(|| format!("it was made with {key} {}, not {}", told(before), told(now)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_torn_row_is_cut_off_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.csv");
        let made_by = json!({"model": "abc", "coverage": 0.9});
        let mut output = RowOutput::create(Some(&path), &made_by, "path,label\n").unwrap();
        output.write("a,cat\nb,dog\n").unwrap();
        output.finish().unwrap();
        assert!(RowOutput::create(Some(&path), &made_by, "path,label\n").is_err());
        let whole = fs::read(&path).unwrap();
        // Torn at every byte, the rest written again is the same file.
        for end in 0..=whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let (mut output, written) = RowOutput::resume(&path, &made_by, "path,label\n").unwrap();
            let rows = ["a,cat\n", "b,dog\n"];
            assert_eq!(written.last, written.rows.checked_sub(1).map_or("", |last| rows[last as usize]));
            output.write(&rows[written.rows as usize..].concat()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "torn at {end}");
        }
        let other = json!({"model": "xyz", "coverage": 0.9});
        let error = RowOutput::resume(&path, &other, "path,label\n").unwrap_err().to_string();
        assert!(error.contains("it was made with model \"abc\", not \"xyz\""), "{error}");
        assert!(RowOutput::resume(&path, &made_by, "path,other\n").is_err());
    }
}
