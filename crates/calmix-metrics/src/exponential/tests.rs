use super::*;

/// The distance from libm's exponential, which is itself within one unit, in units in the last place.
fn units_off(x: f64) -> u64 {
    exp_of_negative(x).to_bits().abs_diff(libm::exp(x).to_bits())
}

#[test]
fn exponential_is_within_a_unit_of_libm() {
    let mut off = 0;
    let steps = 2_000_000;
    for i in 0..=steps {
        // Dense near zero, and up to the last normal number.
        let share = f64::from(i) / f64::from(steps);
        for x in [-708.0 * share, -share, -1e-9 * share] {
            let distance = units_off(x);
            assert!(distance <= 1, "{distance} units at {x}");
            off += distance;
        }
    }
    // Both round to the nearest number nearly always.
    assert!(off < 6 * u64::from(steps as u32) / 10, "{off}");
}

#[test]
fn exponential_has_the_same_bits_everywhere() {
    // mpmath's exponentials at 300 bits, rounded to f64; those of −10 and −100 one unit less.
    let expected = [
        (-0.3, 0x3FE7_B4C8_69C3_7C05_u64),
        (-0.5, 0x3FE3_68B2_FC6F_960A),
        (-1.0, 0x3FD7_8B56_362C_EF38),
        (-10.0, 0x3F07_CD79_B564_7C9A),
        (-37.25, 0x3C93_278B_CD70_E981),
        (-100.0, 0x36EA_8C1F_14E2_AF5C),
        (-700.5, 0x00C4_FF47_5C68_CA02),
    ];
    for (x, bits) in expected {
        assert_eq!(exp_of_negative(x).to_bits(), bits, "{x}");
    }
}

#[test]
fn exponential_at_the_edges() {
    assert_eq!(exp_of_negative(0.0), 1.0);
    assert_eq!(exp_of_negative(-0.0), 1.0);
    assert_eq!(exp_of_negative(-f64::MIN_POSITIVE), 1.0);
    assert_eq!(exp_of_negative(-5e-324), 1.0);
    assert!(exp_of_negative(-708.0) >= f64::MIN_POSITIVE);
    for x in [-708.000_000_1, -745.0, -746.0, -1e300, f64::MIN, f64::NEG_INFINITY] {
        assert_eq!(exp_of_negative(x), 0.0, "{x}");
    }
    assert!(exp_of_negative(f64::NAN).is_nan());
}

#[test]
fn exponential_never_falls_as_x_grows() {
    let mut last = 0.0;
    for i in (0..=1_000_000).rev() {
        let now = exp_of_negative(f64::from(i) * -7.08e-4);
        assert!(now >= last, "{i}");
        last = now;
    }
}

#[test]
fn sums_of_rows_of_any_length() {
    for len in [1, 7, 8, 9, 63, 64, 65, 127, 128, 200] {
        let row: Vec<f32> = (0..len).map(|i| (i * 37 % 101) as f32 * 0.25 - 9.0).collect();
        let wide: Vec<f64> = row.iter().map(|&z| f64::from(z)).collect();
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let beta = 0.7;
        let terms = || wide.iter().map(|z| z - f64::from(top)).map(|d| (d, libm::exp(beta * d)));
        let mass: f64 = terms().map(|(_, w)| w).sum();
        let mean = terms().map(|(d, w)| d * w).sum::<f64>() / mass;
        let variance = terms().map(|(d, w)| (d - mean) * (d - mean) * w).sum::<f64>() / mass;
        let found = RelativeRow::new(&row).moments(beta);
        assert!((found.mass / mass - 1.0).abs() < 1e-14 && found.mass == RelativeRow::new(&row).mass(beta));
        assert!((found.mean - mean).abs() < 1e-13 && (found.variance - variance).abs() < 1e-12, "{len}");
        assert_eq!(found, RelativeRow::new(&wide).moments(beta), "f64 rows of the same numbers");
        let mut probabilities = vec![0.0; row.len()];
        RelativeRow::new(&row).softmax_into(beta, &mut probabilities);
        for (p, (_, w)) in probabilities.iter().zip(terms()) {
            assert!((f64::from(*p) - w / mass).abs() < 1e-7);
        }
    }
    assert_eq!(RelativeRow::<f32>::new(&[]).mass(1.0), 0.0);
}

#[test]
fn negative_log_likelihood_needs_no_floor() {
    let z = [1.0_f32, 2.0, 0.5];
    let sum: f64 = z.iter().map(|&z| libm::exp(f64::from(z) / 2.0)).sum();
    assert!((negative_log_likelihood(&z, 2, 2.0) - (libm::log(sum) - 0.25)).abs() < 1e-14);
    assert_eq!(negative_log_likelihood(&[0.0_f32, 1e30], 0, 1.0), f64::from(1e30_f32));
    assert_eq!(negative_log_likelihood(&[f64::MIN, f64::MAX], 1, 1.0), 0.0);
    assert_eq!(negative_log_likelihood::<f32>(&[], 0, 1.0), 0.0);
}
