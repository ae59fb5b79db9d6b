//! Priorities as text: the `priority` field and the value of PRIORITY_UPDATE. RFC 9218 §4, §5, §7.
//!
//! The text is a dictionary of RFC 8941, of which only two members matter: `u`, an integer from 0 to 7, and `i`, a boolean.
//! A member that is not understood is passed over and leaves its default, as RFC 9218 §4 asks. Rejected: failing on text
//! that is no dictionary, since priorities are hints.

use transport::Priority;

/// The longest text that is looked at, in bytes.
pub(crate) const MAX_TEXT: usize = 256;

/// The priority that `text` asks for; defaults where it says nothing that is understood.
pub(crate) fn parse(text: &[u8]) -> Priority {
    let mut priority = Priority::default();
    let text = text.get(..text.len().min(MAX_TEXT)).unwrap_or(&[]);
    for member in text.split(|&byte| byte == b',') {
        // Parameters follow a semicolon; none is defined.
        let member = member.split(|&byte| byte == b';').next().unwrap_or(&[]).trim_ascii();
        match member {
            [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
            b"i" | b"i=?1" => priority.incremental = true,
            b"i=?0" => priority.incremental = false,
            _ => {}
        }
    }
    priority
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_that_matter() {
        let priority = |urgency, incremental| Priority { urgency, incremental };
        let table: [(&[u8], Priority); 10] = [
            (b"", priority(3, false)),
            (b"u=0", priority(0, false)),
            (b"u=5, i", priority(5, true)),
            (b"i;x=1,u=7", priority(7, true)),
            (b"i=?0", priority(3, false)),
            (b"u=1, u=2", priority(2, false)),
            (b"u=8", priority(3, false)),
            (b"u=-1, i=?1", priority(3, true)),
            (b"\xff\x00,,=;", priority(3, false)),
            (b"unknown=1, u=6", priority(6, false)),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{}", text.escape_ascii());
        }
    }
}
