#![no_main]

use calmix_run::events::Event;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for line in String::from_utf8_lossy(bytes).lines() {
        match Event::from_line(line) {
            // What was read is written and read again as the same line.
            Ok(event) => {
                let line = event.to_line().expect("an event can be written");
                let again = Event::from_line(&line).expect("an event can be read back");
                assert_eq!(again.to_line().expect("again"), line);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
