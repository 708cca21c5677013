//! Inputs and outputs of a foreign model, with declared names, types and shapes.

use std::fmt;

use calmix_io::protobuf::Fields;
use calmix_io::shown::shown;

use super::limits::MAX_RANK;
use super::problem::{ForeignProblem, check_max, name_of};
use crate::tensor::ElementType;

/// A declared input or output of a foreign model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignPort {
    pub name: String,
    /// The type of its numbers; `None` if it is not declared, or not supported by calmix.
    pub element: Option<ElementType>,
    /// The sizes of its dimensions, each `None` if any size is possible; `None` if even their number is not declared.
    pub dimensions: Option<Vec<Option<u64>>>,
}

impl ForeignPort {
    /// Reads a `ValueInfoProto`.
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, ForeignProblem> {
        let mut port = Self { name: String::new(), element: None, dimensions: None };
        for field in fields {
            let field = field?;
            match field.number {
                1 => name_of(&field)?.clone_into(&mut port.name),
                2 => port.read_type(field.message()?)?,
                _ => {}
            }
        }
        Ok(port)
    }

    /// Reads a `TypeProto`; only tensors have an element type.
    fn read_type(&mut self, fields: Fields<'_>) -> Result<(), ForeignProblem> {
        for field in fields {
            let field = field?;
            if field.number != 1 {
                continue;
            }
            for field in field.message()? {
                let field = field?;
                match field.number {
                    1 => self.element = ElementType::from_standard(field.integer()?),
                    2 => self.dimensions = Some(dimensions(field.message()?)?),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Reads a `TensorShapeProto`.
fn dimensions(fields: Fields<'_>) -> Result<Vec<Option<u64>>, ForeignProblem> {
    let mut dimensions = Vec::new();
    for field in fields {
        let field = field?;
        if field.number != 1 {
            continue;
        }
        let mut size = None;
        for field in field.message()? {
            let field = field?;
            if field.number == 1 {
                // Some exporters write -1 or 0 for an unknown size.
                size = u64::try_from(field.integer()?).ok().filter(|&size| size > 0);
            }
        }
        dimensions.push(size);
        check_max(dimensions.len(), MAX_RANK, "dimension")?;
    }
    Ok(dimensions)
}

/// Formats a port as `pixel_values (float32, ? × 3 × 224 × 224)`, escaped.
impl fmt::Display for ForeignPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (", shown(&self.name))?;
        match self.element {
            Some(element) => write!(f, "{element}, ")?,
            None => f.write_str("unknown type, ")?,
        }
        match &self.dimensions {
            None => f.write_str("unknown shape")?,
            Some(dimensions) if dimensions.is_empty() => f.write_str("one number")?,
            Some(dimensions) => {
                let sizes = dimensions
                    .iter()
                    .map(|size| size.map_or_else(|| "?".to_owned(), |size| size.to_string()));
                f.write_str(&sizes.collect::<Vec<_>>().join(" × "))?;
            }
        }
        f.write_str(")")
    }
}

/// Lists the first ten ports for a message.
pub(super) fn listed(ports: &[ForeignPort]) -> String {
    const SHOWN: usize = 10;
    let mut names: Vec<String> = ports.iter().take(SHOWN).map(ToString::to_string).collect();
    if ports.len() > SHOWN {
        names.push(format!("{} more", ports.len() - SHOWN));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
