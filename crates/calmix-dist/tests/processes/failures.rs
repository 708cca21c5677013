//! Processes that die, freeze, give up, come late, or come twice.

use std::time::Duration;

use super::crew::{Crew, Member, Noticed, now};

fn all_going(members: &mut [Member]) {
    for member in members {
        assert_eq!(member.line(), "going");
    }
}

/// The failures that the other ranks print when `victim` is struck during endless all-reduces.
fn struck(crew: &Crew, victim: usize, strike: impl Fn(&mut Member)) -> Vec<(Noticed, f64)> {
    let mut members = crew.start_all("loop");
    all_going(&mut members);
    let at = now();
    strike(&mut members[victim]);
    let (victims, survivors): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|member| member.rank == victim);
    let told = survivors.into_iter().map(|survivor| {
        let noticed = survivor.noticed();
        let after = noticed.at - at;
        println!("  noticed after {after:.3} s");
        (noticed, after)
    });
    let told = told.collect();
    drop(victims);
    told
}

#[test]
fn a_dead_process_is_noticed_within_a_second_and_named() {
    for size in [2, 4] {
        for victim in 0..size {
            let crew = Crew::new(size, Duration::from_mins(1));
            for (noticed, after) in struck(&crew, victim, Member::kill) {
                assert!(after < 1.0, "{after} s: {noticed:?}");
                assert_eq!(noticed.missing, format!("[{victim}]"), "{noticed:?}");
                let names = noticed.sentence.contains(&format!("rank {victim} does not respond"))
                    || noticed.sentence.contains("hosts the store (rank 0) cannot be reached");
                assert!(names && noticed.sentence.contains("all-reduce"), "{noticed:?}");
            }
        }
    }
}

#[test]
fn a_frozen_process_is_noticed_at_the_timeout_and_named() {
    let timeout = 5.0;
    // Rank 0 hosts the store, so no rank can be queried.
    for victim in [2, 0] {
        let crew = Crew::new(3, Duration::from_secs_f64(timeout));
        for (noticed, after) in struck(&crew, victim, |member| member.freeze()) {
            assert!((after - timeout).abs() < timeout / 10.0, "{after} s: {noticed:?}");
            assert!((noticed.took - timeout).abs() < timeout / 10.0, "{noticed:?}");
            assert_eq!(noticed.missing, format!("[{victim}]"), "{noticed:?}");
        }
    }
}

#[test]
fn busy_rank_is_not_taken_for_dead() {
    let crew = Crew::new(3, Duration::from_mins(1));
    let mut members = crew.start_all("busy 1 2500");
    all_going(&mut members);
    members.remove(2).kill();
    for member in members {
        // In a barrier rank 0 waits for rank 1, which notices the failure when it arrives there.
        let limit = if member.rank == 1 { 1.0 } else { 2.5 + 1.0 };
        let noticed = member.noticed();
        assert_eq!(noticed.missing, "[2]", "{noticed:?}");
        assert!(noticed.took < limit, "{noticed:?}");
    }
}

#[test]
fn aborting_rank_ends_the_others_at_once() {
    let crew = Crew::new(3, Duration::from_mins(1));
    let mut members = crew.start_all("abort 1");
    let mut quitter = members.remove(1);
    assert_eq!(quitter.line(), "going");
    let at = now();
    assert_eq!(quitter.line(), "gave up");
    for member in members {
        let noticed = member.noticed();
        assert!(noticed.at - at < 1.0, "{noticed:?}");
        assert_eq!(noticed.missing, "[]", "{noticed:?}");
        assert!(noticed.sentence.contains("first noticed by rank 1 in abort"), "{noticed:?}");
    }
}

#[test]
fn missing_rank_is_named_at_the_timeout() {
    for missing in [2, 0] {
        let crew = Crew::new(3, Duration::from_secs(4));
        let at = now();
        let come: Vec<Member> =
            (0..3).filter(|rank| *rank != missing).map(|rank| crew.start("connect", rank)).collect();
        for member in come {
            let noticed = member.noticed();
            assert!((3.5..8.0).contains(&(noticed.at - at)), "{} s: {noticed:?}", noticed.at - at);
            assert_eq!(noticed.missing, format!("[{missing}]"), "{noticed:?}");
        }
    }
}

#[test]
fn late_rank_is_waited_for() {
    let crew = Crew::new(2, Duration::from_secs(30));
    let second = crew.start("operations", 1);
    std::thread::sleep(Duration::from_secs(2));
    let first = crew.start("operations", 0);
    assert!(first.result().starts_with("done") && second.result().starts_with("done"));
}

#[test]
fn second_process_of_a_rank_is_refused() {
    let crew = Crew::new(2, Duration::from_mins(1));
    let mut members = crew.start_all("loop");
    all_going(&mut members);
    // The port is in use; the rank is taken.
    let at = now();
    let again = [crew.start("connect", 0).noticed(), crew.start("connect", 1).noticed()];
    assert!(again.iter().all(|noticed| noticed.at - at < 30.0), "{again:?}");
    assert!(again[0].sentence.contains("choose another MASTER_PORT"), "{again:?}");
    assert!(again[1].sentence.contains("rank 1 of 2 has already joined"), "{again:?}");
    // The ranks that joined first have not noticed anything.
    members.pop().unwrap().kill();
    assert_eq!(members.pop().unwrap().noticed().missing, "[1]");
}

#[test]
fn two_jobs_on_one_port_do_not_take_each_others_processes() {
    let crew = Crew::new(2, Duration::from_secs(4));
    let of_job = |job: &str, rank| {
        let mut command = crew.command("connect", rank);
        command.env("TORCHELASTIC_RUN_ID", job);
        Member::start(rank, command)
    };
    let (first, other) = (of_job("a", 0), of_job("b", 1));
    assert_eq!(first.noticed().missing, "[1]");
    let noticed = other.noticed();
    assert_eq!(noticed.missing, "[0]", "{noticed:?}");
}
