//! Two hosts: two network namespaces joined by a cable.

use std::process::Command;
use std::time::Duration;

use crate::crew::{Crew, Member, Through};

/// Two namespaces, removed in the end.
struct Hosts([String; 2]);

impl Hosts {
    fn new() -> Result<Self, String> {
        let own = std::process::id() % 100_000;
        let hosts = Self([format!("cmx{own}a"), format!("cmx{own}b")]);
        let [a, b] = &hosts.0;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add v{a} netns {a} type veth peer name v{b} netns {b}"))?;
        for (host, address) in [(a, "10.83.0.1"), (b, "10.83.0.2")] {
            ip(&format!("-n {host} addr add {address}/24 dev v{host}"))?;
            ip(&format!("-n {host} link set v{host} up"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        Ok(hosts)
    }

    /// A rank on a host, which its peers only reach by the cable.
    fn start(&self, crew: &Crew, rank: usize, master: &str) -> Member {
        let inner = crew.command("operations", rank);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[rank]]).arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap());
        }
        command.env("MASTER_ADDR", master);
        Member::start(rank, command)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &self.0 {
            let _ = ip(&format!("netns del {host}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {said}")) }
}

#[test]
fn processes_on_two_hosts_find_each_other() {
    let hosts = match Hosts::new() {
        Ok(hosts) => hosts,
        Err(why) => {
            println!("skipped, for no two hosts can be made here (it takes root and iproute2): {why}");
            return;
        }
    };
    // Second: the master's host knows itself by a loopback address only, as Debian's own name does.
    for masters in [["10.83.0.1"; 2], ["127.0.0.1", "10.83.0.1"]] {
        let crew = Crew::new(2, Through::Tcp, Duration::from_mins(1));
        let members = [hosts.start(&crew, 0, masters[0]), hosts.start(&crew, 1, masters[1])];
        for member in members {
            assert!(member.result().starts_with("done"));
        }
    }
}
