//! The encoding of messages between processes: lists of numbers, little-endian, each preceded by its length.

use crate::trainer::error::TrainError;

/// A writer of a message.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

/// A reader of a message.
#[derive(Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

/// A number with a fixed encoded length.
pub(crate) trait WireNumber: Copy {
    fn write(self, to: &mut Vec<u8>);

    fn read(bytes: &[u8], to: &mut Vec<Self>);

    const BYTES: usize;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl WireNumber for $number {
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

numbers!(u8, u32, u64, f32, f64);

impl Encoder {
    pub(crate) fn add<T: WireNumber>(&mut self, list: &[T]) {
        self.0.extend_from_slice(&(list.len() as u64).to_le_bytes());
        for number in list {
            number.write(&mut self.0);
        }
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads the next list and appends it to `to`.
    pub(crate) fn read<T: WireNumber>(&mut self, to: &mut Vec<T>) -> Result<(), TrainError> {
        let (length, rest) = self.0.split_first_chunk().ok_or(TrainError::UnreadableMessage(None))?;
        let bytes = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|n| n.checked_mul(T::BYTES));
        let list = bytes.and_then(|bytes| rest.split_at_checked(bytes));
        let (list, rest) = list.ok_or(TrainError::UnreadableMessage(None))?;
        T::read(list, to);
        self.0 = rest;
        Ok(())
    }

    pub(crate) fn list<T: WireNumber>(&mut self) -> Result<Vec<T>, TrainError> {
        let mut list = Vec::new();
        self.read(&mut list)?;
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        let mut encoder = Encoder::default();
        encoder.add(&[1_u64, u64::MAX]);
        encoder.add::<f32>(&[]);
        encoder.add(&[0.5_f32]);
        encoder.add(&[7_u32]);
        let bytes = encoder.bytes();
        let mut read = Decoder::new(&bytes);
        let (mut ids, mut numbers, mut labels) = (vec![9], vec![], vec![]);
        read.read(&mut ids).unwrap();
        read.read(&mut numbers).unwrap();
        read.read(&mut numbers).unwrap();
        read.read(&mut labels).unwrap();
        assert_eq!((ids, numbers, labels), (vec![9, 1, u64::MAX], vec![0.5_f32], vec![7_u32]));
        assert!(read.read(&mut Vec::<u32>::new()).is_err());
        for cut in 1..bytes.len() {
            let mut cut = Decoder::new(&bytes[..cut]);
            let lists = [
                cut.read::<u64>(&mut vec![]),
                cut.read::<f32>(&mut vec![]),
                cut.read::<f32>(&mut vec![]),
                cut.read::<u32>(&mut vec![]),
            ];
            assert!(lists.iter().any(Result::is_err));
        }
        assert!(Decoder::new(&[255; 16]).read::<u64>(&mut vec![]).is_err());
    }
}
