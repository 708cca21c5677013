//! `events.jsonl` and `timing.jsonl`.

use std::collections::BTreeMap;

use calmix_core::rng::{Domain, Seed};
use calmix_run::events::{Event, Loss, Step};
use calmix_run::sink::{PaceLines, Sink};

use super::made;

fn written(events: &[Event]) -> String {
    events.iter().map(|event| event.to_line().unwrap() + "\n").collect()
}

#[test]
fn the_lines_are_a_stable_format() {
    let text = written(&made::events());
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        // The sixth step, whose unlabelled loss is infinite.
        r#"{"event":"step","step":6,"learning_rate":"#,
        r#"{"event":"note","step":3,"text":"so \"it\" is","hint":"do this\nthen that"}"#,
        r#"{"event":"evaluation","step":5,"split":"test","model":"live","samples":60,"edges":"left-closed","metrics":{"error":"#,
        r#"{"event":"finished","step":10,"selected":{"last":{"on":"test","at_step":10,"evaluations":1,"chosen_on_test":false,"samples":60,"metrics":{"error":"#,
    ] {
        assert!(lines.iter().any(|found| found.starts_with(line)), "{line}\n{text}");
    }
    let sixth = lines.iter().find(|line| line.contains(r#""step":6,"#)).unwrap();
    assert!(sixth.contains(r#""unlabelled":null,"mix":0."#), "{sixth}");
    let mut timing = Vec::new();
    PaceLines(&mut timing).pace(&made::pace(7)).unwrap();
    let pace =
        r#"{"step":7,"images_per_second":412.25,"waiting":0.012,"elapsed_seconds":7.0,"left_seconds":185.0}"#;
    assert_eq!(String::from_utf8(timing).unwrap(), format!("{pace}\n"));
}

/// Fields that had other names before version 0.1.0: a reader of old files renames them by this table.
#[test]
fn renamed_fields_have_their_new_names_alone() {
    let renamed = include_str!("../golden/renamed_fields.json");
    let renamed: BTreeMap<String, String> = serde_json::from_str(renamed).unwrap();
    let text = written(&made::events());
    for (before, now) in renamed {
        assert!(!text.contains(&format!("\"{before}\":")), "{before}");
        assert!(text.contains(&format!("\"{now}\":")), "{now}");
    }
}

#[test]
fn events_round_trip() {
    for event in made::events() {
        let line = event.to_line().unwrap();
        let back = Event::from_line(&line).unwrap();
        // An infinite loss comes back as NaN, and is written as `null` again.
        assert_eq!(back.to_line().unwrap(), line);
        assert!(back == event || line.contains("null"), "{line}");
    }
}

#[test]
fn single_precision_comes_back_to_the_bit() {
    let mut stream = Seed(8).stream(Domain::Split, 0, 0);
    for _ in 0..20_000 {
        let bits = stream.next_u32();
        let total = f32::from_bits(bits);
        let loss = Loss { total, ..Loss::default() };
        let line = Event::Step(Box::new(Step::new(1, loss))).to_line().unwrap();
        let Event::Step(back) = Event::from_line(&line).unwrap() else { panic!("{line}") };
        assert!(
            back.loss.total.to_bits() == bits || !total.is_finite() && back.loss.total.is_nan(),
            "{line}"
        );
    }
}

#[test]
fn invalid_event_lines_are_refused() {
    for line in ["", "{}", "[1]", r#"{"event":"step"}"#, r#"{"event":"note","step":-1,"text":"","hint":""}"#]
    {
        assert!(Event::from_line(line).is_err(), "{line}");
    }
    let unknown = Event::from_line(r#"{"event":"party","step":1}"#).unwrap_err().to_string();
    assert!(unknown.starts_with("there is no event `party`"), "{unknown}");
    // A later version may say more.
    assert!(Event::from_line(r#"{"event":"note","step":1,"text":"","hint":"","mood":"fine"}"#).is_ok());
}
