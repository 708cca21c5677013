//! Operations on bytes: lengths are told first, so that nobody has to know them.

use tch::{Device, Kind, Tensor};

use super::Processes;
use crate::error::{DistError, Operation};

impl Processes {
    /// What every process says, in order of rank; each may have another length.
    ///
    /// # Errors
    ///
    /// When a process is missing.
    pub fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, DistError> {
        let copies = vec![own; self.size];
        self.exchange(Operation::GatherBytes, &copies)
    }

    /// What every process says, in order of rank, where all say as many bytes: one collective, for what is said often.
    ///
    /// # Errors
    ///
    /// When a process is missing, or says more or less.
    pub fn gather_equal(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, DistError> {
        if self.size == 1 {
            return Ok(vec![own.to_vec()]);
        }
        let gathered = self.all_gather(&Tensor::f_from_slice(own)?)?;
        gathered.iter().map(|bytes| Ok(Vec::try_from(bytes)?)).collect()
    }

    /// Messages to and from all processes, one after the other in order of rank, whose lengths both sides know: one
    /// collective.
    ///
    /// # Errors
    ///
    /// When the lengths do not fit `send`, or when a process is missing.
    pub fn exchange_known(
        &self,
        send: &[u8],
        send_lengths: &[usize],
        receive_lengths: &[usize],
    ) -> Result<Vec<u8>, DistError> {
        let counts = |lengths: &[usize]| lengths.iter().map(|&length| length as i64).collect::<Vec<_>>();
        let send = Tensor::f_from_slice(send)?;
        let received = self.all_to_all(&send, &counts(send_lengths), &counts(receive_lengths))?;
        Ok(Vec::try_from(&received)?)
    }

    /// What every process says, in order of rank, to one of them; nothing to the others.
    ///
    /// # Errors
    ///
    /// When a process is missing.
    pub fn gather_bytes_to(&self, to: usize, own: Vec<u8>) -> Result<Vec<Vec<u8>>, DistError> {
        let mut messages = vec![Vec::new(); self.size];
        if let Some(message) = messages.get_mut(to) {
            *message = own;
        }
        let received = self.exchange_bytes(&messages)?;
        Ok(if self.rank == to { received } else { Vec::new() })
    }

    /// One message to each process, and one from each, both in order of rank. Only what is sent travels.
    ///
    /// # Errors
    ///
    /// When there is not one message for each process, or when a process is missing.
    pub fn exchange_bytes(&self, to: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, DistError> {
        if to.len() != self.size {
            let what = format!("there are {} messages for {} ranks", to.len(), self.size);
            return Err(self.argument(Operation::ExchangeBytes, what));
        }
        let messages: Vec<&[u8]> = to.iter().map(Vec::as_slice).collect();
        self.exchange(Operation::ExchangeBytes, &messages)
    }

    fn exchange(&self, operation: Operation, to: &[&[u8]]) -> Result<Vec<Vec<u8>>, DistError> {
        if self.size == 1 {
            return Ok(to.iter().map(|message| message.to_vec()).collect());
        }
        let (ones, lengths) = (vec![1; self.size], to.iter().map(|m| m.len() as i64).collect::<Vec<_>>());
        let told = self.all_to_all_as(operation, &Tensor::f_from_slice(&lengths)?, &ones, &ones)?;
        let expected = Vec::<i64>::try_from(&told)?;
        let send = Tensor::f_from_slice(&to.concat())?;
        let received = Vec::<u8>::try_from(&self.all_to_all_as(operation, &send, &lengths, &expected)?)?;
        let mut rest = received.as_slice();
        let pieces = expected.iter().map(|length| {
            let (piece, after) = rest.split_at_checked(usize::try_from(*length).ok()?)?;
            rest = after;
            Some(piece.to_vec())
        });
        // `all_to_all` has refused lengths that are negative, and made a tensor as long as all of them.
        Ok(pieces.map(Option::unwrap_or_default).collect())
    }

    /// What one process says, to all; the others' `own` is not looked at.
    ///
    /// # Errors
    ///
    /// When there is no such rank, or when a process is missing.
    pub fn broadcast_bytes(&self, from: usize, own: &[u8]) -> Result<Vec<u8>, DistError> {
        let operation = Operation::BroadcastBytes;
        let mut length = Tensor::f_from_slice(&[own.len() as i64])?;
        self.broadcast_as(operation, from, &mut length)?;
        if self.rank == from {
            self.broadcast_as(operation, from, &mut Tensor::f_from_slice(own)?)?;
            return Ok(own.to_vec());
        }
        let length = length.f_int64_value(&[0])?;
        if length < 0 {
            return Err(self.argument(operation, format!("rank {from} says that it has {length} bytes")));
        }
        let mut bytes = Tensor::f_zeros([length], (Kind::Uint8, Device::Cpu))?;
        self.broadcast_as(operation, from, &mut bytes)?;
        Ok(Vec::<u8>::try_from(&bytes)?)
    }
}
