//! What a person sees.

use calmix_run::collectives::Collectives;
use calmix_run::events::{Event, Exchange, Pace};
use calmix_run::sink::{Progress, ProgressStyle, Sink};

use crate::made;

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
fn a_log_has_a_plain_line_an_interval() {
    let text = shown(ProgressStyle::Plain);
    assert!(!text.contains(['\x1b', '\r', '█']), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let expected = EXPECTED.trim_start().lines().collect::<Vec<_>>();
    assert_eq!(lines, expected, "\n{text}");
}

const EXPECTED: &str = r#"
step   200/2,000  loss  0.987  used  62 %    412 img/s  wait   1 %  left 3 min
step   400/2,000  loss  0.821  used  52 %    412 img/s  wait   1 %  left 3 min
step   600/2,000  loss  0.958  used  83 %    412 img/s  wait   1 %  left 3 min
warning at step 3: so "it" is; do this
then that
step   800/2,000  loss  0.413  used  64 %    412 img/s  wait   1 %  left 3 min
step 1,000/2,000  loss  0.797  used  48 %    412 img/s  wait   1 %  left 3 min
step 1,200/2,000  loss  0.269  used  63 %  val error 38.3 %  ECE 20.4 %    412 img/s  wait   1 %  left 3 min
step 1,400/2,000  loss  0.848  used  46 %  val error 38.3 %  ECE 20.4 %    412 img/s  wait   1 %  left 3 min
step 1,600/2,000  loss  0.241  used  54 %  val error 38.3 %  ECE 20.4 %    412 img/s  wait   1 %  left 3 min
step 1,800/2,000  loss  1.000  used   7 %  val error 38.3 %  ECE 20.4 %    412 img/s  wait   1 %  left 3 min
step 2,000/2,000  loss  0.467  used  37 %  val error 38.3 %  ECE 20.4 %    412 img/s  wait   1 %  left 3 min
validation (ema) after 10 steps: error 33.3 % (25.0 to 45.2)  ECE with 15 bins 21.2 % (20.4 to 33.7), under-confident by 19.8 points; at temperature 1.25: ECE 26.4 % (23.7 to 36.1), under-confident by 26.4 points
test (ema) after 10 steps: error 50.0 % (41.5 to 55.0)  ECE with 15 bins 14.3 % (12.6 to 24.1), under-confident by 5.2 points; at temperature 1.25: ECE 15.9 % (11.9 to 25.0), under-confident by 11.3 points
test (live) after 10 steps: error 38.3 % (26.5 to 48.3)  ECE with 15 bins 15.9 % (14.2 to 26.7), under-confident by 15.9 points; at temperature 1.25: ECE 22.0 % (17.0 to 33.4), under-confident by 22.0 points
finished after 10 steps
  last             test error 50.0 %  ECE with 15 bins 14.3 %, under-confident by 5.2 points
  median           test error 50.0 %  ECE with 15 bins 13.4 %, under-confident by 5.8 points
  best-validation  test error 50.0 %  ECE with 15 bins 14.3 %, under-confident by 5.2 points
pseudo-labels of 448 unlabelled images at the end: 25.0 % wrong, over-confident by 12.5 points (ECE 25.0 %, 15 bins)
"#;

#[test]
fn a_terminal_is_drawn_over_and_never_overflows() {
    let text = shown(ProgressStyle::Terminal { columns: 60, colour: true });
    let drawn: Vec<&str> = text.split("\r\x1b[K").collect();
    // Ten draws, and a line that stays clears the last of them.
    assert!(drawn.len() > 10, "{text:?}");
    let lines: Vec<&&str> = drawn.iter().filter(|part| part.contains("img/s")).collect();
    assert_eq!(lines.len(), 10);
    for (made, line) in lines.iter().enumerate() {
        assert!(line.chars().count() < 60 && !line.contains('\n'), "{line:?}");
        assert!(line.ends_with("  left 3 min"), "{line:?}");
        // From the first evaluation on there is no room for a bar.
        let cells = if made < 5 { 16 * (made + 1) / 10 } else { 0 };
        assert_eq!(line.chars().filter(|&cell| cell == '█').count(), cells, "{line:?}");
        assert_eq!(line.contains("val error 38.3 %  ECE 20.4 %"), made >= 5, "{line:?}");
    }
    assert!(text.contains("\x1b[33mwarning at step 3: so \"it\" is\x1b[0m; do this"), "{text:?}");
    let grey = shown(ProgressStyle::Terminal { columns: 60, colour: false });
    assert!(!grey.contains("\x1b[33m") && grey.contains("warning at step 3: so \"it\" is; do this"));
}

#[test]
fn a_terminal_of_no_width_and_a_run_of_no_steps_are_survived() {
    let mut text = Vec::new();
    let mut sink = Progress::new(&mut text, ProgressStyle::Terminal { columns: 0, colour: false }, 0);
    sink.pace(&made::pace(5)).unwrap();
    assert_eq!(text, b"\r\x1b[K");
}

#[test]
fn what_other_processes_cost_is_shown_where_there_are_any() {
    let mut text = Vec::new();
    let mut sink = Progress::new(&mut text, ProgressStyle::Plain, 10);
    let processes = Some(Exchange { sent_bytes: 1, waiting: 0.08, collectives: Collectives::default() });
    sink.pace(&Pace { processes, ..made::pace(5) }).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "step  5/10    412 img/s  wait   1 %  others   8 %  left 3 min\n"
    );
}
