//! Texts of a study inside other languages: whatever they contain, they stay texts.

/// Inside HTML and SVG, in content and in quoted attributes.
pub(crate) fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no place for other control characters.
            letter if letter.is_control() && letter != '\n' && letter != '\t' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_do_not_become_markup() {
        assert_eq!(markup("a<b> & \"c\" 'd'\u{0}\n"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\u{fffd}\n");
    }
}
