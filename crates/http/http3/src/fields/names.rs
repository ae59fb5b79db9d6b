//! What a field name means to HTTP/3 itself. Most mean nothing.
//!
//! A name that came from the static table is known by its index, without a look at its bytes.

use qpack::Line;

/// The names that RFC 9114 has rules for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    /// RFC 8441 §4.
    Protocol,
    Status,
    /// A pseudo-header field that no RFC defines.
    UndefinedPseudo,
    ContentLength,
    Host,
    Te,
    /// Connection and the fields that go with it. RFC 9114 §4.2.
    ConnectionSpecific,
    Priority,
    Other,
}

impl Name {
    pub(super) fn is_pseudo(self) -> bool {
        matches!(
            self,
            Name::Method
                | Name::Scheme
                | Name::Authority
                | Name::Path
                | Name::Protocol
                | Name::Status
                | Name::UndefinedPseudo
        )
    }

    /// The meaning of a line's name.
    #[inline]
    pub(super) fn of(line: &Line<'_>) -> Name {
        match line.static_name {
            Some(index) => match index.as_usize() {
                0 => Name::Authority,
                1 => Name::Path,
                4 => Name::ContentLength,
                15..=21 => Name::Method,
                22 | 23 => Name::Scheme,
                24..=28 | 63..=71 => Name::Status,
                // The static table knows no other name that matters here; a test holds it to that.
                _ => Name::Other,
            },
            None => Name::of_bytes(line.name),
        }
    }

    /// The meaning of a name that was spelled out.
    pub(super) fn of_bytes(name: &[u8]) -> Name {
        match name {
            b":method" => Name::Method,
            b":scheme" => Name::Scheme,
            b":authority" => Name::Authority,
            b":path" => Name::Path,
            b":protocol" => Name::Protocol,
            b":status" => Name::Status,
            [b':', ..] => Name::UndefinedPseudo,
            b"content-length" => Name::ContentLength,
            b"host" => Name::Host,
            b"te" => Name::Te,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                Name::ConnectionSpecific
            }
            b"priority" => Name::Priority,
            _ => Name::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qpack::static_table::{Index, LEN};

    /// The shortcut by index must not let a name pass that its bytes would have caught.
    #[test]
    fn names_by_index_are_names_by_bytes() {
        for number in 0..LEN {
            let index = Index::new(number as u64).unwrap();
            let line =
                Line { name: index.name(), value: b"", static_name: Some(index), never_indexed: false };
            assert_eq!(Name::of(&line), Name::of_bytes(index.name()), "{number}");
        }
    }
}
