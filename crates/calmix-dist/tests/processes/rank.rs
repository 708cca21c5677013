//! The tasks of a rank, as the tests assign them.

use std::time::{Duration, Instant};

use calmix_dist::tree::held;
use calmix_dist::{DistError, LaunchInfo, ProcessGroup};
use tch::{Device, Kind, Tensor};

use super::crew::now;

/// Run by the tests as a process of its own, with a task in the environment.
#[test]
#[ignore = "a rank of another test"]
fn entry() {
    let Ok(task) = std::env::var("CALMIX_TASK") else { return };
    let mut words = task.split_whitespace();
    let (name, mut numbers) = (words.next().unwrap(), words.map(|word| word.parse::<usize>().unwrap()));
    let mut number = || numbers.next().unwrap();
    match name {
        "operations" => say(&every_operation(&connect().unwrap())),
        "sum" => say(&sum(&connect().unwrap(), number(), number() as i64)),
        "all-reduce" => say(&all_reduce(&connect().unwrap(), number(), number() as i64)),
        "loop" => forever(&connect().unwrap()),
        "busy" => busy(&connect().unwrap(), number(), number()),
        "abort" => abort(&connect().unwrap(), number()),
        "connect" => match connect() {
            Ok(_) => say("connected"),
            Err(error) => tell(&error, 0.0),
        },
        "again" => again(&connect().unwrap()),
        "pace" => say(&pace(&connect().unwrap(), number() as i64)),
        _ => panic!("no such task: {task}"),
    }
}

fn say(line: &str) {
    println!("@ {line}");
}

fn connect() -> Result<ProcessGroup, DistError> {
    let timeout = Duration::from_millis(std::env::var("CALMIX_TIMEOUT_MS").unwrap().parse().unwrap());
    let variable = |name: &str| std::env::var(name).ok();
    let launch = LaunchInfo::from_environment(variable).unwrap().unwrap();
    ProcessGroup::connect(&launch, Device::Cpu, timeout)
}

/// Runs every operation once and checks its result.
fn every_operation(group: &ProcessGroup) -> String {
    let (rank, size) = (group.rank() as i64, group.size() as i64);
    let floats = |tensor: &Tensor| Vec::<f32>::try_from(tensor.reshape([-1])).unwrap();

    let mut tensor = Tensor::from_slice(&[rank as f32, 1.0, 2.0, 3.0, 4.0, 5.0]).reshape([2, 3]);
    group.all_reduce_sum(&mut tensor).unwrap();
    let n = size as f32;
    let sum = (0..size).sum::<i64>() as f32;
    assert_eq!(floats(&tensor), [sum, n, 2.0 * n, 3.0 * n, 4.0 * n, 5.0 * n]);
    // A view with gaps: only what is seen through it changes.
    let whole = Tensor::ones([2, 3], (Kind::Float, Device::Cpu));
    group.all_reduce_sum(&mut whole.slice(1, 0, 2, 1)).unwrap();
    assert_eq!(floats(&whole), [n, n, 1.0, n, n, 1.0]);

    for from in 0..size {
        let bytes = vec![rank as u8; rank as usize];
        assert_eq!(group.broadcast_bytes(from as usize, &bytes).unwrap(), vec![from as u8; from as usize]);
    }

    let all = group.all_gather(&Tensor::from_slice(&[rank as f32, 0.5]).reshape([1, 2])).unwrap();
    assert!(all.iter().all(|tensor| tensor.size() == [1, 2]));
    assert_eq!(
        all.iter().map(&floats).collect::<Vec<_>>(),
        (0..size).map(|r| [r as f32, 0.5]).collect::<Vec<_>>()
    );

    // Rank a sends b numbers 10·a + b to rank b, so nothing to rank 0.
    let send: Vec<f64> = (0..size).flat_map(|to| vec![(10 * rank + to) as f64; to as usize]).collect();
    let counts: Vec<i64> = (0..size).collect();
    let received = group.all_to_all(&Tensor::from_slice(&send), &counts, &vec![rank; size as usize]).unwrap();
    let expected: Vec<f64> =
        (0..size).flat_map(|from| vec![(10 * from + rank) as f64; rank as usize]).collect();
    assert_eq!(Vec::<f64>::try_from(received).unwrap(), expected);

    let long = |rank: i64| vec![rank as u8; (rank * 1000) as usize];
    assert_eq!(group.all_gather_bytes(&long(rank)).unwrap(), (0..size).map(long).collect::<Vec<_>>());
    assert_eq!(group.all_gather_bytes(&[]).unwrap(), vec![Vec::<u8>::new(); size as usize]);
    let message = |from: i64, to: i64| vec![from as u8; (3 * to + from) as usize];
    let to: Vec<Vec<u8>> = (0..size).map(|to| message(rank, to)).collect();
    assert_eq!(
        group.all_to_all_bytes(&to).unwrap(),
        (0..size).map(|from| message(from, rank)).collect::<Vec<_>>()
    );

    subgroups(group);
    refusals(group);
    group.barrier().unwrap();
    format!("done, {} bytes", group.sent())
}

/// Subgroups of half the ranks and of a single rank, at the same time.
fn subgroups(group: &ProcessGroup) {
    let (rank, size) = (group.rank(), group.size());
    let middle = size / 2;
    let halves = [0..middle, middle..size];
    let mut mine = 0;
    for half in halves.into_iter().filter(|half| !half.is_empty()) {
        let Some(subgroup) = group.subgroup("half", half.clone()).unwrap() else { continue };
        mine += 1;
        assert_eq!((subgroup.rank(), subgroup.size()), (rank - half.start, half.len()));
        let mut tensor = Tensor::from_slice(&[rank as i64]);
        subgroup.all_reduce_sum(&mut tensor).unwrap();
        assert_eq!(tensor.int64_value(&[0]), half.sum::<usize>() as i64);
    }
    assert_eq!(mine, 1);
    let own = group.subgroup("own", rank..rank + 1).unwrap().unwrap();
    assert_eq!((own.rank(), own.size(), own.sent()), (0, 1, group.sent()));
}

/// Invalid arguments are refused before anything is sent, so the group stays usable.
fn refusals(group: &ProcessGroup) {
    let size = group.size();
    let refused = |outcome: Result<(), DistError>| {
        assert!(matches!(outcome, Err(DistError::Argument { .. })), "{outcome:?}");
    };
    let (two, ones) = (Tensor::from_slice(&[1.0_f32, 2.0]), vec![1_i64; size]);
    refused(group.broadcast_bytes(size, &[]).map(drop));
    refused(group.all_to_all(&two.reshape([1, 2]), &ones, &ones).map(drop));
    refused(group.all_to_all(&two, &[1], &[]).map(drop));
    refused(group.all_to_all_bytes(&vec![vec![]; size + 1]).map(drop));
    refused(group.tree_sum(0, vec![]).map(drop));
    refused(group.tree_sum(size, vec![]).map(drop));
    refused(group.tree_sum(size, vec![two.copy(), two.copy()]).map(drop));
    refused(group.tree_sum(2 * size, vec![two.copy(), two.reshape([2, 1])]).map(drop));
    refused(group.subgroup("none", 0..0).map(drop));
    refused(group.subgroup("many", 0..size + 1).map(drop));
}

/// A sum over terms whose bits depend on the order; returns a hash of its bits, and the bytes that this rank sent for
/// it.
fn sum(group: &ProcessGroup, terms: usize, length: i64) -> String {
    let before = group.sent();
    let sum = group.tree_sum(terms, terms_of_rank(group, terms, length)).unwrap();
    assert_eq!(sum.size(), [length]);
    let sent = group.sent() - before;
    group.barrier().unwrap();
    format!("{:x} {sent}", hash_of(&sum))
}

/// The same sum by all-reduce, which is near that along the tree; returns the same.
fn all_reduce(group: &ProcessGroup, terms: usize, length: i64) -> String {
    let mut sums = group.begin_sum(terms);
    for term in terms_of_rank(group, terms, length) {
        group.add_to_sum(&mut sums, term).unwrap();
    }
    let before = group.sent();
    let sum = group.all_reduce_sums(sums).unwrap();
    let sent = group.sent() - before;
    let tree = group.tree_sum(terms, terms_of_rank(group, terms, length)).unwrap();
    assert!(sum.allclose(&tree, 1e-5, 1e-4, false));
    let missing = group.begin_sum(terms);
    assert!(matches!(group.all_reduce_sums(missing), Err(DistError::Argument { .. })));
    group.barrier().unwrap();
    format!("{:x} {sent}", hash_of(&sum))
}

/// The terms of this rank, whose sum has other bits in another order.
fn terms_of_rank(group: &ProcessGroup, terms: usize, length: i64) -> Vec<Tensor> {
    let at: Vec<f32> = (0..length).map(|at| at as f32).collect();
    let term = |term: usize| {
        (Tensor::from_slice(&at) * (term as f64 + 0.7)).sin() * 10_f64.powi(term as i32 % 5 - 2)
    };
    held(terms, group.rank(), group.size()).map(term).collect()
}

fn hash_of(sum: &Tensor) -> u64 {
    let bits = Vec::<f32>::try_from(sum).unwrap();
    bits.iter().fold(0, |mixed, x| (mixed ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3))
}

/// Runs all-reduces until one fails.
fn forever(group: &ProcessGroup) {
    let mut tensor = Tensor::ones([100_000], (Kind::Float, Device::Cpu));
    for turn in 0.. {
        let began = Instant::now();
        if let Err(error) = group.all_reduce_sum(&mut tensor) {
            end(group, &error, began);
            return;
        }
        if turn == 3 {
            say("going");
        }
    }
}

/// Rank `busy` computes for the given milliseconds while the others wait for it.
fn busy(group: &ProcessGroup, busy: usize, milliseconds: usize) {
    group.barrier().unwrap();
    say("going");
    if group.rank() == busy {
        std::thread::sleep(Duration::from_millis(milliseconds as u64));
    }
    let began = Instant::now();
    let error = group.barrier().expect_err("a rank is killed");
    end(group, &error, began);
}

fn abort(group: &ProcessGroup, who: usize) {
    group.barrier().unwrap();
    if group.rank() == who {
        say("going");
        group.abort();
        assert!(matches!(group.barrier(), Err(DistError::Broken { .. })));
        say("gave up");
        // Stays alive, like a process that is still saving its state.
        std::thread::sleep(Duration::from_secs(2));
        return;
    }
    let began = Instant::now();
    let error = group.all_gather_bytes(b"never").expect_err("a rank gives up");
    end(group, &error, began);
}

/// Dies at the first attempt.
fn again(group: &ProcessGroup) {
    if std::env::var("TORCHELASTIC_RESTART_COUNT").unwrap() == "0" {
        say("first");
        group.barrier().unwrap();
        assert_ne!(group.rank(), 1, "on purpose");
        group.barrier().expect_err("rank 1 has died");
        panic!("on purpose");
    }
    say(&every_operation(group));
}

/// Prints a failure, and checks that further operations are refused.
fn end(group: &ProcessGroup, error: &DistError, began: Instant) {
    let took = began.elapsed().as_secs_f64();
    assert!(matches!(group.barrier(), Err(DistError::Broken { .. })));
    assert!(matches!(group.subgroup("late", 0..2), Err(DistError::Broken { .. }) | Ok(None)));
    tell(error, took);
}

fn tell(error: &DistError, took: f64) {
    let missing = match error {
        DistError::Failed(failure) => format!("{:?}", failure.missing),
        _ => String::new(),
    };
    say(&format!("{}|{took}|{missing}|{error}", now()));
}

/// Milliseconds of the median turn.
fn pace(group: &ProcessGroup, length: i64) -> String {
    let tensor = || Tensor::ones([length], (Kind::Float, Device::Cpu));
    let median = |action: &dyn Fn()| {
        let mut times: Vec<f64> = (0..15)
            .map(|_| {
                group.barrier().unwrap();
                let began = Instant::now();
                action();
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[7]
    };
    let ring = median(&|| group.all_reduce_sum(&mut tensor()).unwrap());
    let tree = median(&|| drop(group.tree_sum(group.size(), vec![tensor()]).unwrap()));
    format!("{length} numbers, {} processes: all-reduce {ring:.2} ms, tree {tree:.2} ms", group.size())
}
