use std::thread::{JoinHandle, spawn};
use std::time::Instant;

use super::*;

/// A store as an agent of torchrun hosts it: it outlives the processes.
struct Agent {
    store: Store,
    port: u16,
}

impl Agent {
    fn new() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.expect("a free port").port();
        let store = Store::tcp("127.0.0.1", port, true, Duration::from_secs(30)).expect("a store");
        Self { store, port }
    }

    /// A process of this rank among three, with this timeout.
    fn rank(&self, rank: usize, seconds: u64) -> JoinHandle<Met> {
        let port = self.port;
        spawn(move || {
            let store = Store::tcp("127.0.0.1", port, false, Duration::from_secs(30)).expect("a connection");
            let (began, timeout) = (Instant::now(), Duration::from_secs(seconds));
            let left = || timeout.saturating_sub(began.elapsed());
            let process = Handshake { store: &store, rank, size: 3, hosted_by_first: false, left: &left };
            process.meet().expect("the store answers")
        })
    }

    fn until(&self, key: &str) -> String {
        self.store.wait(key, Duration::from_secs(20)).expect("a rank sets it");
        self.store.get(key).expect("it is set")
    }
}

fn ended(process: JoinHandle<Met>) -> Met {
    process.join().expect("no panic")
}

/// All three met, under the same prefix.
fn together(processes: [JoinHandle<Met>; 3]) -> String {
    let mut met = processes.into_iter().map(ended);
    let Some(Met::All(prefix)) = met.next() else { panic!("rank 0 did not meet the others") };
    assert!(met.all(|other| other == Met::All(prefix.clone())), "not all met under {prefix}");
    prefix
}

#[test]
fn each_start_has_a_prefix_of_its_own_in_any_order() {
    let agent = Agent::new();
    let mut seen = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut processes: Vec<_> = order
            .map(|rank| {
                std::thread::sleep(Duration::from_millis(300));
                (rank, agent.rank(rank, 20))
            })
            .into();
        processes.sort_by_key(|(rank, _)| *rank);
        let handles: Vec<_> = processes.into_iter().map(|(_, handle)| handle).collect();
        seen.push(together(handles.try_into().expect("three")));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "a prefix was used twice");
}

/// A start whose rank 0 died before all had come leaves an open round behind, which no process will ever close.
#[test]
fn a_round_without_its_rank_0_is_left_for_the_next_one() {
    let agent = Agent::new();
    agent.store.set(ROUND, "stale").expect("set");
    agent.store.set("stale/answer/2", "stranger").expect("set");
    let (first, second) = (agent.rank(1, 20), agent.rank(2, 20));
    agent.until("stale/answer/1");
    assert_ne!(together([agent.rank(0, 20), first, second]), "stale");
}

/// A process that answered and died is replaced by another one of its rank: the acknowledgement is not for that one.
#[test]
fn an_answer_of_a_dead_process_is_not_taken_for_a_live_one() {
    let agent = Agent::new();
    let (zero, one) = (agent.rank(0, 20), agent.rank(1, 20));
    let nonce = agent.until(ROUND);
    agent.store.set(&format!("{nonce}/answer/2"), "dead").expect("set");
    agent.until(&format!("{nonce}/acknowledgement/2/dead"));
    together([zero, one, agent.rank(2, 20)]);
}

/// The rounds of an earlier start are closed: a rank alone does not enter them.
#[test]
fn lone_rank_ignores_rounds_of_an_earlier_start() {
    let agent = Agent::new();
    together([0, 1, 2].map(|rank| agent.rank(rank, 20)));
    assert_eq!(ended(agent.rank(1, 1)), Met::Missing(vec![0]));
    let (zero, one) = (agent.rank(0, 2), agent.rank(1, 3));
    assert_eq!(ended(zero), Met::Missing(vec![2]));
    assert_eq!(ended(one), Met::Missing(vec![2]));
}

#[test]
fn handshake_refuses_second_process_of_a_rank() {
    let agent = Agent::new();
    let (zero, pair) = (agent.rank(0, 20), [agent.rank(1, 3), agent.rank(1, 3)]);
    std::thread::sleep(Duration::from_millis(600));
    let two = agent.rank(2, 20);
    let all = ended(zero);
    assert!(matches!(all, Met::All(_)), "{all:?}");
    assert_eq!(ended(two), all);
    let met = pair.map(ended);
    assert_eq!(met.iter().filter(|met| **met == all).count(), 1, "{met:?}");
    assert!(met.contains(&Met::Taken), "{met:?}");
}
