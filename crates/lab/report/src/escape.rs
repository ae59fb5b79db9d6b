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

/// Inside a line of Markdown, in cells of its tables too.
pub(crate) fn markdown(text: &str) -> String {
    let text = text.trim();
    let mut escaped = String::with_capacity(text.len());
    for (place, letter) in text.char_indices() {
        let before = text.get(..place).unwrap_or("");
        let ends_word =
            text.get(place + letter.len_utf8()..).is_none_or(|rest| rest.starts_with([' ', '\t']));
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => escaped.extend(['\\', letter]),
            // At the beginning of a line they would make a list, a head or a quotation.
            '-' | '+' | '#' if place == 0 && ends_word => escaped.extend(['\\', letter]),
            '>' if place == 0 => escaped.extend(['\\', letter]),
            '.' | ')' if ends_word && before.chars().all(|letter| letter.is_ascii_digit()) => {
                escaped.extend(['\\', letter]);
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Any document as the address of itself, for a frame.
pub(crate) fn data_address(kind: &str, content: &str) -> String {
    let mut address = format!("data:{kind};charset=utf-8,");
    for byte in content.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => address.push(char::from(byte)),
            b' ' | b'-' | b'_' | b'.' | b',' | b';' | b':' | b'=' | b'(' | b')' | b'/' | b'!' => {
                address.push(char::from(byte));
            }
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_do_not_become_markup() {
        assert_eq!(markup("a<b> & \"c\" 'd'\u{0}\n"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\u{fffd}\n");
    }

    #[test]
    fn texts_do_not_become_markdown() {
        assert_eq!(
            markdown("a|b\n<i> *c* _d_ `e` [f](g)"),
            "a\\|b &lt;i> \\*c\\* \\_d\\_ \\`e\\` \\[f\\](g)"
        );
        assert_eq!(markdown("- a"), "\\- a");
        assert_eq!(markdown("12. a. b"), "12\\. a. b");
        assert_eq!(markdown("-1.5 times #4"), "-1.5 times #4");
    }

    #[test]
    fn addresses_hold_whole_documents() {
        let address = data_address("image/svg+xml", "<svg a=\"b\">#&%'é</svg>");
        assert_eq!(
            address,
            "data:image/svg+xml;charset=utf-8,%3Csvg a=%22b%22%3E%23%26%25%27%C3%A9%3C/svg%3E"
        );
    }
}
