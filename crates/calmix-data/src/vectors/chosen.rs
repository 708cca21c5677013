//! Which column, array or tensor holds the vectors.

use crate::error::DataProblem;

/// Usual names, compared without case.
const USUAL: [&str; 7] =
    ["embedding", "embeddings", "emb", "vector", "vectors", "features", "image_embedding"];

/// Whether a column of this name usually holds vectors.
pub(super) fn is_usual(name: &str) -> bool {
    USUAL.contains(&name.to_lowercase().as_str())
}

/// The index of the name that the user gave, or else of the only usual one, or else of the only one. `what` is what has
/// these names: columns, arrays, tensors.
pub(super) fn choose(names: &[&str], named: Option<&str>, what: &str) -> Result<usize, DataProblem> {
    let all = || names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    if let Some(named) = named {
        let found = names.iter().position(|name| *name == named);
        return found.ok_or_else(|| DataProblem::Ambiguous {
            what: format!("none of its {what} with vectors is called `{named}`; there are: {}", all()),
            readings: vec!["to choose one, use --vector-column NAME".into()],
        });
    }
    let usual: Vec<usize> = (0..names.len()).filter(|&index| is_usual(names[index])).collect();
    match (usual.as_slice(), names.len()) {
        ([only], _) => Ok(*only),
        ([], 1) => Ok(0),
        (_, 0) => {
            Err(DataProblem::Content(format!("it has no {what} with vectors of floating-point numbers")))
        }
        _ => Err(DataProblem::Ambiguous {
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
