//! The bytes of payload that a rank sends in a collective, by the algorithms of Gloo and NCCL.
//!
//! For statistics; headers and retransmissions are not included.

/// Returns the bytes of a ring all-reduce: every rank sends all but one of `size` chunks twice.
pub fn all_reduce(bytes: u64, size: u64) -> u64 {
    2 * bytes * size.saturating_sub(1) / size.max(1)
}

/// Returns the bytes of a ring all-gather: every rank sends its own bytes, and forwards those of all but one other rank.
pub fn all_gather(local: u64, size: u64) -> u64 {
    local * size.saturating_sub(1)
}

/// Returns the bytes of an all-to-all: every rank sends all pieces but its own.
pub fn all_to_all(send: &[u64], rank: usize) -> u64 {
    send.iter().enumerate().filter(|(to, _)| *to != rank).map(|(_, bytes)| bytes).sum()
}

/// Returns the bytes of a broadcast along a binomial tree: in round i, every rank that has the bytes sends them 2ⁱ ranks further.
pub fn broadcast(bytes: u64, rank: u64, from: u64, size: u64) -> u64 {
    let place = (rank + size - from % size.max(1)) % size.max(1);
    let children = (0..u64::BITS).map(|round| 1_u64 << round).take_while(|reach| *reach < size);
    bytes * children.filter(|reach| place < *reach && place + reach < size).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_process_sends_nothing() {
        assert_eq!([all_reduce(8, 1), all_gather(8, 1), all_to_all(&[8], 0), broadcast(8, 0, 0, 1)], [0; 4]);
    }

    #[test]
    fn a_ring_costs_what_a_reduce_scatter_and_a_gather_cost() {
        for size in 2..9 {
            let chunk = 840 / size;
            assert_eq!(
                all_reduce(840, size),
                all_to_all(&vec![chunk; size as usize], 0) + all_gather(chunk, size)
            );
        }
    }

    #[test]
    fn broadcast_reaches_every_rank_once() {
        for size in 1..20 {
            for from in 0..size {
                let sent: u64 = (0..size).map(|rank| broadcast(1, rank, from, size)).sum();
                assert_eq!(sent, size - 1, "{size} processes from {from}");
            }
        }
    }
}
