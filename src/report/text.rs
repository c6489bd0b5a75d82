//! Text from outside made harmless: names, messages and versions come from files, servers and
//! pull requests, and end up in terminals and on web pages.

use std::fmt::Write as _;

/// The longest name shown, in characters.
pub(crate) const NAME: usize = 80;
/// The longest value of a fact shown, in characters.
pub(crate) const VALUE: usize = 120;
/// The longest message shown, in characters.
pub(crate) const MESSAGE: usize = 600;
/// The longest first line shown, in characters: it may hold several messages.
pub(crate) const HEADLINE: usize = 1000;

/// One line without control characters, escape sequences or invisible characters, at most `limit`
/// characters long (the end of a longer text becomes `...`).
///
/// Whitespace of every kind becomes a single space. Removed are whole ANSI sequences (not only
/// their first byte), C0 and C1 controls, zero-width characters and the bidirectional overrides
/// that make a text read otherwise than it is written.
pub fn clean(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    let mut gap = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if matches!(c, '\u{1b}' | '\u{9b}' | '\u{9d}' | '\u{90}') {
            skip_sequence(c, &mut chars);
            continue;
        }
        if c.is_whitespace() || c == '\u{85}' {
            gap = length > 0;
            continue;
        }
        if c.is_control() || is_invisible(c) {
            continue;
        }
        for next in gap.then_some(' ').into_iter().chain([c]) {
            if length == limit {
                return shorten(&out, limit);
            }
            out.push(next);
            length += 1;
        }
        gap = false;
    }
    out
}

/// As `clean`, and every character outside ASCII as `\u{..}`, for terminals that show only ASCII.
pub(crate) fn ascii(text: &str, limit: usize) -> String {
    let clean = clean(text, limit);
    if clean.is_ascii() {
        return clean;
    }
    let mut out = String::new();
    for c in clean.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let _ = write!(out, "{}", c.escape_unicode());
        }
    }
    out
}

/// Text from outside as Markdown that renders as exactly that text, also within a table cell.
///
/// It is cleaned first. It cannot end the cell or the line, open HTML, code, a link, an image or a
/// formula, and it neither mentions anyone nor refers to an issue: GitHub looks for those after
/// rendering, so a zero-width space stands behind the sign that would start one.
pub fn markdown(text: &str, limit: usize) -> String {
    let text = clean(text, limit);
    let mut out = String::with_capacity(text.len() + 16);
    let mut word = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' => out.push_str("&#124;"),
            '$' => out.push_str("<span>$</span>"),
            '@' => out.push_str("@&#8203;"),
            '#' => out.push_str("\\#&#8203;"),
            // `https://` and `www.` link by themselves, `GH-1` is an issue.
            ':' if is_scheme(letters(&word)) => out.push_str(":&#8203;"),
            // Behind the point it would still link: the rest of the word counts as its address.
            '.' if letters(&word).eq_ignore_ascii_case("www") => out.push_str("&#8203;."),
            '-' if letters(&word).eq_ignore_ascii_case("gh") => out.push_str("&#8203;-"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // A list, heading or rule begins only at the start of a line.
            '-' | '+' | '=' if at == 0 => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')' if at == word.chars().count() && word.chars().all(|c| c.is_ascii_digit()) => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
        if c.is_alphanumeric() {
            word.push(c);
        } else {
            word.clear();
        }
    }
    out
}

/// The longest beginning of at most `limit` bytes that ends between two characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

/// The letters at a word's end: where another sign stands before them, they begin a link all the same.
fn letters(word: &str) -> &str {
    word.rsplit(|c: char| !c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default()
}

fn is_scheme(word: &str) -> bool {
    ["http", "https", "ftp", "mailto", "xmpp"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Skips the rest of an escape sequence whose first character was `first`.
fn skip_sequence(first: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kind = match first {
        '\u{1b}' => match chars.next_if(|c| !c.is_control()) {
            Some(kind) => kind,
            None => return,
        },
        '\u{9b}' => '[',
        _ => ']',
    };
    match kind {
        // Control sequence: parameters, then one final byte.
        '[' => {
            while chars
                .next_if(|c| ('\u{20}'..='\u{3f}').contains(c))
                .is_some()
            {}
            chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        // Strings: up to the terminator. One that never ends takes only its first line.
        ']' | 'P' | '_' | '^' | 'X' => {
            while let Some(c) = chars.next_if(|c| *c != '\n' && *c != '\r') {
                match c {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        chars.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        // Character set selections carry one more byte.
        ' '..='/' => {
            chars.next_if(|c| !c.is_control());
        }
        _ => {}
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn shorten(text: &str, limit: usize) -> String {
    let keep = limit.saturating_sub(3);
    let mut out: String = text.chars().take(keep).collect();
    out.truncate(out.trim_end().len());
    out.push_str(cut("...", limit));
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_go_as_a_whole() {
        for (text, expected) in [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]0;never ends\nnext", "next"),
            ("\u{9b}2Jclear", "clear"),
            ("a\r\nb\tc\u{2028}d  e ", "a b c d e"),
            ("bell\u{7}\u{8}\u{0}", "bell"),
            ("\u{202e}evil\u{200b}", "evil"),
            ("\u{1b}", ""),
            ("\u{1b}(Bx", "x"),
            ("é漢🚀", "é漢🚀"),
        ] {
            assert_eq!(clean(text, 40), expected, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_shortened_by_characters() {
        assert_eq!(clean("abcdefgh", 8), "abcdefgh");
        assert_eq!(clean("abcdefghi", 8), "abcde...");
        assert_eq!(clean("漢漢漢漢漢漢", 5), "漢漢...");
        assert_eq!(clean("abc", 2), "..");
        assert_eq!(ascii("é", 9), "\\u{e9}");
        assert_eq!(cut("é", 1), "");
    }

    #[test]
    fn markdown_shows_what_was_written_and_does_nothing() {
        for (text, expected) in [
            ("yolov9-c8", "yolov9-c8"),
            ("a|b", "a&#124;b"),
            ("a\\|b", "a\\\\&#124;b"),
            ("@octocat", "@&#8203;octocat"),
            ("#12", "\\#&#8203;12"),
            ("GH-12", "GH&#8203;-12"),
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("[a](b)", "\\[a\\](b)"),
            ("https://x.y", "https:&#8203;//x.y"),
            ("漢https://x.y", "漢https:&#8203;//x.y"),
            ("1Http://x.y", "1Http:&#8203;//x.y"),
            ("www.x.y", "www&#8203;.x.y"),
            ("_www.x.y", "\\_www&#8203;.x.y"),
            ("awww.x", "awww.x"),
            ("`a`", "\\`a\\`"),
            ("&lt;", "&amp;lt;"),
            ("- a", "\\- a"),
            ("12. a", "12\\. a"),
            ("1.5 ms", "1\\.5 ms"),
            ("a 1.5", "a 1.5"),
            ("$x$", "<span>$</span>x<span>$</span>"),
            ("-->\n\n# h", "\\--&gt; \\#&#8203; h"),
        ] {
            assert_eq!(markdown(text, 99), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn clean_text_is_one_visible_line(text in any::<String>(), limit in 0usize..50) {
            let clean = clean(&text, limit);
            prop_assert!(clean.chars().count() <= limit);
            prop_assert!(!clean.chars().any(|c| c.is_control() || is_invisible(c)));
            prop_assert_eq!(super::clean(&clean, limit), clean);
        }

        #[test]
        fn markdown_has_no_live_signs(text in "[ -~\n\u{1b}]{0,60}") {
            let escaped = markdown(&text, 99);
            let mut previous = ' ';
            for c in escaped.replace("<span>$</span>", "").chars() {
                prop_assert!(!matches!(c, '|' | '<' | '>' | '$' | '\n'), "{escaped}");
                if matches!(c, '[' | '`' | '*') {
                    prop_assert_eq!(previous, '\\');
                }
                if c == '\\' && previous == '\\' {
                    previous = ' ';
                } else {
                    previous = c;
                }
            }
            let mentions = escaped.matches('@').count();
            prop_assert_eq!(mentions, escaped.matches("@&#8203;").count());
        }
    }
}
