use super::*;
use crate::LaunchInfo;
use crate::launch::{Launcher, StoreHost};

/// Three ranks in one process, connected.
fn three() -> [ProcessGroup; 3] {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = free.expect("a free port").port();
    let ranks = [0, 1, 2].map(|rank| {
        let launch = LaunchInfo {
            rank,
            world: 3,
            local_rank: rank,
            local_world: 3,
            master: ("127.0.0.1".into(), port),
            job: String::new(),
            store_host: StoreHost::FirstRank,
            launcher: Launcher::Variables,
        };
        std::thread::spawn(move || ProcessGroup::connect(&launch, Device::Cpu, Duration::from_mins(1)))
    });
    ranks.map(|rank| rank.join().expect("no panic").expect("connected"))
}

fn failed(group: &ProcessGroup) -> &AtomicBool {
    group.connection.as_ref().expect("connected").liveness.failed()
}

/// Ends a rank as the kernel ends a dead process: without a message, its connections close.
fn dies(group: ProcessGroup) {
    failed(&group).store(true, Ordering::Release);
    drop(group);
}

/// Whether a rank that calls no operation learns of a failure within this time.
fn told(group: &ProcessGroup, patience: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < patience {
        if failed(group).load(Ordering::Acquire) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// An operation of NCCL looks at nothing else while it waits.
#[test]
fn idle_ranks_are_notified_of_a_dead_process() {
    let [zero, one, two] = three();
    dies(one);
    let began = Instant::now();
    assert!(told(&zero, Duration::from_secs(5)) && told(&two, Duration::from_secs(5)));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let error = zero.barrier().expect_err("a rank is dead").to_string();
    assert!(error.contains("rank 1 does not respond"), "{error}");
    assert!(error.contains("first noticed by rank 0, which lost its connection"), "{error}");
}

#[test]
fn leaving_rank_is_not_taken_for_dead() {
    let [zero, one, two] = three();
    drop(one);
    assert!(!told(&zero, Duration::from_secs(1)));
    assert!(!told(&two, Duration::ZERO) && !failed(&two).load(Ordering::Acquire));
}
