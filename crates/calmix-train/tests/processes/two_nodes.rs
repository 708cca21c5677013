//! A run on two hosts, each with an agent of torchrun, of which one worker after the other is killed.

use std::fs::{File, read_link, read_to_string};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use calmix_testkit::hosts::{ADDRESSES, Hosts};
use calmix_testkit::run_bytes::differing;
use calmix_testkit::tier;

use super::crew::{Crew, ENTRY};
use super::torchrun::torchrun;
use crate::made::Bench;

/// An agent, which ends its workers when it is terminated.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
            let _ = self.0.wait();
        }
    }
}

/// The workers of a host.
fn workers(hosts: &Hosts, host: usize) -> Vec<u32> {
    let test = std::env::current_exe().unwrap();
    let ours = |process: &u32| read_link(format!("/proc/{process}/exe")).is_ok_and(|program| program == test);
    hosts.processes(host).into_iter().filter(ours).collect()
}

/// Polls until there is an answer.
fn until<T>(what: &str, agents: &mut [Agent], mut answer: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = answer() {
            return found;
        }
        let ended = agents.iter_mut().any(|agent| agent.0.try_wait().unwrap().is_some());
        assert!(!ended && began.elapsed() < Duration::from_mins(2), "{what}: an agent ended: {ended}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// torchrun counts a restart at the agent whose worker died, and not always at the other one: after some kills their
/// counts differ.
#[test]
fn two_agents_restart_a_run_after_every_kill() {
    let (Some(torchrun), Some(hosts)) = (torchrun(), Hosts::new()) else { return };
    let kills = if tier::is_exhaustive() { 10 } else { 2 };
    let steps = format!("train.steps={}", 20 + 10 * kills);
    let settings = [
        "train.micro_batches=2",
        "train.batch=8",
        "checkpoint.every=4",
        "method.base=flexmatch",
        "train.timeout=60",
        &steps,
    ];
    let bench = Bench::new();
    let whole = Crew::new(&bench, "whole", &settings);
    whole.train(1);
    let crew = Crew::new(&bench, "killed", &settings);
    let logs = [0, 1].map(|host| bench.folder(&format!("agent-{host}.log")));
    let mut agents = [0, 1].map(|host| {
        let mut command = Command::new(&torchrun);
        command
            .args(["--no-python", "--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "40"])
            .args(["--rdzv-backend", "c10d", "--rdzv-endpoint", &format!("{}:29500", ADDRESSES[0])])
            .args(["--rdzv-conf", &format!("is_host={}", 1 - host), "--local-addr", ADDRESSES[host]])
            .arg(std::env::current_exe().unwrap())
            .args(ENTRY)
            .env("OMP_NUM_THREADS", "1");
        crew.set_variables(&mut command);
        let log = File::create(&logs[host]).unwrap();
        Agent(hosts.command(host, &command).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    });
    let (mut old, mut killed) = (Vec::new(), Vec::new());
    for kill in 0..kills {
        // Every second one dies before it has met the other again, whose agent then counts no restart; the rest in the
        // middle of training.
        let progress = if kill % 2 == 1 { 0 } else { 10 * (kill + 1) };
        until(&format!("step {progress}, after {kill} kills"), &mut agents, || {
            let events = read_to_string(crew.run.join("events.jsonl")).unwrap_or_default();
            (events.lines().filter(|line| line.contains("\"step\"")).count() >= progress).then_some(())
        });
        let worker = until(&format!("a worker after {kill} kills"), &mut agents, || {
            workers(&hosts, kill.div_ceil(2) % 2).into_iter().find(|worker| !old.contains(worker))
        });
        assert!(Command::new("kill").args(["-KILL", &worker.to_string()]).status().unwrap().success());
        old.extend([0, 1].iter().flat_map(|&host| workers(&hosts, host)).chain([worker]));
        killed.push(worker);
    }
    for agent in &mut agents {
        let ended = until("the end of the run", &mut [], || agent.0.try_wait().unwrap());
        let log = logs.each_ref().map(|log| read_to_string(log).unwrap()).join("\n");
        assert!(ended.success(), "{log}");
    }
    println!("killed {killed:?}");
    assert_eq!(differing(&whole.run, &crew.run), Vec::<String>::new());
}
