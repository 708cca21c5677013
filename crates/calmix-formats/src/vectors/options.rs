//! Options for reading vectors: the column, array or tensor that holds them, and the columns of ids and labels.

use crate::error::FormatProblem;
use crate::labels::columns::LabelColumns;

/// Options for a file with several arrays or columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorOptions {
    /// The column, array or tensor of the vectors; by default one with a usual name.
    pub vector_column: Option<String>,
    /// The columns of ids (`path`) and labels; by default those with usual names.
    pub columns: LabelColumns,
}

/// Usual names, compared without case.
const USUAL: [&str; 7] =
    ["embedding", "embeddings", "emb", "vector", "vectors", "features", "image_embedding"];

/// Returns whether a column with this name usually holds vectors.
pub(super) fn is_usual(name: &str) -> bool {
    USUAL.contains(&name.to_lowercase().as_str())
}

/// Returns the index of the name that the user gave, or else of the only usual name, or else of the only name. `what` is the
/// noun for messages: columns, arrays, tensors.
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
