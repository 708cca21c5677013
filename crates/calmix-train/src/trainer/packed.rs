//! Lists of numbers, packed into one message: each with its length, little-endian.

use calmix_core::samples::StateError;

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Packed(Vec<u8>);

/// A message that is being read.
#[derive(Debug)]
pub(super) struct Unpacked<'a>(&'a [u8]);

/// A number of a fixed length.
pub(super) trait Number: Copy {
    /// Appends its bytes.
    fn write(self, to: &mut Vec<u8>);

    /// Reads whole numbers.
    fn read(bytes: &[u8], to: &mut Vec<Self>);

    const BYTES: usize;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            fn write(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8], to: &mut Vec<Self>) {
                to.extend(bytes.as_chunks().0.iter().map(|chunk| Self::from_le_bytes(*chunk)));
            }

            const BYTES: usize = size_of::<$number>();
        }
    )*};
}

numbers!(u32, u64, f32);

impl Packed {
    /// Adds a list.
    pub(super) fn add<T: Number>(&mut self, list: &[T]) {
        self.0.extend_from_slice(&(list.len() as u64).to_le_bytes());
        for number in list {
            number.write(&mut self.0);
        }
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

impl<'a> Unpacked<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads the next list, behind what is there.
    pub(super) fn read<T: Number>(&mut self, to: &mut Vec<T>) -> Result<(), StateError> {
        let short = StateError::Damaged { what: "a message that is too short" };
        let Some((length, rest)) = self.0.split_first_chunk() else { return Err(short) };
        let bytes = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|n| n.checked_mul(T::BYTES));
        let Some((list, rest)) = bytes.and_then(|bytes| rest.split_at_checked(bytes)) else {
            return Err(short);
        };
        T::read(list, to);
        self.0 = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut packed = Packed::default();
        packed.add(&[1_u64, u64::MAX]);
        packed.add::<f32>(&[]);
        packed.add(&[0.5_f32]);
        packed.add(&[7_u32]);
        let bytes = packed.bytes();
        let mut read = Unpacked::new(&bytes);
        let (mut ids, mut numbers, mut labels) = (vec![9], vec![], vec![]);
        read.read(&mut ids).unwrap();
        read.read(&mut numbers).unwrap();
        read.read(&mut numbers).unwrap();
        read.read(&mut labels).unwrap();
        assert_eq!((ids, numbers, labels), (vec![9, 1, u64::MAX], vec![0.5], vec![7_u32]));
        assert!(read.read(&mut Vec::<u32>::new()).is_err());
        for cut in 1..bytes.len() {
            let mut cut = Unpacked::new(&bytes[..cut]);
            let lists = [
                cut.read::<u64>(&mut vec![]),
                cut.read::<f32>(&mut vec![]),
                cut.read::<f32>(&mut vec![]),
                cut.read::<u32>(&mut vec![]),
            ];
            assert!(lists.iter().any(Result::is_err));
        }
        assert!(Unpacked::new(&[255; 16]).read::<u64>(&mut vec![]).is_err());
    }
}
