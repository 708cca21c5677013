//! Matrix products, single-threaded: the same bits on every processor with fused multiply-add, however many threads call it.
//!
//! `matrixmultiply` chooses its kernel at run time. All its kernels add the terms of a product in the same order and blocks, so
//! only a processor without fused multiply-add rounds otherwise (docs/concepts/reproducibility.md, "Platforms").

/// A slice as a matrix, or as its transpose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand<'a, T> {
    numbers: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> Operand<'a, T> {
    /// Views `rows` rows of `columns` numbers, one row after the other.
    pub(crate) fn new(numbers: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(numbers.len(), rows * columns, "a matrix of {rows} rows and {columns} columns");
        Self { numbers, rows, columns, row_stride: columns, column_stride: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// An element type with a matrix product.
pub(crate) trait Gemm: Copy {
    /// Computes `into = a·b + keep·into`. If `keep` is zero, `into` is only written.
    fn multiply(a: Operand<'_, Self>, b: Operand<'_, Self>, keep: Self, into: &mut [Self]);
}

macro_rules! gemm {
    ($scalar:ty, $gemm:path) => {
        impl Gemm for $scalar {
            fn multiply(a: Operand<'_, Self>, b: Operand<'_, Self>, keep: Self, into: &mut [Self]) {
                assert_eq!(a.columns, b.rows, "factors that fit");
                assert_eq!(into.len(), a.rows * b.columns, "a product that fits");
                // SAFETY: `Operand::new` checks that a slice has exactly `rows · columns` numbers, and transposing only
                // swaps the strides, so every place that strides and sizes name is within the slice. The product is
                // dense and was checked above. It is borrowed mutably, so no factor overlaps it.
                #[allow(unsafe_code)]
                unsafe {
                    $gemm(
                        a.rows,
                        a.columns,
                        b.columns,
                        1.0,
                        a.numbers.as_ptr(),
                        a.row_stride.cast_signed(),
                        a.column_stride.cast_signed(),
                        b.numbers.as_ptr(),
                        b.row_stride.cast_signed(),
                        b.column_stride.cast_signed(),
                        keep,
                        into.as_mut_ptr(),
                        b.columns.cast_signed(),
                        1,
                    );
                }
            }
        }
    };
}

gemm!(f32, matrixmultiply::sgemm);
gemm!(f64, matrixmultiply::dgemm);

/// Computes `into = a·b + keep·into`.
pub(crate) fn multiply<T: Gemm>(a: Operand<'_, T>, b: Operand<'_, T>, keep: T, into: &mut [T]) {
    T::multiply(a, b, keep, into);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_follow_the_definition() {
        let a: Vec<f32> = (0..6).map(|n| n as f32).collect();
        let b: Vec<f32> = (0..12).map(|n| (n as f32) * 0.5 - 2.0).collect();
        let mut c = vec![f32::NAN; 8];
        multiply(Operand::new(&a, 2, 3), Operand::new(&b, 3, 4), 0.0, &mut c);
        for row in 0..2 {
            for column in 0..4 {
                let expected: f32 = (0..3).map(|k| a[row * 3 + k] * b[k * 4 + column]).sum();
                assert!((c[row * 4 + column] - expected).abs() < 1e-6);
            }
        }
        let mut gram = vec![1.0_f64; 9];
        let a: Vec<f64> = a.into_iter().map(f64::from).collect();
        multiply(Operand::new(&a, 2, 3).transposed(), Operand::new(&a, 2, 3), 1.0, &mut gram);
        assert_eq!(gram[0], 1.0 + 9.0);
        assert_eq!(gram[5], 1.0 + 2.0 + 20.0);
    }

    #[test]
    fn a_row_of_a_product_does_not_depend_on_the_others() {
        let (width, to) = (300, 10);
        let number = |n: usize| ((n * 7_919) % 1_000) as f32 / 500.0 - 1.0;
        let rows: Vec<f32> = (0..67 * width).map(number).collect();
        let weights: Vec<f32> = (0..to * width).map(|n| number(n + 13)).collect();
        let weights = Operand::new(&weights, to, width).transposed();
        let mut all = vec![0.0; 67 * to];
        multiply(Operand::new(&rows, 67, width), weights, 0.0, &mut all);
        for row in [0, 1, 8, 66] {
            let mut alone = vec![0.0; to];
            multiply(Operand::new(&rows[row * width..(row + 1) * width], 1, width), weights, 0.0, &mut alone);
            assert_eq!(alone, all[row * to..(row + 1) * to], "{row}");
        }
    }
}
