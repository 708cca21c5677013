//! Durations in readable units.

use std::time::Duration;

/// Formats a duration as `0.42 s`, `12.3 s` or `2 min 13 s`.
pub(crate) fn human_time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 59.95 {
        format!("{seconds:.1} s")
    } else {
        let rounded = seconds.round() as u64;
        format!("{} min {:02} s", rounded / 60, rounded % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well_and_never_show_sixty_seconds() {
        let say = |seconds| human_time(Duration::from_secs_f64(seconds));
        assert_eq!(say(0.004), "0.00 s");
        assert_eq!(say(9.999), "10.0 s");
        assert_eq!(say(59.96), "1 min 00 s");
        assert_eq!(say(132.6), "2 min 13 s");
        assert_eq!(say(3_599.7), "60 min 00 s");
    }
}
