//! The few facts that we need of an X.509 certificate: its public key, how long it is valid, and whose it is.
//!
//! A walk over the outer elements of the DER text, total on any input. Rejected: a certificate library, since nothing is
//! decided here; trust is TLS's business. RFC 5280 §4.1, X.690 §8.1.

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;

/// What a certificate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts<'a> {
    /// SubjectPublicKeyInfo, the whole element.
    pub(super) spki: &'a [u8],
    /// The key itself: the content of the bit string within.
    pub(super) public_key: &'a [u8],
    /// Seconds since 1970.
    pub(super) not_before_s: u64,
    /// Seconds since 1970.
    pub(super) not_after_s: u64,
}

/// The facts of the certificate `der`; `None` if it is none.
pub(super) fn facts(der: &[u8]) -> Option<Facts<'_>> {
    let mut certificate = Reader(Reader(der).expect(SEQUENCE)?.content);
    let mut body = Reader(certificate.expect(SEQUENCE)?.content);
    if body.0.first() == Some(&VERSION) {
        body.expect(VERSION)?;
    }
    body.expect(INTEGER)?; // serialNumber
    body.expect(SEQUENCE)?; // signature
    body.expect(SEQUENCE)?; // issuer
    let mut validity = Reader(body.expect(SEQUENCE)?.content);
    let not_before_s = time(validity.next()?)?;
    let not_after_s = time(validity.next()?)?;
    body.expect(SEQUENCE)?; // subject
    let spki = body.expect(SEQUENCE)?;
    let mut info = Reader(spki.content);
    info.expect(SEQUENCE)?; // algorithm
    // The first byte of a bit string says how many bits of the last byte do not count; a key has none of those.
    let public_key = info.expect(BIT_STRING)?.content.strip_prefix(&[0])?;
    Some(Facts { spki: spki.whole, public_key, not_before_s, not_after_s })
}

const OBJECT_IDENTIFIER: u8 = 0x06;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const SET: u8 = 0x31;
const EXTENSIONS: u8 = 0xa3;
/// Context tags of subjectAltName: rfc822Name and dNSName. RFC 5280 §4.2.1.6.
const ALTERNATIVES: [u8; 2] = [0x81, 0x82];
/// 2.5.4.3 and 2.5.29.17.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.29.35, and the tag of its keyIdentifier.
const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x23];
const KEY_IDENTIFIER: u8 = 0x80;

/// Whose the certificate `der` is: the common name of its subject, where there is one alone, and the DNS names and email addresses in
/// subjectAltName. Empty if it is none.
pub(crate) fn subject_names(der: &[u8]) -> Vec<String> {
    names(der).unwrap_or_default()
}

/// The key identifier of the issuer (RFC 5280 §4.2.1.1), and the content of the serial number (§4.1.2.2).
pub(super) fn issuer_and_serial(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut certificate = Reader(Reader(der).expect(SEQUENCE)?.content);
    let mut body = Reader(certificate.expect(SEQUENCE)?.content);
    if body.0.first() == Some(&VERSION) {
        body.expect(VERSION)?;
    }
    let serial = body.expect(INTEGER)?.content;
    while let Some(element) = body.next() {
        if element.tag == EXTENSIONS {
            let value =
                extension(Reader(element.content).expect(SEQUENCE)?.content, AUTHORITY_KEY_IDENTIFIER)?;
            let key = Reader(Reader(value).expect(SEQUENCE)?.content).expect(KEY_IDENTIFIER)?;
            return Some((key.content, serial));
        }
    }
    None
}

/// The value of the extension with this identifier.
fn extension<'a>(extensions: &'a [u8], identifier: &[u8]) -> Option<&'a [u8]> {
    let mut extensions = Reader(extensions);
    while !extensions.0.is_empty() {
        let mut extension = Reader(extensions.expect(SEQUENCE)?.content);
        if extension.expect(OBJECT_IDENTIFIER)?.content != identifier {
            continue;
        }
        let mut value = extension.next()?;
        if value.tag != OCTET_STRING {
            // Before it stands whether the extension is critical.
            value = extension.expect(OCTET_STRING)?;
        }
        return Some(value.content);
    }
    None
}

fn names(der: &[u8]) -> Option<Vec<String>> {
    let mut certificate = Reader(Reader(der).expect(SEQUENCE)?.content);
    let mut body = Reader(certificate.expect(SEQUENCE)?.content);
    if body.0.first() == Some(&VERSION) {
        body.expect(VERSION)?;
    }
    body.expect(INTEGER)?; // serialNumber
    for _ in ["signature", "issuer", "validity"] {
        body.expect(SEQUENCE)?;
    }
    let mut names = common_names(body.expect(SEQUENCE)?.content)?;
    if names.len() > 1 {
        // Which of them is meant cannot be known.
        names.clear();
    }
    body.expect(SEQUENCE)?; // subjectPublicKeyInfo
    while let Some(element) = body.next() {
        if element.tag == EXTENSIONS {
            names.extend(alternative_names(Reader(element.content).expect(SEQUENCE)?.content)?);
        }
    }
    Some(names)
}

/// RFC 5280 §4.1.2.6.
fn common_names(subject: &[u8]) -> Option<Vec<String>> {
    let (mut sets, mut names) = (Reader(subject), Vec::new());
    while !sets.0.is_empty() {
        let mut pairs = Reader(sets.expect(SET)?.content);
        while !pairs.0.is_empty() {
            let mut pair = Reader(pairs.expect(SEQUENCE)?.content);
            let kind = pair.expect(OBJECT_IDENTIFIER)?;
            let value = pair.next()?;
            if kind.content == COMMON_NAME && matches!(value.tag, UTF8_STRING | PRINTABLE_STRING) {
                names.push(String::from_utf8(value.content.to_vec()).ok()?);
            }
        }
    }
    Some(names)
}

fn alternative_names(extensions: &[u8]) -> Option<Vec<String>> {
    // Elements that are none hide no names.
    let mut all = Reader(extensions);
    while !all.0.is_empty() {
        all.expect(SEQUENCE)?;
    }
    let Some(value) = extension(extensions, SUBJECT_ALT_NAME) else { return Some(Vec::new()) };
    let (mut list, mut names) = (Reader(Reader(value).expect(SEQUENCE)?.content), Vec::new());
    while let Some(name) = list.next() {
        if ALTERNATIVES.contains(&name.tag) {
            names.push(String::from_utf8(name.content.to_vec()).ok()?);
        }
    }
    Some(names)
}

/// One tag, length and value.
#[derive(Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Element<'a>> {
        let [tag, first, after @ ..] = self.0 else { return None };
        let (length, after) = match first {
            0..=0x7f => (usize::from(*first), after),
            0x81..=0x84 => {
                let (digits, after) = after.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0_usize, |sum, digit| sum << 8 | usize::from(*digit)), after)
            }
            _ => return None,
        };
        let (content, rest) = after.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - rest.len())?;
        self.0 = rest;
        Some(Element { tag: *tag, content, whole })
    }

    fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`. RFC 5280 §4.1.2.5.
fn time(element: Element<'_>) -> Option<u64> {
    let digits = element.content.strip_suffix(b"Z")?;
    let (year, rest) = match (element.tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2_000 + year } else { 1_900 + year }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let mut fields = [0; 5];
    for (field, digits) in fields.iter_mut().zip(rest.chunks(2)) {
        *field = number(digits)?;
    }
    let [month, day, hour, minute, second] = fields;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Before 1970 is as good as 1970: long over.
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Days from 1970-01-01 in the Gregorian calendar; 0 for earlier years. Years are counted from March, so that the leap
/// day is the last of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    const DAYS_TO_1970_FROM_YEAR_0: u64 = 719_468;
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.saturating_sub(DAYS_TO_1970_FROM_YEAR_0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times() {
        let at = |tag, content: &[u8]| time(Element { tag, content, whole: content });
        assert_eq!(at(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(at(UTC_TIME, b"261121043120Z"), Some(1_795_235_480));
        assert_eq!(at(GENERALIZED_TIME, b"20240229235959Z"), Some(1_709_251_199));
        assert_eq!(at(GENERALIZED_TIME, b"20000301000000Z"), Some(951_868_800));
        assert_eq!(at(UTC_TIME, b"500101000000Z"), Some(0));
        for bad in [&b"261121043120"[..], b"261321043120Z", b"26112104312xZ", b"20261121043120Z", b"Z", b""] {
            assert_eq!(at(UTC_TIME, bad), None);
        }
    }

    #[test]
    fn whose_a_certificate_is() {
        let key = rcgen::KeyPair::generate().unwrap();
        let made = |common: &[&str], names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut params = rcgen::CertificateParams::new(names).unwrap();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(rcgen::DnType::CountryName, "DE");
            for (at, name) in common.iter().enumerate() {
                // The library has each kind once: the others are of the same identifier.
                let kind = match at {
                    0 => rcgen::DnType::CommonName,
                    _ => rcgen::DnType::CustomDnType(vec![2, 5, 4, 3]),
                };
                params.distinguished_name.push(kind, *name);
            }
            params.self_signed(&key).unwrap().der().to_vec()
        };
        assert_eq!(subject_names(&made(&["alice"], &[])), ["alice"]);
        assert_eq!(subject_names(&made(&["é"], &["a.org", "192.0.2.1", "b.org"])), ["é", "a.org", "b.org"]);
        assert_eq!(subject_names(&made(&[], &["a.org"])), ["a.org"]);
        assert_eq!(subject_names(&made(&["alice", "bob"], &["a.org"])), ["a.org"], "whose, of two?");
    }

    #[test]
    fn whose_key_has_signed_a_certificate_and_its_number() {
        let keys = [rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap()];
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_identifier_method = rcgen::KeyIdMethod::PreSpecified(vec![7; 20]);
        let issuer = rcgen::Issuer::new(params, &keys[0]);
        let mut params = rcgen::CertificateParams::new(["a.org".to_string()]).unwrap();
        params.serial_number = Some(rcgen::SerialNumber::from_slice(&[0x81, 2, 3]));
        params.use_authority_key_identifier_extension = true;
        let made = params.signed_by(&keys[1], &issuer).unwrap();
        assert_eq!(issuer_and_serial(made.der()), Some((&[7; 20][..], &[0, 0x81, 2, 3][..])));
        assert_eq!(subject_names(made.der()), ["rcgen self signed cert", "a.org"]);
        let alone = rcgen::generate_simple_self_signed(["a.org".to_string()]).unwrap();
        assert_eq!(issuer_and_serial(alone.cert.der()), None);
    }

    #[test]
    fn a_certificate_and_every_damage_to_it() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["localhost".to_string()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        let found = facts(der).unwrap();
        assert_eq!(found.spki, rcgen::PublicKeyData::subject_public_key_info(&key));
        assert_eq!(found.public_key, key.public_key_raw());
        for end in 0..der.len() {
            assert_eq!(facts(&der[..end]), None);
            assert!(subject_names(&der[..end]).is_empty());
            assert_eq!(issuer_and_serial(&der[..end]), None);
        }
        let mut damaged = der.to_vec();
        for place in 0..damaged.len() {
            for bit in 0..8 {
                damaged[place] ^= 1 << bit;
                facts(&damaged);
                subject_names(&damaged);
                issuer_and_serial(&damaged);
                damaged[place] ^= 1 << bit;
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(der in prop::collection::vec(any::<u8>(), 0..80)) {
            facts(&der);
            subject_names(&der);
        }
    }
}
