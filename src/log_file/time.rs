//! Times in UTC for log lines and names of log files. A date library would make the CNI program two thirds larger
//! (0.66 MB instead of 0.40): its goal is 0.5 MB.

use std::time::{SystemTime, UNIX_EPOCH};

/// RFC 3339 with milliseconds: `2026-11-21T08:23:11.123Z`. A clock before 1970 counts as 1970.
pub fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", since.subsec_millis())
}

/// The time in the name of a rotated file: `2026-11-21T08-23-11.123`. Stamps sort like their times.
pub(crate) fn stamp(at: SystemTime) -> String {
    let mut text = timestamp(at).replace(':', "-");
    text.pop();
    text
}

pub(crate) fn is_stamp(text: &str) -> bool {
    const SHAPE: &[u8] = b"0000-00-00T00-00-00.000";
    let fits = |(byte, shape): (u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape };
    text.len() == SHAPE.len() && text.bytes().zip(SHAPE).all(fits)
}

/// Year, month, day of a day number since 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates() {
        assert_eq!([0, 11_016, 20_778].map(date), [(1970, 1, 1), (2000, 2, 29), (2026, 11, 21)]);
    }

    #[test]
    fn stamps_name_files() {
        let at = UNIX_EPOCH + Duration::from_millis(20_778 * 86_400_000 + 30_191_123);
        assert_eq!(timestamp(at), "2026-11-21T08:23:11.123Z");
        assert_eq!(stamp(at), "2026-11-21T08-23-11.123");
        assert!(is_stamp(&stamp(at)) && !is_stamp("notes") && !is_stamp("2026-11-21T08-23-11.12x"));
    }
}
