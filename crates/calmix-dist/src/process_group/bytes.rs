//! Collectives on bytes. If lengths may differ, the processes exchange them first.

use tch::{Device, Kind, Tensor};

use super::ProcessGroup;
use crate::error::{DistError, Operation};

impl ProcessGroup {
    /// All-gathers one message from every rank, in order of rank. The messages may differ in length.
    pub fn all_gather_bytes(&self, local: &[u8]) -> Result<Vec<Vec<u8>>, DistError> {
        let copies = vec![local; self.size];
        self.exchange(Operation::AllGatherBytes, &copies)
    }

    /// All-gathers one message from every rank, in order of rank. All messages have the same length, so this takes one
    /// collective; for messages of every step.
    ///
    /// # Errors
    ///
    /// If a process is missing, or sends another length.
    pub fn all_gather_fixed(&self, local: &[u8]) -> Result<Vec<Vec<u8>>, DistError> {
        if self.size == 1 {
            return Ok(vec![local.to_vec()]);
        }
        let gathered = self.all_gather(&Tensor::f_from_slice(local)?)?;
        gathered.iter().map(|bytes| Ok(Vec::try_from(bytes)?)).collect()
    }

    /// Sends each rank its piece of `send` and receives one piece from each, both in order of rank. Sender and receiver know the
    /// lengths, so this takes one collective.
    ///
    /// # Errors
    ///
    /// If the lengths do not match `send`, or a process is missing.
    pub fn all_to_all_known(
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

    /// Gathers one message from every rank, in order of rank, on rank `to`. The other ranks receive an empty list.
    pub fn gather_bytes(&self, to: usize, local: Vec<u8>) -> Result<Vec<Vec<u8>>, DistError> {
        let mut messages = vec![Vec::new(); self.size];
        if let Some(message) = messages.get_mut(to) {
            *message = local;
        }
        let received = self.all_to_all_bytes(&messages)?;
        Ok(if self.rank == to { received } else { Vec::new() })
    }

    /// Sends one message to each rank and receives one from each, both in order of rank. The messages may differ in length.
    ///
    /// # Errors
    ///
    /// If there is not one message for each rank, or a process is missing.
    pub fn all_to_all_bytes(&self, to: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, DistError> {
        if to.len() != self.size {
            let what = format!("there are {} messages for {} ranks", to.len(), self.size);
            return Err(self.argument(Operation::AllToAllBytes, what));
        }
        let messages: Vec<&[u8]> = to.iter().map(Vec::as_slice).collect();
        self.exchange(Operation::AllToAllBytes, &messages)
    }

    fn exchange(&self, operation: Operation, to: &[&[u8]]) -> Result<Vec<Vec<u8>>, DistError> {
        if self.size == 1 {
            return Ok(to.iter().map(|message| message.to_vec()).collect());
        }
        let (ones, lengths) = (vec![1; self.size], to.iter().map(|m| m.len() as i64).collect::<Vec<_>>());
        let announced = self.all_to_all_as(operation, &Tensor::f_from_slice(&lengths)?, &ones, &ones)?;
        let expected = Vec::<i64>::try_from(&announced)?;
        let send = Tensor::f_from_slice(&to.concat())?;
        let received = Vec::<u8>::try_from(&self.all_to_all_as(operation, &send, &lengths, &expected)?)?;
        let mut rest = received.as_slice();
        let pieces = expected.iter().map(|length| {
            let (piece, after) = rest.split_at_checked(usize::try_from(*length).ok()?)?;
            rest = after;
            Some(piece.to_vec())
        });
        // This cannot fail: `all_to_all_as` refuses negative lengths and returns a tensor as long as their sum.
        Ok(pieces.map(Option::unwrap_or_default).collect())
    }

    /// Broadcasts the bytes of rank `from`. `local` is ignored on the other ranks.
    ///
    /// # Errors
    ///
    /// If there is no such rank, or a process is missing.
    pub fn broadcast_bytes(&self, from: usize, local: &[u8]) -> Result<Vec<u8>, DistError> {
        let mut length = Tensor::f_from_slice(&[local.len() as i64])?;
        self.broadcast(from, &mut length)?;
        if self.rank == from {
            self.broadcast(from, &mut Tensor::f_from_slice(local)?)?;
            return Ok(local.to_vec());
        }
        let length = length.f_int64_value(&[0])?;
        if length < 0 {
            return Err(
                self.argument(Operation::BroadcastBytes, format!("rank {from} announces {length} bytes"))
            );
        }
        let mut bytes = Tensor::f_zeros([length], (Kind::Uint8, Device::Cpu))?;
        self.broadcast(from, &mut bytes)?;
        Ok(Vec::<u8>::try_from(&bytes)?)
    }
}
