//! The progress lines on a terminal and in a log.

use calmix_metrics::predictions::EvalSet;
use calmix_run::events::Collectives;
use calmix_run::events::{Event, Exchange, Note, Pace};
use calmix_run::sink::{Progress, ProgressStyle, Sink, Work, WorkProgress};

use super::made;

fn shown(style: ProgressStyle) -> String {
    let mut text = Vec::new();
    let mut sink = Progress::new(&mut text, style, 2000);
    for event in made::events() {
        sink.event(&event).unwrap();
        if let Event::Step(step) = &event {
            sink.pace(&made::pace(step.step * 200)).unwrap();
        }
    }
    sink.flush().unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn log_has_a_plain_line_per_interval() {
    let text = shown(ProgressStyle::Plain);
    assert!(!text.contains(['\x1b', '\r', '█']), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let expected = EXPECTED.trim_start().lines().collect::<Vec<_>>();
    assert_eq!(lines, expected, "\n{text}");
}

const EXPECTED: &str = r#"
step   200/2,000  loss  0.987  used  62%    412 img/s  wait   1%  left 3 min
step   400/2,000  loss  0.821  used  52%    412 img/s  wait   1%  left 3 min
step   600/2,000  loss  0.958  used  83%    412 img/s  wait   1%  left 3 min
warning at step 3: so "it" is; do this
then that
step   800/2,000  loss  0.413  used  64%    412 img/s  wait   1%  left 3 min
step 1,000/2,000  loss  0.797  used  48%    412 img/s  wait   1%  left 3 min
step 1,200/2,000  loss  0.269  used  63%  val error 38.3%  gap  -16.3    412 img/s  wait   1%  left 3 min
step 1,400/2,000  loss  0.848  used  46%  val error 38.3%  gap  -16.3    412 img/s  wait   1%  left 3 min
step 1,600/2,000  loss  0.241  used  54%  val error 38.3%  gap  -16.3    412 img/s  wait   1%  left 3 min
step 1,800/2,000  loss  1.000  used   7%  val error 38.3%  gap  -16.3    412 img/s  wait   1%  left 3 min
step 2,000/2,000  loss  0.467  used  37%  val error 38.3%  gap  -16.3    412 img/s  wait   1%
validation (ema) after 10 steps: error 33.3% (23.3 to 44.6), confidence gap -19.8 (-31.4 to -6.4); at temperature 1.25: confidence gap -8.0 (-19.7 to +5.3)
test (ema) after 10 steps: error 50.0% (38.7 to 61.3), confidence gap -5.2 (-18.4 to +8.0); at temperature 1.25: confidence gap -11.3 (-24.5 to +1.9)
test (live) after 10 steps: error 38.3% (27.8 to 49.8), confidence gap -15.9 (-28.2 to -2.5); at temperature 1.25: confidence gap -22.0 (-34.3 to -8.6)
finished after 10 steps
  last             test error 50.0%, under-confident by 5.2 points
  median           test error 50.0%, under-confident by 5.8 points
  best-validation  test error 50.0%, under-confident by 5.2 points
pseudo-labels of 448 unlabelled samples at the end: 25.0% wrong, over-confident by 12.5 points
"#;

#[test]
fn terminal_line_is_redrawn_and_never_overflows() {
    let text = shown(ProgressStyle::Terminal { columns: 60, colour: true });
    let drawn: Vec<&str> = text.split("\r\x1b[K").collect();
    // Ten draws, and a line that stays clears the last of them.
    assert!(drawn.len() > 10, "{text:?}");
    let lines: Vec<&&str> =
        drawn.iter().filter(|part| part.contains("step ") && !part.contains('\n')).collect();
    assert_eq!(lines.len(), 10);
    for (made, line) in lines.iter().enumerate() {
        assert!(line.chars().count() < 60 && !line.contains('\n'), "{line:?}");
        // After the last step no step is left, and what follows has lines of its own.
        assert_eq!(line.ends_with("  left 3 min"), made < 9, "{line:?}");
        // From the first evaluation on there is no room for a bar.
        let cells = if made < 5 { 16 * (made + 1) / 10 } else { 0 };
        assert_eq!(line.chars().filter(|&cell| cell == '█').count(), cells, "{line:?}");
        assert!(line.contains("step ") && line.contains("/2,000"), "{line:?}");
        assert_eq!(line.contains("val error 38.3%  gap  -16.3"), made >= 5, "{line:?}");
    }
    assert!(text.contains("\x1b[33mwarning at step 3: so \"it\" is\x1b[0m; do this"), "{text:?}");
    let grey = shown(ProgressStyle::Terminal { columns: 60, colour: false });
    assert!(!grey.contains("\x1b[33m") && grey.contains("warning at step 3: so \"it\" is; do this"));
}

/// In a file the time left is there early, once; a terminal is drawn over.
#[test]
fn the_time_left_is_shown_before_the_first_interval() {
    let early = |style| {
        let mut text = Vec::new();
        let mut sink = Progress::new(&mut text, style, 2000);
        for step in 2..5 {
            sink.current_pace(&made::pace(step)).unwrap();
        }
        String::from_utf8(text).unwrap()
    };
    assert_eq!(early(ProgressStyle::Plain), "step     2/2,000    412 img/s  wait   1%  left 3 min\n");
    let drawn = early(ProgressStyle::Terminal { columns: 80, colour: false });
    assert_eq!(drawn.matches("left 3 min").count(), 3, "{drawn:?}");
}

#[test]
fn terminal_without_width_and_run_without_steps_work() {
    let mut text = Vec::new();
    let mut sink = Progress::new(&mut text, ProgressStyle::Terminal { columns: 0, colour: false }, 0);
    sink.pace(&made::pace(5)).unwrap();
    assert_eq!(text, b"\r\x1b[K");
}

#[test]
fn waiting_for_other_processes_is_shown() {
    let mut text = Vec::new();
    let mut sink = Progress::new(&mut text, ProgressStyle::Plain, 10);
    let processes = Some(Exchange { sent_bytes: 1, waiting: 0.08, collectives: Collectives::default() });
    sink.pace(&Pace { processes, ..made::pace(5) }).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "step  5/10    412 img/s  wait   1%  others   8%  left 3 min\n"
    );
}

/// A note about the whole run names no step, so that a resumed run does not mention step 0.
#[test]
fn note_before_the_first_step_names_no_step() {
    let mut text = Vec::new();
    let mut sink = Progress::new(&mut text, ProgressStyle::Plain, 20);
    let note = Note { step: 0, text: "few threads".to_owned(), hint: "add some".to_owned() };
    sink.event(&Event::Note(note)).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "warning: few threads; add some\n");
}

/// Between two intervals a terminal is redrawn; a file has a line per interval.
#[test]
fn terminal_moves_between_two_intervals() {
    let between = |style| {
        let mut text = Vec::new();
        let mut sink = Progress::new(&mut text, style, 2000);
        sink.pace(&made::pace(200)).unwrap();
        sink.current_pace(&made::pace(250)).unwrap();
        String::from_utf8(text).unwrap()
    };
    assert!(!between(ProgressStyle::Plain).contains("step   250"));
    assert!(between(ProgressStyle::Terminal { columns: 80, colour: false }).contains("step   250/2,000"));
}

/// What follows the last step has a name and a count, and a warning takes the place of its line.
#[test]
fn work_after_the_last_step_is_shown() {
    let evaluation =
        |done, seconds| WorkProgress { work: Work::Evaluation(EvalSet::Test), done, total: 10_000, seconds };
    let shown = |style| {
        let mut text = Vec::new();
        let mut sink = Progress::new(&mut text, style, 2000);
        sink.pace(&made::pace(2000)).unwrap();
        for (done, seconds) in [(0, 0.0), (100, 0.2), (2_000, 4.0), (6_000, 12.0)] {
            sink.work(&evaluation(done, seconds)).unwrap();
        }
        let note = Note { step: 0, text: "few threads".to_owned(), hint: "add some".to_owned() };
        sink.event(&Event::Note(note)).unwrap();
        String::from_utf8(text).unwrap()
    };
    assert_eq!(
        shown(ProgressStyle::Plain),
        "step 2,000/2,000    412 img/s  wait   1%\n\
         evaluating: 6,000 of 10,000 test images  500 per second  left 8 s\n\
         warning: few threads; add some\n"
    );
    let drawn = shown(ProgressStyle::Terminal { columns: 80, colour: false });
    let lines: Vec<&str> = drawn.split("\r\x1b[K").skip(2).collect();
    assert_eq!(lines.len(), 4, "{drawn:?}");
    assert!(lines[0].ends_with("  evaluating: 0 of 10,000 test images"), "{lines:?}");
    assert!(
        lines[1].ends_with("  evaluating: 2,000 of 10,000 test images  500 per second  left 16 s"),
        "{lines:?}"
    );
    assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:?}");
    assert_eq!(lines[3], "warning: few threads; add some\n");
}
