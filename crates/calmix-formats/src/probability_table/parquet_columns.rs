//! Parquet with a column of numbers per class, or with one list of numbers.

use csv::StringRecord;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::options::{ProbabilityOptions, class_columns};
use super::table::{MAX_CLASSES, ProbabilityTable};
use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::id_column;
use crate::parquet_file::{Leaf, ParquetFile, can_hold_text, catch_panics, changed_type};
use crate::vectors::{VectorPlace, parquet_parts};

/// The key of the classes of a list in a file of `calmix predict`.
const CLASSES_KEY: &str = "calmix.classes";

/// The columns of numbers.
enum Numbers {
    PerClass(Vec<Leaf>),
    List(Leaf),
}

/// Reads the rows of a file, or of the files of a folder in the order of their names.
pub(super) fn read(
    place: &VectorPlace,
    options: &ProbabilityOptions,
    table: &mut ProbabilityTable,
) -> Result<(), FormatError> {
    let names = match &place.file {
        Some(name) => vec![name.clone()],
        None => parquet_parts(place)?,
    };
    if names.is_empty() {
        return Err(FormatError::content(&table.path, "there are no Parquet files in this folder"));
    }
    for name in names {
        let file = ParquetFile::open(&place.folder, &name)?;
        let at = |problem: FormatProblem| FormatError::new(&file.path, problem);
        let texts: Vec<Leaf> =
            Leaf::all(&file.metadata).filter(|leaf| can_hold_text(&leaf.description)).collect();
        let header: StringRecord = texts.iter().map(|leaf| leaf.description.name()).collect();
        let id = id_column(&header, &options.label_columns()).map_err(at)?;
        let id = id.and_then(|column| texts.get(column));
        let (numbers, classes) = find(&file.metadata, id, options).map_err(at)?;
        if table.classes.is_empty() {
            table.set_classes(classes).map_err(at)?;
        } else if table.classes != classes {
            return Err(FormatError::content(&file.path, "it has other classes than the files before it"));
        }
        let read: Vec<&Leaf> = match &numbers {
            Numbers::PerClass(leaves) => leaves.iter().chain(id).collect(),
            Numbers::List(leaf) => std::iter::once(leaf).chain(id).collect(),
        };
        file.check_inside(&read.iter().map(|leaf| leaf.index).collect::<Vec<_>>())?;
        for group in 0..file.metadata.num_row_groups() {
            let rows = catch_panics(|| rows_of_group(&file, group, &numbers, id));
            let (ids, rows) = rows.map_err(|error| file.damaged(&error))?;
            let mut ids = ids.into_iter();
            for row in rows {
                let in_group = |problem: FormatProblem| at(problem).at(format!("row group {group}"));
                table.add(ids.next().flatten(), &row).map_err(in_group)?;
            }
        }
    }
    Ok(())
}

/// Finds the columns of numbers, and their classes.
fn find(
    metadata: &ParquetMetaData,
    id: Option<&Leaf>,
    options: &ProbabilityOptions,
) -> Result<(Numbers, Vec<String>), FormatProblem> {
    let is_id = |leaf: &Leaf| id.is_some_and(|id| id.index == leaf.index);
    let floats: Vec<Leaf> =
        Leaf::all(metadata).filter(|leaf| is_float(&leaf.description) && !is_id(leaf)).collect();
    let list = floats.iter().find(|leaf| leaf.root() == "probabilities" && is_list(&leaf.description));
    let noted = classes_in(metadata);
    if let Some(list) = list {
        let classes = if options.classes.is_empty() { noted } else { Some(options.classes.clone()) };
        let problem = "the file does not say which classes its lists `probabilities` are of: name them in their order, with \
                       `--classes A,B,…`";
        let classes = classes.ok_or_else(|| FormatProblem::Content(problem.to_owned()))?;
        return Ok((Numbers::List(list.clone()), classes));
    }
    let columns: Vec<Leaf> =
        floats.into_iter().filter(|leaf| leaf.description.max_rep_level() == 0).collect();
    let names: Vec<&str> = columns.iter().map(|leaf| leaf.description.name()).collect();
    if names.is_empty() {
        let problem =
            "it has neither a list `probabilities` nor a column of floating-point numbers per class";
        return Err(FormatProblem::Content(problem.to_owned()));
    }
    let (places, classes): (Vec<usize>, Vec<String>) =
        class_columns(&names, &options.classes)?.into_iter().unzip();
    Ok((Numbers::PerClass(places.into_iter().map(|column| columns[column].clone()).collect()), classes))
}

/// Returns the classes that a file of `calmix predict` notes.
fn classes_in(metadata: &ParquetMetaData) -> Option<Vec<String>> {
    let notes = metadata.file_metadata().key_value_metadata()?;
    let note = notes.iter().find(|note| note.key == CLASSES_KEY)?.value.as_deref()?;
    serde_json::from_str(note).ok()
}

fn is_float(description: &ColumnDescriptor) -> bool {
    matches!(description.physical_type(), Type::FLOAT | Type::DOUBLE)
}

fn is_list(description: &ColumnDescriptor) -> bool {
    description.max_rep_level() == 1
}

/// Reads the ids and the numbers of a row group; a row without any number is empty.
#[expect(clippy::type_complexity, reason = "two columns of a table")]
fn rows_of_group(
    file: &ParquetFile,
    group: usize,
    numbers: &Numbers,
    id: Option<&Leaf>,
) -> ParquetResult<(Vec<Option<String>>, Vec<Vec<f32>>)> {
    let count = usize::try_from(file.metadata.row_group(group).num_rows())
        .map_err(|_| ParquetError::General("a negative number of rows".into()))?;
    let ids = match id {
        Some(id) => file.text_column(group, id)?.read(count)?,
        None => Vec::new(),
    };
    let mut rows: Vec<Vec<f32>> = Vec::new();
    match numbers {
        Numbers::List(leaf) => rows = read_numbers(file, group, leaf, count, MAX_CLASSES as u64)?,
        Numbers::PerClass(leaves) => {
            for leaf in leaves {
                let column = read_numbers(file, group, leaf, count, 1)?;
                rows.resize(column.len().max(rows.len()), Vec::new());
                rows.iter_mut().zip(column).for_each(|(row, number)| row.extend(number));
            }
        }
    }
    if rows.len() != count {
        let problem = format!("a column has {} rows, but the row group has {count}", rows.len());
        return Err(ParquetError::General(problem));
    }
    Ok((ids, rows))
}

/// Reads the numbers of a column, by row.
fn read_numbers(
    file: &ParquetFile,
    group: usize,
    leaf: &Leaf,
    rows: usize,
    per_row: u64,
) -> ParquetResult<Vec<Vec<f32>>> {
    match file.column(group, leaf, per_row)? {
        ColumnReader::FloatColumnReader(reader) => {
            read_typed(reader, &leaf.description, rows, |number| number)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            read_typed(reader, &leaf.description, rows, |number| number as f32)
        }
        _ => Err(changed_type()),
    }
}

fn read_typed<D: DataType>(
    mut reader: ColumnReaderImpl<D>,
    description: &ColumnDescriptor,
    rows: usize,
    convert: impl Fn(D::T) -> f32,
) -> ParquetResult<Vec<Vec<f32>>> {
    let mut definitions = Vec::new();
    let mut repetitions = Vec::new();
    let mut values = Vec::new();
    let mut found = 0;
    while found < rows {
        let (read, _, _) =
            reader.read_records(rows - found, Some(&mut definitions), Some(&mut repetitions), &mut values)?;
        if read == 0 {
            break;
        }
        found += read;
    }
    let mut values = values.into_iter().map(convert);
    // Levels are not stored for columns that have none.
    let levels = definitions.len().max(repetitions.len());
    let mut by_row: Vec<Vec<f32>> = Vec::with_capacity(rows);
    if levels == 0 {
        by_row.extend(values.map(|value| vec![value]));
        return Ok(by_row);
    }
    for level in 0..levels {
        if repetitions.get(level).is_none_or(|&repetition| repetition == 0) {
            by_row.push(Vec::new());
        }
        let is_present = definitions.get(level).is_none_or(|&depth| depth == description.max_def_level());
        if let (true, Some(row)) = (is_present, by_row.last_mut()) {
            row.extend(values.next());
        }
    }
    Ok(by_row)
}
