//! Fits the progress line into the width of a terminal by leaving out the least important parts.

const MAX_BAR_CELLS: usize = 20;
/// The minimum number of cells in the bar; a shorter one is not useful.
const MIN_BAR_CELLS: usize = 5;
const GAP: &str = "  ";

/// The importance of a part, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// Time spent waiting for data or other processes: seldom large, and a large value also shows in the rate.
    Waiting,
    /// The share of pseudo-labels in use.
    Used,
    /// The loss, which matters less than the metrics.
    Loss,
    /// Images per second, which the time left already implies.
    Rate,
    /// Error and ECE.
    Metrics,
    /// Step and time left.
    Always,
}

pub(super) type Segment = (Priority, String);

/// Joins all parts, whatever the length of the line.
pub(super) fn joined(parts: &[Segment]) -> String {
    parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(GAP)
}

/// Joins the parts that fit into `room` columns, after a bar filled to `done` of `all` if there is room for it.
pub(super) fn fitted(mut parts: Vec<Segment>, (done, all): (u64, u64), room: usize) -> String {
    let needs = |parts: &[Segment]| joined(parts).chars().count();
    let bar = MIN_BAR_CELLS + GAP.len();
    for priority in [Priority::Waiting, Priority::Used, Priority::Loss] {
        if needs(&parts) + bar > room {
            parts.retain(|part| part.0 != priority);
        }
    }
    for priority in [Priority::Rate, Priority::Metrics] {
        if needs(&parts) > room {
            parts.retain(|part| part.0 != priority);
        }
    }
    let cells = room.saturating_sub(needs(&parts) + GAP.len()).min(MAX_BAR_CELLS);
    let line = joined(&parts);
    // Work without a count has no bar.
    if cells < MIN_BAR_CELLS || all == 0 {
        return line.chars().take(room).collect();
    }
    let full = (cells as u64).saturating_mul(done.min(all)) / all.max(1);
    let empty = (cells as u64).saturating_sub(full);
    format!("{}{}{GAP}{line}", "█".repeat(full as usize), "░".repeat(empty as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(of: &[(Priority, &str)]) -> Vec<Segment> {
        of.iter().map(|(priority, text)| (*priority, (*text).to_owned())).collect()
    }

    /// Returns the longest possible parts: a month, and the paper's number of steps.
    fn longest() -> Vec<Segment> {
        parts(&[
            (Priority::Always, "step 1,048,575/1,048,576"),
            (Priority::Loss, "loss 12.345"),
            (Priority::Used, "used 100%"),
            (Priority::Metrics, "test error 38.3%  ECE 20.4%"),
            (Priority::Rate, "12,345 img/s"),
            (Priority::Waiting, "wait 100%"),
            (Priority::Always, "left 47 h 59 min"),
        ])
    }

    fn usual() -> Vec<Segment> {
        parts(&[
            (Priority::Always, "step 1,200/2,000"),
            (Priority::Loss, "loss  0.269"),
            (Priority::Used, "used  63%"),
            (Priority::Metrics, "val error 38.3%  ECE 20.4%"),
            (Priority::Rate, "  412 img/s"),
            (Priority::Waiting, "wait   1%"),
            (Priority::Always, "left 3 min"),
        ])
    }

    #[test]
    fn eighty_columns_hold_what_matters() {
        let line = fitted(longest(), (1_048_575, 1_048_576), 79);
        assert_eq!(line, "█████░  step 1,048,575/1,048,576  test error 38.3%  ECE 20.4%  left 47 h 59 min");
        let line = fitted(usual(), (1200, 2000), 79);
        assert_eq!(line, "████░░░░  step 1,200/2,000  val error 38.3%  ECE 20.4%    412 img/s  left 3 min");
    }

    #[test]
    fn sixty_columns_hold_the_step_and_the_time_left() {
        let line = fitted(usual(), (1200, 2000), 59);
        assert_eq!(line, "step 1,200/2,000  val error 38.3%  ECE 20.4%  left 3 min");
        let line = fitted(longest(), (1_048_575, 1_048_576), 59);
        assert_eq!(line, "██████████████░  step 1,048,575/1,048,576  left 47 h 59 min");
    }

    #[test]
    fn least_important_parts_go_first() {
        let all = joined(&longest()).chars().count();
        let visible = |room| {
            let line = fitted(longest(), (1, 2), room);
            assert!(line.chars().count() <= room, "{room}: {line}");
            ["step", "left", "ECE", "img/s", "loss", "used", "wait"].map(|word| line.contains(word))
        };
        assert_eq!(visible(all + 22), [true; 7]);
        let mut before = 7;
        for room in (0..all + 22).rev() {
            let there = visible(room);
            // If a part is left out, all less important ones are too.
            let count = there.iter().take_while(|&&is_there| is_there).count();
            assert!(there.iter().skip(count).all(|is_there| !is_there), "{room}: {there:?}");
            assert!(count <= before, "{room}");
            before = count;
        }
        assert!(visible(42)[..2].iter().all(|&is_there| is_there));
    }
}
