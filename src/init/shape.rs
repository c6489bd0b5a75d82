//! A guess at the shape of an input whose model leaves dimensions open.

/// A shape for `dims` in which no dimension is open. Fixed ones are kept.
///
/// The guesses are the sizes that are most often right: 224 x 224 for what looks like an image
/// (three dimensions with a fixed number of channels, or at least two open ones), 128 for the
/// last open dimension (a sequence of tokens, a signal), 1 for others and for texts.
pub(super) fn guess(datatype: &str, dims: &[i64]) -> Vec<i64> {
    let open = dims.iter().filter(|&&size| size < 0).count();
    let channels = |size: &i64| matches!(size, 1 | 3 | 4);
    let texts = datatype == "BYTES";
    let image = !texts
        && dims.len() == 3
        && open == 2
        && (dims.first().is_some_and(channels) || dims.last().is_some_and(channels));
    let last_open = dims.iter().rposition(|&size| size < 0);
    dims.iter()
        .enumerate()
        .map(|(index, &size)| {
            if size >= 0 {
                size
            } else if image {
                224
            } else if Some(index) == last_open && !texts {
                128
            } else {
                1
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::guess;

    #[test]
    fn keeps_fixed_dimensions_and_fills_open_ones() {
        for (dims, expected) in [
            (&[3, 640, 640][..], &[3, 640, 640][..]),
            (&[3, -1, -1], &[3, 224, 224]),
            (&[-1, -1, 3], &[224, 224, 3]),
            (&[-1], &[128]),
            (&[-1, 768], &[128, 768]),
            (&[-1, -1], &[1, 128]),
            (&[-1, -1, 80], &[1, 128, 80]),
            (&[0, -1], &[0, 128]),
            (&[], &[]),
        ] {
            assert_eq!(guess("FP32", dims), expected, "{dims:?}");
        }
        assert_eq!(guess("BYTES", &[-1]), [1]);
        assert_eq!(guess("BYTES", &[3, -1, -1]), [3, 1, 1]);
    }
}
