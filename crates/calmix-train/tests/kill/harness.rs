//! Kills a program at random moments and starts it again, until it is done.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_core::rng::{Domain, Seed};

/// The most kills of one run: then it is left alone to come to its end.
const MOST: u32 = 12;

/// Runs `command` once on `whole` to its end, unless that is there already, and again and again on `killed`, with a
/// kill at a random moment of each, until it comes to its end; how many kills it took. The same command begins a
/// run and continues it.
pub(crate) fn kill_until_done(
    command: &dyn Fn(&Path) -> Command,
    whole: &Path,
    killed: &Path,
    round: u64,
) -> u32 {
    if !whole.exists() {
        assert!(command(whole).status().unwrap().success(), "without any kill");
    }
    // How long a run takes by itself, as busy as the machine is now: kills come anywhere in that time.
    let scratch = killed.with_extension("timed");
    let began = Instant::now();
    assert!(command(&scratch).status().unwrap().success());
    let takes = began.elapsed();
    let mut kills = 0;
    loop {
        let mut child = command(killed).spawn().unwrap();
        if kills == MOST {
            assert!(child.wait().unwrap().success(), "round {round}, after {kills} kills");
            return kills;
        }
        let mut moment = Seed(round).stream(Domain::Bootstrap, u64::from(kills), 0);
        let share = f64::from(moment.next_u32()) / f64::from(u32::MAX);
        sleep(Duration::from_secs_f64(takes.as_secs_f64() * share));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "round {round}, after {kills} kills");
            return kills;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
}
