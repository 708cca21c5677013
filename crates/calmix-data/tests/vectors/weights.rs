//! Weights of labels: the column `weight` of a list.

use std::fs;

use super::same::{golden, prepared};

fn with_lines(lines: &str) -> Result<(Vec<f64>, String), String> {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.csv");
    fs::write(&labels, lines).unwrap();
    let made = prepared(&golden("f4.npy"), Some(&labels), &folder.path().join("prepared"));
    let (dataset, _) = made.map_err(|error| error.to_string())?;
    let weights: Vec<f64> = (0..dataset.len()).map(|id| dataset.weight(id).unwrap()).collect();
    assert_eq!(dataset.has_weights(), weights.iter().any(|&weight| (weight - 1.0).abs() > 0.0));
    Ok((weights, dataset.fingerprint().to_owned()))
}

#[test]
fn weights_are_part_of_the_dataset() {
    let (weights, fingerprint) = with_lines("row,label,weight\n3,a,0.5\n7,b,\n9,a,4\n").unwrap();
    // Labelled rows come first, in the order of the file.
    assert_eq!(weights[..4], [0.5, 1.0, 4.0, 1.0]);
    assert!(weights[4..].iter().all(|&weight| weight == 1.0) && weights.len() == 50);
    let (ones, plain) = with_lines("row,label\n3,a\n7,b\n9,a\n").unwrap();
    assert_eq!(ones, [1.0; 50]);
    assert_ne!(fingerprint, plain);
    let (_, given) = with_lines("row,label,weight\n3,a,1\n7,b,1.0\n9,a,\n").unwrap();
    assert_eq!(given, plain, "weights of 1 are no weights");
}

#[test]
fn wrong_weights_are_refused_with_their_line() {
    for wrong in ["0", "-2", "nan", "1e12", "heavy"] {
        let error = with_lines(&format!("row,label,weight\n3,a,1\n7,b,{wrong}\n")).unwrap_err();
        assert!(error.contains("line 3") && error.contains("weight"), "{wrong}: {error}");
    }
}
