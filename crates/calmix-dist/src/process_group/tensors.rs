//! Collectives on tensors.

use tch::Tensor;

use super::{ProcessGroup, bytes_of};
use crate::error::{DistError, Operation};
use crate::traffic;

impl ProcessGroup {
    /// All-reduces the sum over all ranks, in place.
    ///
    /// All tensors have the same shape and kind. The order of addition depends on the number of processes;
    /// [`ProcessGroup::tree_sum`] has a fixed one.
    ///
    /// # Errors
    ///
    /// If a process is missing; the contents of `tensor` are then undefined.
    pub fn all_reduce_sum(&self, tensor: &mut Tensor) -> Result<(), DistError> {
        let (bytes, device) = (bytes_of(tensor, tensor.numel() as i64), tensor.device());
        let sent = traffic::all_reduce(bytes, self.size as u64);
        self.in_place(tensor, |whole| {
            self.run(Operation::AllReduce, sent, Some(device), |group, stop| group.all_reduce(whole, stop))
        })
    }

    /// Broadcasts the tensor of rank `from`, in place. All tensors have the same shape and kind.
    pub(super) fn broadcast(&self, from: usize, tensor: &mut Tensor) -> Result<(), DistError> {
        let operation = Operation::BroadcastBytes;
        if from >= self.size {
            return Err(self.argument(operation, format!("there is no rank {from} among {}", self.size)));
        }
        let (bytes, device) = (bytes_of(tensor, tensor.numel() as i64), tensor.device());
        let sent = traffic::broadcast(bytes, self.rank as u64, from as u64, self.size as u64);
        self.in_place(tensor, |whole| {
            self.run(operation, sent, Some(device), |group, stop| group.broadcast(from, whole, stop))
        })
    }

    /// All-gathers the tensors of all ranks, in order of rank. All have the same shape and kind.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Vec<Tensor>, DistError> {
        let (each, shape) = (tensor.numel() as i64, tensor.size());
        let local = tensor.f_detach()?.f_reshape([-1])?.f_contiguous()?;
        if self.size == 1 || each == 0 {
            return (0..self.size).map(|_| Ok(local.f_reshape(&*shape)?)).collect();
        }
        let mut whole = Tensor::f_empty([each * self.size as i64], (tensor.kind(), tensor.device()))?;
        let sent = traffic::all_gather(bytes_of(tensor, each), self.size as u64);
        self.run(Operation::AllGather, sent, Some(tensor.device()), |group, stop| {
            group.all_gather(&mut whole, &local, stop)
        })?;
        (0..self.size as i64)
            .map(|rank| Ok(whole.f_narrow(0, rank * each, each)?.f_reshape(&*shape)?))
            .collect()
    }

    /// Sends each rank its piece of `send` and receives one piece from each, both in order of rank.
    ///
    /// A piece must have the length that its receiver expects.
    ///
    /// # Errors
    ///
    /// If the lengths do not match `send`, or a process is missing.
    pub fn all_to_all(
        &self,
        send: &Tensor,
        send_counts: &[i64],
        receive_counts: &[i64],
    ) -> Result<Tensor, DistError> {
        self.all_to_all_as(Operation::AllToAll, send, send_counts, receive_counts)
    }

    pub(super) fn all_to_all_as(
        &self,
        operation: Operation,
        send: &Tensor,
        send_counts: &[i64],
        receive_counts: &[i64],
    ) -> Result<Tensor, DistError> {
        let received = self.total(operation, receive_counts)?;
        let mut output = Tensor::f_empty([received], (send.kind(), send.device()))?;
        self.all_to_all_into(operation, &mut output, send, send_counts, receive_counts)?;
        Ok(output)
    }

    /// Exchanges pieces as [`all_to_all`](Self::all_to_all) does, into an existing, contiguous vector.
    pub(super) fn all_to_all_into(
        &self,
        operation: Operation,
        output: &mut Tensor,
        send: &Tensor,
        send_counts: &[i64],
        receive_counts: &[i64],
    ) -> Result<(), DistError> {
        for (tensor, counts) in [(send, send_counts), (&*output, receive_counts)] {
            let (size, total) = (tensor.size(), self.total(operation, counts)?);
            if *size != [total] {
                let what = format!("a tensor of shape {size:?} cannot be divided into pieces of {counts:?}");
                return Err(self.argument(operation, what));
            }
        }
        if self.size == 1 {
            output.f_copy_(&send.f_detach()?)?;
            return Ok(());
        }
        let send_all = send.f_detach()?.f_contiguous()?;
        let pieces: Vec<u64> = send_counts.iter().map(|count| bytes_of(send, *count)).collect();
        let sent = traffic::all_to_all(&pieces, self.rank);
        self.run(operation, sent, Some(send.device()), |group, stop| {
            group.all_to_all(output, &send_all, receive_counts, send_counts, stop)
        })
    }

    /// Returns the total length of the pieces, one for each rank.
    fn total(&self, operation: Operation, counts: &[i64]) -> Result<i64, DistError> {
        let sum = counts.iter().try_fold(0_i64, |sum, count| sum.checked_add(*count));
        sum.filter(|_| counts.len() == self.size && counts.iter().all(|count| *count >= 0)).ok_or_else(|| {
            self.argument(operation, format!("{counts:?} are not valid lengths for {} ranks", self.size))
        })
    }

    /// Runs an operation on a contiguous tensor, as c10d requires; other tensors are copied there and back.
    fn in_place(
        &self,
        tensor: &mut Tensor,
        action: impl FnOnce(&mut Tensor) -> Result<(), DistError>,
    ) -> Result<(), DistError> {
        if self.size == 1 || tensor.numel() == 0 {
            return Ok(());
        }
        let mut detached = tensor.f_detach()?;
        if detached.is_contiguous() {
            return action(&mut detached);
        }
        let mut whole = detached.f_contiguous()?;
        action(&mut whole)?;
        detached.f_copy_(&whole)?;
        Ok(())
    }
}
