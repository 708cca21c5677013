//! Operations of libtorch with a scalar argument, made to fail with an error instead of a panic.
//!
//! tch drops the temporary `Scalar` of such a call before it reads libtorch's error, and that drop panics because of the error:
//! when memory runs out, the process would end without saving anything.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tch::TchError;

/// The file of tch whose panics the engine turns into errors, as named in the panic's location.
pub const PANICKING_FILE: &str = "src/wrappers/scalar.rs";

/// Runs an operation with a scalar among its arguments.
pub(crate) fn guarded<T>(operation: impl FnOnce() -> Result<T, TchError>) -> Result<T, TchError> {
    // Unwind safety: every caller returns the error, so a half-finished result is never used.
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().and_then(|text| text.split_once("Torch(\""));
        match message {
            // Take the text between the quotes of the `Debug` output.
            Some((_, text)) => Err(TchError::Torch(text.trim_end_matches("\")").replace("\\n", "\n"))),
            None => resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use tch::{Kind, Tensor};

    use super::*;

    #[test]
    fn failure_with_a_scalar_is_an_error() {
        let mut whole = Tensor::f_ones([2], (Kind::Int, tch::Device::Cpu)).expect("a tensor");
        // Half of an integer does not fit in place.
        let error = guarded(|| whole.f_mul_scalar_(0.5).map(|_| ())).expect_err("an error of libtorch");
        assert!(error.to_string().contains("can't be cast"), "{error}");
        assert_eq!(whole.f_sum(Kind::Int).and_then(|sum| sum.f_int64_value(&[])).ok(), Some(2));
    }

    #[test]
    #[should_panic(expected = "of our own")]
    fn other_panics_go_on() {
        let _ = guarded(|| -> Result<(), TchError> { panic!("of our own") });
    }
}
