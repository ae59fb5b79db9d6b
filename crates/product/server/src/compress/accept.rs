//! Which content codings a client accepts. RFC 9110 §12.5.3.

use super::coding::Coding;

/// Members of the field that are looked at.
const MOST: usize = 32;

/// Codings, the one that is to be sent rather than the others first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted([Option<Coding>; Coding::ALL.len()]);

impl Accepted {
    /// Those of `offered` that `field`, the value of Accept-Encoding, accepts and does not like less than none. The client's weights
    /// decide, then the order of `offered`.
    ///
    /// Without the field every coding is acceptable; but clients that say nothing mostly decode nothing.
    pub(crate) fn of(field: Option<&[u8]>, offered: &[Coding]) -> Accepted {
        let Some(field) = field.filter(|field| !field.is_empty()) else { return Accepted::default() };
        let (mut weights, mut any, mut identity) = ([None; Coding::ALL.len()], None, None);
        for member in field.split(|byte| *byte == b',').take(MOST) {
            let Some((name, weight)) = parse(member) else { continue };
            match Coding::of_name(name) {
                Some(coding) => {
                    if let Some(known) = weights.get_mut(coding as usize) {
                        *known = Some(weight);
                    }
                }
                None if name == b"*" => any = Some(weight),
                None if name.eq_ignore_ascii_case(b"identity") => identity = Some(weight),
                None => {}
            }
        }
        let weight = |coding: Coding| weights.get(coding as usize).copied().flatten().or(any).unwrap_or(0);
        let least = identity.unwrap_or(0).max(1);
        let mut accepted = Accepted::default();
        let chosen = offered.iter().copied().filter(|coding| weight(*coding) >= least);
        accepted.0.iter_mut().zip(chosen).for_each(|(place, coding)| *place = Some(coding));
        // Stable: equal weights keep the order of what is offered.
        accepted.0.sort_by_key(|coding| core::cmp::Reverse(coding.map_or(0, weight)));
        accepted
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Coding> {
        self.0.into_iter().flatten()
    }

    pub(crate) fn first(&self) -> Option<Coding> {
        self.iter().next()
    }
}

/// The name and the weight, in thousandths, of one member; `None` if it is malformed. RFC 9110 §12.4.2.
fn parse(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let Some(parameter) = parts.next() else { return Some((name, 1_000)) };
    let [b'q' | b'Q', value @ ..] = parameter else { return None };
    let value = value.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    match (parts.next(), weight(value)) {
        (None, Some(weight)) => Some((name, weight)),
        _ => None,
    }
}

fn weight(value: &[u8]) -> Option<u16> {
    let (whole, digits) = match value {
        [b'0'] => (0, &[][..]),
        [b'1'] => (1_000, &[][..]),
        [b'0', b'.', digits @ ..] => (0, digits),
        [b'1', b'.', digits @ ..] => (1_000, digits),
        _ => return None,
    };
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let places = [100, 10, 1];
    let parts = digits.iter().zip(places).map(|(digit, place)| u16::from(digit - b'0') * place);
    Some(whole + parts.sum::<u16>()).filter(|weight| *weight <= 1_000)
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Zstd};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weights_decide_and_then_the_order_of_the_server() {
        let table: &[(&str, &[Coding])] = &[
            ("", &[]),
            ("gzip", &[Gzip]),
            ("gzip, deflate, br, zstd", &[Zstd, Brotli, Gzip]),
            ("GZIP;q=1.0, br;q=0.5", &[Gzip, Brotli]),
            ("gzip ; Q = 0.001", &[Gzip]),
            ("gzip;q=0", &[]),
            ("gzip;q=0.000, *", &[Zstd, Brotli]),
            ("*;q=0", &[]),
            ("*;q=0.3, br;q=0.9", &[Brotli, Zstd, Gzip]),
            ("identity, gzip;q=0.5, br", &[Brotli]),
            ("identity;q=0.5, gzip;q=0.5", &[Gzip]),
            ("identity;q=0, gzip;q=0.1", &[Gzip]),
            ("x-gzip", &[Gzip]),
            ("deflate, identity", &[]),
            // What is malformed is not accepted.
            ("gzip;q=2", &[]),
            ("gzip;q=1.001", &[]),
            ("gzip;q=0.1234", &[]),
            ("gzip;q=", &[]),
            ("gzip;level=9", &[]),
            ("gzip;q=1;q=1", &[]),
            ("gzip br", &[]),
            (",,;q=1, br,", &[Brotli]),
        ];
        for (field, expected) in table {
            let accepted = Accepted::of(Some(field.as_bytes()), &Coding::ALL);
            assert_eq!(accepted.iter().collect::<Vec<_>>(), *expected, "{field}");
        }
        assert_eq!(Accepted::of(None, &Coding::ALL), Accepted::default());
        let accepted = Accepted::of(Some(b"zstd, br, gzip"), &[Gzip, Brotli]);
        assert_eq!(accepted.iter().collect::<Vec<_>>(), [Gzip, Brotli]);
    }

    #[test]
    fn a_long_list_costs_no_more_than_its_beginning() {
        let list = format!("{}gzip", "a,".repeat(MOST));
        assert_eq!(Accepted::of(Some(list.as_bytes()), &Coding::ALL), Accepted::default());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(field in prop::collection::vec(any::<u8>(), 0..64)) {
            Accepted::of(Some(&field), &Coding::ALL);
        }
    }
}
