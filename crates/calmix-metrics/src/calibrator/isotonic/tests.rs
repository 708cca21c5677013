use super::*;

fn fit(scores: &[f64], targets: &[f64], weights: Option<&[f64]>) -> Vec<(f64, f64)> {
    Isotonic::fit(scores, targets, weights).unwrap().knots().collect()
}

#[test]
fn violators_are_pooled_by_weight() {
    let scores = [1.0, 2.0, 3.0, 4.0];
    let targets = [1.0, 4.0, 2.0, 5.0];
    assert_eq!(fit(&scores, &targets, None), [(1.0, 1.0), (2.0, 3.0), (3.0, 3.0), (4.0, 5.0)]);
    let weights = [1.0, 3.0, 1.0, 0.0];
    assert_eq!(fit(&scores, &targets, Some(&weights)), [(1.0, 1.0), (2.0, 3.5), (3.0, 3.5)]);
}

#[test]
fn ties_are_averaged_before_pooling() {
    assert_eq!(fit(&[2.0, 1.0, 2.0], &[0.0, 0.25, 1.0], None), [(1.0, 0.25), (2.0, 0.5)]);
    assert_eq!(fit(&[0.0, -0.0], &[0.0, 1.0], None).len(), 1);
}

#[test]
fn predictions_are_linear_between_knots_and_flat_beyond() {
    let isotonic = Isotonic::fit(&[0.0, 1.0], &[0.0, 1.0], None).unwrap();
    assert_eq!(
        [-1.0, 0.0, 0.25, 1.0, f64::INFINITY].map(|x| isotonic.predict(x)),
        [0.0, 0.0, 0.25, 1.0, 1.0]
    );
    assert!(isotonic.predict(f64::NAN).is_nan());
    let one = Isotonic::fit(&[0.3], &[0.8], None).unwrap();
    assert_eq!((one.predict(0.0), one.predict(1.0), one.n()), (0.8, 0.8, 1));
}

#[test]
fn top_label_confidence_becomes_accuracy() {
    // The same confidence four times, three times right.
    let logits = [5.0_f32, 0.0].repeat(4);
    let isotonic = Isotonic::fit_top_label(Matrix::new(&logits, 4, 2).unwrap(), &[0, 0, 1, 0]).unwrap();
    assert_eq!(isotonic.confidence(&[5.0, 0.0]), 0.75);
    assert_eq!(isotonic.confidence(&[-9.0, 40.0]), 0.75);
}

#[test]
fn invalid_samples_are_errors() {
    assert_eq!(Isotonic::fit(&[], &[], None), Err(MetricsError::NoSamples));
    assert_eq!(Isotonic::fit(&[1.0], &[1.0], Some(&[0.0])), Err(MetricsError::NoSamples));
    assert!(Isotonic::fit(&[1.0], &[], None).is_err());
    let negative = Isotonic::fit(&[1.0; 2], &[1.0; 2], Some(&[1.0, -1.0])).unwrap_err();
    assert_eq!(negative.to_string(), "the weight of sample 1 is -1; it must be zero or more, and finite");
    assert!(Isotonic::fit(&[f64::NAN], &[1.0], None).is_err());
    for wide in [[f64::MAX, f64::MIN], [f64::MIN, f64::MAX]] {
        assert!(Isotonic::fit(&[1.0, 2.0], &wide, None).is_err());
        assert!(Isotonic::fit(&wide, &[1.0, 2.0], None).is_err());
    }
    assert!(Isotonic::fit(&[1.0, 2.0], &[2.0, 1.0], Some(&[f64::MAX; 2])).is_err());
}

#[test]
fn hostile_knots_are_refused() {
    let parse = |text: &str| serde_json::from_str::<Isotonic>(text);
    let stored = r#"{"scores":[0.0,1.0],"values":[0.25,0.5],"n":7}"#;
    assert_eq!(serde_json::to_string(&parse(stored).unwrap()).unwrap(), stored);
    for bad in [
        r#"{"scores":[],"values":[],"n":7}"#,
        r#"{"scores":[0.0,0.0],"values":[0.25,0.5],"n":7}"#,
        r#"{"scores":[0.0,1.0],"values":[0.5,0.25],"n":7}"#,
        r#"{"scores":[0.0,1.0],"values":[0.5],"n":7}"#,
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
