//! Reads the rows of Parquet files, row group by row group.

use parquet::errors::{ParquetError, Result};

use super::super::shape::VectorShape;
use super::super::vector_source::{RowStream, VectorBlock};
use super::schema::TablePart;
use super::vector_column::{VectorColumn, VectorColumnProblem};
use crate::error::{FormatError, FormatProblem};
use crate::labels::text::{parse_group, parse_label};
use crate::parquet_file::{Leaf, ParquetFile, TextColumn, catch_panics, changed_type};

/// A reader that starts at some row group.
pub(super) struct ParquetStream<'a> {
    shape: VectorShape,
    /// The files that remain; the first is being read.
    parts: &'a [TablePart],
    /// The next row group to open.
    next_group: usize,
    group: Option<RowGroup>,
    /// The number of rows of the first file that were read.
    row: u64,
}

/// An open row group.
struct RowGroup {
    rows_left: u64,
    vector: Option<VectorColumn>,
    id: Option<TextColumn>,
    label: Option<TextColumn>,
    group: Option<TextColumn>,
}

impl<'a> ParquetStream<'a> {
    /// Starts at the row group that contains row `first`. Returns the number of rows before it in that group.
    pub(super) fn near(parts: &'a [TablePart], shape: VectorShape, first: u64) -> (Self, u64) {
        let mut stream = Self { shape, parts, next_group: 0, group: None, row: 0 };
        let mut skipped = first;
        while let [part, rest @ ..] = stream.parts
            && skipped >= part.file.rows
        {
            skipped -= part.file.rows;
            stream.parts = rest;
        }
        for group in stream.parts.first().map(|part| part.file.metadata.row_groups()).unwrap_or_default() {
            let rows = group.num_rows().unsigned_abs();
            if skipped < rows {
                break;
            }
            skipped -= rows;
            stream.row += rows;
            stream.next_group += 1;
        }
        (stream, skipped)
    }

    /// Returns the current row group; `None` after the last row.
    fn opened(&mut self) -> std::result::Result<Option<&mut RowGroup>, FormatError> {
        while self.group.as_ref().is_none_or(|group| group.rows_left == 0) {
            let [part, rest @ ..] = self.parts else { return Ok(None) };
            if self.next_group == part.file.metadata.num_row_groups() {
                self.parts = rest;
                self.next_group = 0;
                self.row = 0;
                continue;
            }
            let group = catch_panics(|| RowGroup::open(part, self.next_group, self.shape.numbers() as u64));
            self.group = Some(group.map_err(|error| row_group_error(&part.file, self.next_group, &error))?);
            self.next_group += 1;
        }
        Ok(self.group.as_mut())
    }
}

impl RowStream for ParquetStream<'_> {
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> std::result::Result<(), FormatError> {
        let VectorShape { views, width, .. } = self.shape;
        let mut left = rows as u64;
        while left > 0 {
            let Some(group) = self.opened()? else { break };
            let rows = left.min(group.rows_left) as usize;
            let read = catch_panics(|| group.read(rows, views, width, into));
            group.rows_left -= rows as u64;
            let Some(TablePart { file, .. }) = self.parts.first() else { break };
            read.map_err(|problem| match problem {
                VectorColumnProblem::Parquet(error) => {
                    row_group_error(file, self.next_group.saturating_sub(1), &error)
                }
                VectorColumnProblem::Row(row, problem) => FormatError::new(&file.path, problem)
                    .at(format!("row {}", self.row + row))
                    .hint("every row needs a vector of the same length"),
                VectorColumnProblem::Label(row, problem) => {
                    FormatError::new(&file.path, problem).at(format!("row {}", self.row + row))
                }
            })?;
            self.row += rows as u64;
            left -= rows as u64;
        }
        Ok(())
    }
}

impl RowGroup {
    /// Opens a row group whose vectors have `numbers` values each.
    fn open(TablePart { file, columns }: &TablePart, index: usize, numbers: u64) -> Result<Self> {
        let rows_left = file.metadata.row_group(index).num_rows().unsigned_abs();
        let vector = match &columns.vector {
            Some(leaf) => {
                let present = leaf.description.max_def_level();
                let inside = leaf.description.max_rep_level();
                let reader = file.column(index, leaf, numbers)?;
                Some(VectorColumn::new(reader, present, inside).ok_or_else(changed_type)?)
            }
            None => None,
        };
        let text = |leaf: &Option<Leaf>| leaf.as_ref().map(|leaf| file.text_column(index, leaf)).transpose();
        let id = text(&columns.id)?;
        let label = text(&columns.label)?;
        let group = text(&columns.group)?;
        Ok(Self { rows_left, vector, id, label, group })
    }

    fn read(
        &mut self,
        rows: usize,
        views: usize,
        width: usize,
        into: &mut VectorBlock,
    ) -> std::result::Result<(), VectorColumnProblem> {
        if let Some(vector) = &mut self.vector {
            vector.read(rows, views, width, &mut into.vectors)?;
        }
        if let Some(id) = &mut self.id {
            let into = into.ids.get_or_insert_default();
            for (row, id) in (0..).zip(id.read(rows)?) {
                let problem =
                    || VectorColumnProblem::Row(row, FormatProblem::Content("the row has no id".into()));
                into.push(id.ok_or_else(problem)?);
            }
        }
        if let Some(label) = &mut self.label {
            let into = into.labels.get_or_insert_default();
            for (row, label) in (0..).zip(label.read(rows)?) {
                let label = parse_label(label.as_deref().unwrap_or_default());
                into.push(label.map_err(|problem| VectorColumnProblem::Label(row, problem))?);
            }
        }
        if let Some(group) = &mut self.group {
            let into = into.groups.get_or_insert_default();
            for (row, group) in (0..).zip(group.read(rows)?) {
                let group = parse_group(group.as_deref().unwrap_or_default());
                let group = group.map_err(|problem| VectorColumnProblem::Label(row, problem))?;
                into.push(group.map(str::to_owned));
            }
        }
        Ok(())
    }
}

/// Returns the views and width of the first row of a file.
pub(super) fn first_vector(part: &TablePart) -> std::result::Result<(u64, u64), FormatError> {
    let file = &part.file;
    let index = file.metadata.row_groups().iter().position(|group| group.num_rows() > 0).unwrap_or_default();
    // While the length of a vector is unknown, a file may have as many values as its bytes can plausibly expand to.
    let rows = file.metadata.row_group(index).num_rows().unsigned_abs().max(1);
    let numbers = file.length().saturating_mul(250) / rows;
    let mut group = catch_panics(|| RowGroup::open(part, index, numbers))
        .map_err(|error| row_group_error(file, index, &error))?;
    let size = catch_panics(|| group.vector.as_mut().map(VectorColumn::first).transpose());
    let size = size.map_err(|problem| match problem {
        VectorColumnProblem::Parquet(error) => row_group_error(file, index, &error),
        VectorColumnProblem::Row(row, problem) | VectorColumnProblem::Label(row, problem) => {
            FormatError::new(&file.path, problem).at(format!("row {row}"))
        }
    })?;
    let (views, width) = size.unwrap_or_default();
    Ok((views as u64, width as u64))
}

pub(super) fn row_group_error(file: &ParquetFile, group: usize, error: &ParquetError) -> FormatError {
    file.damaged(error).at(format!("row group {group}"))
}
