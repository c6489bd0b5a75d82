//! A series as one line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The values between their smallest and largest, one character each, `|` where the level shifted:
/// before the value with the index `shift`.
pub(super) fn sparkline(values: &[f64], shift: Option<usize>, ascii: bool) -> String {
    let bars = if ascii { ASCII } else { BARS };
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if shift == Some(index) {
            out.push('|');
        }
        let share = (value - low) / (high - low);
        // Equal values stand in the middle.
        let share = if share.is_finite() { share } else { 0.5 };
        let step = (share * 7.0).round().clamp(0.0, 7.0) as usize;
        out.extend(bars.get(step));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_bars() {
        for (values, shift, ascii, expected) in [
            (&[0.0, 7.0][..], None, false, "▁█"),
            (&[1.0, 1.0], None, false, "▅▅"),
            (&[0.0, 1.0, 2.0, 7.0], Some(3), true, "_.:|#"),
            (&[0.0, 1.0], Some(9), true, "_#"),
            (&[], None, true, ""),
            (&[f64::MAX, f64::MIN], None, true, "=_"),
        ] {
            assert_eq!(sparkline(values, shift, ascii), expected, "{values:?}");
        }
    }
}
