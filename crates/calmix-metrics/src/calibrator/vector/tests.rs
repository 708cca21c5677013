use super::*;

fn fit(logits: &[f32], width: usize, labels: &[u32], l2: f64) -> VectorFit {
    VectorScaling::fit(Matrix::new(logits, labels.len(), width).unwrap(), labels, l2, &|| false).unwrap()
}

#[test]
fn a_bias_repairs_a_favoured_class() {
    // Constant logits: without a penalty the probabilities become the frequencies, 1/4 and 3/4.
    let logits = [2.0_f32, 0.0].repeat(4);
    let unpenalised = fit(&logits, 2, &[0, 1, 1, 1], 0.0);
    let p = unpenalised.scaling.probabilities(Matrix::new(&logits[..2], 1, 2).unwrap()).unwrap();
    assert!(unpenalised.converged);
    assert!((p[0] - 0.25).abs() < 1e-6, "{p:?}");
    let penalised = fit(&logits, 2, &[0, 1, 1, 1], DEFAULT_L2).scaling;
    assert!(penalised.bias()[1].abs() < unpenalised.scaling.bias()[1].abs());
}

#[test]
fn separable_classes_stay_finite() {
    let logits = [1.0_f32, -1.0, -1.0, 1.0];
    let fitted = fit(&logits, 2, &[0, 1], DEFAULT_L2);
    assert!(fitted.converged && fitted.n == 2);
    assert!(fitted.scaling.scale().iter().all(|w| (1.0..3.0).contains(w)));
    assert!(fit(&logits, 2, &[0, 1], 0.0).scaling.scale().iter().all(|w| w.is_finite()));
}

#[test]
fn one_class_and_extreme_logits_change_nothing_or_improve() {
    assert_eq!(fit(&[4.0], 1, &[0], 1.0).scaling, VectorScaling::identity(1));
    let logits = [3e38_f32, -3e38, -3e38, 3e38, 3e38, -3e38];
    let rows = Matrix::new(&logits, 3, 2).unwrap();
    let labels = [0, 1, 1];
    let fitted = fit(&logits, 2, &labels, 1.0).scaling;
    let nll = |scaling: &VectorScaling| scaling.negative_log_likelihood(rows, &labels).unwrap();
    assert!(nll(&fitted) <= nll(&VectorScaling::identity(2)));
}

#[test]
fn invalid_parameters_are_refused() {
    let parse = serde_json::from_str::<VectorScaling>;
    assert!(parse(r#"{"scale":[1.0],"bias":[0.0]}"#).is_ok());
    assert!(parse(r#"{"scale":[1.0],"bias":[]}"#).is_err());
    let text = |scale, bias| VectorScaling::new(scale, bias).unwrap_err().to_string();
    assert_eq!(text(vec![1.0, f64::NAN], vec![0.0; 2]), "the scale of class 1 is NaN; it must be finite");
    assert_eq!(text(vec![1.0], vec![]), "there are 0 biases, expected 1");
    let scaling = VectorScaling::identity(3);
    let rows = Matrix::new(&[0.0, 0.0], 1, 2).unwrap();
    assert_eq!(scaling.probabilities(rows), Err(MetricsError::Classes { expected: 3, got: 2 }));
    for l2 in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(VectorScaling::fit(rows, &[0], l2, &|| false).is_err());
    }
}
