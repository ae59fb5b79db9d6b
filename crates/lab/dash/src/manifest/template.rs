//! URLs with places for names and numbers: `$RepresentationID$/$Number%05d$.m4s`. Source: ISO/IEC 23009-1 §5.3.9.4.4.

use core::fmt::Write as _;

/// The longest number that a template may ask for, in digits.
const MOST_DIGITS: usize = 20;

/// A URL with places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Id,
    Number(usize),
    Bandwidth(usize),
    Time(usize),
}

impl Template {
    /// What is no place is text, as it stands.
    pub(super) fn parse(text: &str) -> Template {
        let mut pieces = Vec::new();
        for (index, part) in text.split('$').enumerate() {
            // Between the first dollar and the second is a name, between the second and the third is text.
            let piece = match (index % 2, part) {
                (0, text) => Piece::Text(text.to_owned()),
                (_, "") => Piece::Text("$".to_owned()),
                (_, "RepresentationID") => Piece::Id,
                (_, name) => numbered(name).unwrap_or_else(|| Piece::Text(format!("${name}$"))),
            };
            pieces.push(piece);
        }
        Template(pieces)
    }

    /// The URL of a segment of this number that begins at this time.
    pub(super) fn expand(&self, id: &str, bandwidth: u64, (number, time): (u64, u64)) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            // Writing into a text does not fail.
            let _ = match piece {
                Piece::Text(part) => text.write_str(part),
                Piece::Id => text.write_str(id),
                Piece::Number(width) => write!(text, "{number:0width$}"),
                Piece::Bandwidth(width) => write!(text, "{bandwidth:0width$}"),
                Piece::Time(width) => write!(text, "{time:0width$}"),
            };
        }
        text
    }
}

/// `Number`, or `Number%05d`.
fn numbered(name: &str) -> Option<Piece> {
    let (name, width) = match name.split_once("%0") {
        Some((name, format)) => (name, format.strip_suffix('d')?.parse().ok()?),
        None => (name, 1),
    };
    let width = usize::min(width, MOST_DIGITS);
    match name {
        "Number" => Some(Piece::Number(width)),
        "Bandwidth" => Some(Piece::Bandwidth(width)),
        "Time" => Some(Piece::Time(width)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled() {
        let table = [
            ("$RepresentationID$/$Number$.m4s", "v1/7.m4s"),
            ("chunk-$RepresentationID$-$Number%05d$.m4s", "chunk-v1-00007.m4s"),
            ("$Bandwidth$/$Time$", "400000/90000"),
            ("$$$Number%99d$", "$$Number%99d$"),
            ("$$/$Number%02d$", "$/07"),
            ("plain", "plain"),
            ("$Unknown$", "$Unknown$"),
        ];
        for (text, expanded) in table {
            assert_eq!(Template::parse(text).expand("v1", 400_000, (7, 90_000)), expanded, "{text}");
        }
        assert_eq!(Template::parse("$Number%0999d$").expand("", 0, (1, 0)).len(), MOST_DIGITS);
    }
}
