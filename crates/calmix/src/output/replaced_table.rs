//! A prepared table that is replaced atomically: a process that opens it finds the old one or the new one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::manifest::PREPARING;
use calmix_io::atomic_file::rename_folder;
use calmix_io::scratch_folder::ScratchFolder;

/// A table that stays in place until the new one is complete.
#[derive(Debug)]
pub(crate) struct ReplacedTable {
    table: PathBuf,
    /// Beside the table: the new one grows here, and the old one is removed with it.
    scratch: ScratchFolder,
}

impl ReplacedTable {
    /// Creates a scratch folder beside a table.
    pub(crate) fn new(table: &Path) -> Result<Self> {
        let parent = table.parent().filter(|parent| !parent.as_os_str().is_empty());
        let scratch = ScratchFolder::new(parent.unwrap_or(Path::new(".")), PREPARING)?;
        Ok(Self { table: table.to_owned(), scratch })
    }

    /// The folder to write the new table to.
    pub(crate) fn new_table(&self) -> PathBuf {
        self.scratch.path().join("new")
    }

    /// Puts the new table into the place of the old one. Runs that linked files of the old one keep them.
    pub(crate) fn replace(self) -> Result<()> {
        let old = self.scratch.path().join("old");
        fs::rename(&self.table, &old)?;
        if let Err(error) = rename_folder(&self.new_table(), &self.table) {
            // Put the old table back rather than leave none.
            let _ = fs::rename(&old, &self.table);
            return Err(error.into());
        }
        Ok(())
    }
}

/// Whether a folder is a prepared table.
pub(crate) fn is_table(folder: &Path) -> bool {
    folder.join("manifest.json").is_file() && folder.join("samples.bin").is_file()
}
