//! Processes on two hosts.

use std::time::Duration;

use calmix_testkit::hosts::Hosts;

use super::crew::{Crew, Member};

#[test]
fn processes_on_two_hosts_find_each_other() {
    let Some(hosts) = Hosts::new() else { return };
    let start = |crew: &Crew, rank, master| {
        let mut command = hosts.command(rank, &crew.command("operations", rank));
        command.env("MASTER_ADDR", master);
        Member::start(rank, command)
    };
    // Second: the master's host knows itself by a loopback address only, as Debian's own name does.
    for masters in [["10.83.0.1"; 2], ["127.0.0.1", "10.83.0.1"]] {
        let crew = Crew::new(2, Duration::from_mins(1));
        let members = [start(&crew, 0, masters[0]), start(&crew, 1, masters[1])];
        for member in members {
            assert!(member.result().starts_with("done"));
        }
    }
}
