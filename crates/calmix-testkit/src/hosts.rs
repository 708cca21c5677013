//! Two hosts: two network namespaces joined by a cable.

use std::process::Command;

use crate::tier;

/// Two namespaces, removed in the end.
pub struct Hosts([String; 2]);

pub const ADDRESSES: [&str; 2] = ["10.83.0.1", "10.83.0.2"];

impl Hosts {
    /// Skips the test if they cannot be made.
    pub fn new() -> Option<Self> {
        Self::made()
            .inspect_err(|why| {
                tier::skipped(&format!("no two hosts can be made, which takes root and iproute2: {why}"));
            })
            .ok()
    }

    fn made() -> Result<Self, String> {
        let own = std::process::id() % 100_000;
        let hosts = Self([format!("cmx{own}a"), format!("cmx{own}b")]);
        let [a, b] = &hosts.0;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add v{a} netns {a} type veth peer name v{b} netns {b}"))?;
        for (host, address) in hosts.0.iter().zip(ADDRESSES) {
            ip(&format!("-n {host} addr add {address}/24 dev v{host}"))?;
            ip(&format!("-n {host} link set v{host} up"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        Ok(hosts)
    }

    /// The same command on a host, whose peers only reach it by the cable.
    pub fn command(&self, host: usize, inner: &Command) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[host]]).arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap());
        }
        command
    }

    /// The processes of a host.
    pub fn processes(&self, host: usize) -> Vec<u32> {
        let listed = ip(&format!("netns pids {}", self.0[host])).unwrap();
        listed.lines().map(|process| process.trim().parse().unwrap()).collect()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &self.0 {
            let _ = ip(&format!("netns del {host}"));
        }
    }
}

fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(format!("ip {arguments}: {}", said(&output.stderr)))
    }
}
