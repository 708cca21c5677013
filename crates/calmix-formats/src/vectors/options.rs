//! What to read from a file of vectors: which column, array or tensor holds them, and which columns ids and labels.

use crate::error::FormatProblem;
use crate::labels::columns::LabelColumns;

/// What to read from a file that holds several arrays or columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorOptions {
    /// The column, array or tensor that holds the vectors; by default it is found by a usual name.
    pub vector_column: Option<String>,
    /// The columns that hold ids (`path`) and labels; by default they are found by usual names.
    pub columns: LabelColumns,
}

/// Usual names, compared without case.
const USUAL: [&str; 7] =
    ["embedding", "embeddings", "emb", "vector", "vectors", "features", "image_embedding"];

/// Whether a column of this name usually holds vectors.
pub(super) fn is_usual(name: &str) -> bool {
    USUAL.contains(&name.to_lowercase().as_str())
}

/// The index of the name that the user gave, or else of the only usual one, or else of the only one. `what` is what has
/// these names: columns, arrays, tensors.
pub(super) fn choose(names: &[&str], named: Option<&str>, what: &str) -> Result<usize, FormatProblem> {
    let all = || names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    if let Some(named) = named {
        let found = names.iter().position(|name| *name == named);
        return found.ok_or_else(|| FormatProblem::Ambiguous {
            what: format!("none of its {what} with vectors is called `{named}`; there are: {}", all()),
            readings: vec!["to choose one, use --vector-column NAME".into()],
        });
    }
    let usual: Vec<usize> = (0..names.len()).filter(|&index| is_usual(names[index])).collect();
    match (usual.as_slice(), names.len()) {
        ([only], _) => Ok(*only),
        ([], 1) => Ok(0),
        (_, 0) => {
            Err(FormatProblem::Content(format!("it has no {what} with vectors of floating-point numbers")))
        }
        _ => Err(FormatProblem::Ambiguous {
            what: format!("several {what} could hold the vectors: {}", all()),
            readings: vec!["to choose one, use --vector-column NAME".into()],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_found_by_name() {
        let choose = |names: &[&str], named| choose(names, named, "columns").ok();
        assert_eq!(choose(&["a", "Embedding"], None), Some(1));
        assert_eq!(choose(&["a"], None), Some(0));
        assert_eq!(choose(&["a", "b"], Some("b")), Some(1));
        for (names, named) in
            [(&["a", "b"][..], None), (&["emb", "vectors"], None), (&["emb"], Some("x")), (&[], None)]
        {
            assert_eq!(choose(names, named), None, "{names:?} {named:?}");
        }
    }
}
