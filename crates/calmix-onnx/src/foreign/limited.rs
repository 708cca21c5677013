//! Names and counts of a foreign model, within the limits.

use calmix_io::protobuf::Field;

use super::problem::ForeignProblem;

/// Bytes of a name.
const MAX_NAME: usize = 1_000;

/// The name in a field.
pub(super) fn name_of<'a>(field: &Field<'a>) -> Result<&'a str, ForeignProblem> {
    let name = field.text()?;
    if name.len() > MAX_NAME {
        let start = name.chars().take(40).collect();
        return Err(ForeignProblem::LongName { start, length: name.len(), most: MAX_NAME });
    }
    Ok(name)
}

/// Refuses more of something than the limit; `what` is its singular.
pub(super) fn at_most(found: usize, most: usize, what: &'static str) -> Result<(), ForeignProblem> {
    if found > most {
        return Err(ForeignProblem::TooMany { what, most: most as u64 });
    }
    Ok(())
}
