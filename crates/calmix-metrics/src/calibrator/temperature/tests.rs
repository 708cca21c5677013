use super::*;
use crate::measure::nll_from_logits;

fn fit(logits: &[f32], width: usize, labels: &[u32]) -> f64 {
    let logits = Matrix::new(logits, labels.len(), width).unwrap();
    Temperature::fit(logits, labels).unwrap().value()
}

#[test]
fn fit_finds_the_optimum() {
    // Three of four right at margin m: the optimum has m/T = ln 3.
    for m in [0.1_f32, 1.0, 5.0, 20.0] {
        let t = fit(&[m, 0.0, m, 0.0, m, 0.0, m, 0.0], 2, &[0, 0, 0, 1]);
        assert!((t / (f64::from(m) / 3.0_f64.ln()) - 1.0).abs() < 1e-14, "{m} {t}");
    }
}

#[test]
fn f64_logits_have_the_same_optimum() {
    let narrow = [2.5_f32, 0.0, 1.0, 0.25, 3.0, 0.5, -1.0, 0.5];
    let wide = narrow.map(f64::from);
    let labels = [0, 1, 0, 1];
    let matrix = MatrixOf::new(&wide, 4, 2).unwrap();
    assert_eq!(Temperature::fit(matrix, &labels).unwrap().value(), fit(&narrow, 2, &labels));
    let far = MatrixOf::new(&[f64::MAX, f64::MIN, f64::MIN, f64::MAX], 2, 2).unwrap();
    assert_eq!(Temperature::fit(far, &[0, 0]).unwrap().value(), MAX_TEMPERATURE);
    assert_eq!(Temperature::fit(far, &[0, 1]).unwrap().value(), 1.0);
}

#[test]
fn separable_data_stop_at_the_bounds() {
    assert_eq!(fit(&[1.0, 0.0], 2, &[0]), MIN_TEMPERATURE);
    assert_eq!(fit(&[1.0, 0.0], 2, &[1]), MAX_TEMPERATURE);
    assert_eq!(fit(&[1e38, -1e38, 3e38], 3, &[0]), MAX_TEMPERATURE);
    assert!(Temperature(MIN_TEMPERATURE).is_at_bound() && !Temperature::IDENTITY.is_at_bound());
}

#[test]
fn no_evidence_gives_the_identity() {
    assert_eq!(fit(&[3.0, 3.0, -1.0, -1.0], 2, &[0, 1]), 1.0);
    assert_eq!(fit(&[7.0, -7.0], 1, &[0, 0]), 1.0);
    // So sure and right that no temperature makes a difference in f64.
    assert_eq!(fit(&[3e38, -3e38], 2, &[0]), 1.0);
}

#[test]
fn rounding_never_makes_it_worse() {
    // Calibrated sets, `wrong` of `n` at the margin that says so: nothing to gain but a rounding.
    for n in 2..60_u32 {
        for wrong in 1..=n / 2 {
            let margin = (f64::from(n - wrong) / f64::from(wrong)).ln() as f32;
            let logits = [margin, 0.0].repeat(n as usize);
            let labels: Vec<u32> = (0..n).map(|i| u32::from(i < wrong)).collect();
            let logits = Matrix::new(&logits, n as usize, 2).unwrap();
            let nll = |t: Temperature| nll_from_logits(logits, &labels, t.value()).unwrap();
            let fitted = Temperature::fit(logits, &labels).unwrap();
            assert!(nll(fitted) <= nll(Temperature::IDENTITY), "{n} {wrong}");
        }
    }
}

#[test]
fn probabilities_are_of_the_divided_logits() {
    let hot = Temperature::new(2.0).unwrap();
    let mut p = [0.0_f32; 2];
    hot.probabilities_into(&[2.0, 0.0], &mut p);
    assert!((f64::from(p[0]) - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-7);
    hot.probabilities_into(&[3e38, -3e38], &mut p);
    assert_eq!(p, [1.0, 0.0]);
    assert!(hot.probabilities(Matrix::new(&[], 3, 0).unwrap()).is_empty());
}

#[test]
fn hostile_temperatures_are_refused() {
    for text in ["0.0", "-1.5", "1e999", "null"] {
        assert!(serde_json::from_str::<Temperature>(text).is_err(), "{text}");
    }
    let error = Temperature::new(-1.5).unwrap_err().to_string();
    assert_eq!(error, "the temperature is -1.5; it must be positive and finite");
    assert_eq!(serde_json::from_str::<Temperature>("1.5").unwrap().value(), 1.5);
    assert_eq!(serde_json::to_string(&Temperature(1.5)).unwrap(), "1.5");
}

#[test]
fn invalid_rows_are_errors() {
    let empty = Matrix::new(&[], 0, 3).unwrap();
    assert_eq!(Temperature::fit(empty, &[]), Err(MetricsError::NoSamples));
    let one = Matrix::new(&[0.0, f32::NAN], 1, 2).unwrap();
    let text = |labels: &[u32]| Temperature::fit(one, labels).unwrap_err().to_string();
    assert_eq!(text(&[]), "there are 0 labels, expected 1");
    assert_eq!(text(&[2]), "row 0 has label 2, but there are 2 classes");
    assert_eq!(text(&[0]), "the logit of class 1 in row 0 is NaN; it must be finite");
}
