//! Which bytes may stand in names, values and pseudo-header fields. RFC 9110 §5.1, §5.5; RFC 3986.
//!
//! One table with a bit for each purpose, computed at compile time from the RFCs' own listings.

const NAME: u8 = 1;
const TOKEN: u8 = 2;
const VALUE: u8 = 4;
const HOST: u8 = 8;
const PATH: u8 = 16;
const SCHEME: u8 = 32;
const LITERAL: u8 = 64;

static CLASSES: [u8; 256] = classes();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let char = byte as u8;
        let alphanumeric = char.is_ascii_alphanumeric();
        let mut class = 0;
        // RFC 9110 §5.6.2: token. A field name is one, in lower case (RFC 9114 §4.2).
        if alphanumeric || contains(b"!#$%&'*+-.^_`|~", char) {
            class |= TOKEN;
            if !char.is_ascii_uppercase() {
                class |= NAME;
            }
        }
        // RFC 9110 §5.5: visible characters, obs-text, space and tab.
        if char == b'\t' || (char >= 0x20 && char != 0x7f) {
            class |= VALUE;
        }
        // RFC 3986 §2.3, §2.2: unreserved, sub-delims and what introduces an escape.
        let common = alphanumeric || contains(b"-._~!$&'()*+,;=%", char);
        // RFC 3986 §3.2.2: a name or an address; between brackets colons, too.
        if common {
            class |= HOST | LITERAL;
        }
        if char == b':' {
            class |= LITERAL;
        }
        // RFC 3986 §3.3, §3.4; browsers send some characters unescaped that the RFC would have escaped: they cannot be
        // mistaken for anything. A fragment ("#") never belongs into a request.
        if common || contains(b":@/?\"<>[\\]^`{|}", char) {
            class |= PATH;
        }
        if alphanumeric || contains(b"+-.", char) {
            class |= SCHEME;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

const fn contains(set: &[u8], wanted: u8) -> bool {
    let mut rest = set;
    while let Some((&first, tail)) = rest.split_first() {
        if first == wanted {
            return true;
        }
        rest = tail;
    }
    false
}

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}

#[inline]
fn all(text: &[u8], class: u8) -> bool {
    text.iter().all(|&byte| is(byte, class))
}

/// A field name: a token in lower case, not empty.
#[inline]
pub(super) fn is_name(text: &[u8]) -> bool {
    !text.is_empty() && all(text, NAME)
}

/// A token, not empty: a method.
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && all(text, TOKEN)
}

/// A field value: no control characters but tab, and no blanks around it.
#[inline]
pub(super) fn is_value(text: &[u8]) -> bool {
    is_trimmed(text) && (is_plain(text) || all(text, VALUE))
}

/// Whether text of 8 bytes or more has no control characters, seen eight bytes at a time. Answers have a hundred bytes of values
/// and more, nearly always without a tab.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    no_word(text, |word| below(word, 0x20) | equal(word, 0x7f))
}

/// Whether text of 8 bytes or more has but visible characters of ASCII, and no number sign: all of them may stand in a path.
#[inline]
fn is_plain_path(text: &[u8]) -> bool {
    no_word(text, |word| word | below(word, 0x21) | equal(word, 0x7f) | equal(word, b'#'))
}

const EACH: u64 = u64::MAX / 255;

/// Whether text has 8 bytes or more and `marks` sets the highest bit of no byte, for any eight of them that are a word.
#[inline]
fn no_word(text: &[u8], marks: impl Fn(u64) -> u64) -> bool {
    let Some(last) = text.last_chunk::<8>() else { return false };
    let (words, _) = text.as_chunks::<8>();
    let is_marked = |word: &[u8; 8]| marks(u64::from_le_bytes(*word)) & (EACH * 0x80) != 0;
    !is_marked(last) && !words.iter().any(is_marked)
}

/// Marks bytes below `least`, which is at most 0x80, and perhaps bytes above one that is.
#[inline]
fn below(word: u64, least: u8) -> u64 {
    // The subtraction borrows from a byte's highest bit if the byte is too low, and then perhaps from the byte above.
    word.wrapping_sub(EACH * u64::from(least)) & !word
}

/// Marks bytes that are `byte`, and perhaps bytes above one that is.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    let other = word ^ (EACH * u64::from(byte));
    other.wrapping_sub(EACH) & !other
}

/// No blanks around it.
#[inline]
pub(super) fn is_trimmed(text: &[u8]) -> bool {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !blank(text.first()) && !blank(text.last())
}

/// A scheme. RFC 3986 §3.1.
pub(super) fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic) && all(text, SCHEME)
}

/// The path and query of an http or https URI, or the asterisk form. RFC 9114 §4.3.1.
pub(super) fn is_path(text: &[u8]) -> bool {
    text == b"*" || (text.first() == Some(&b'/') && (is_plain_path(text) || all(text, PATH)))
}

/// A host and perhaps a port, without user information. RFC 3986 §3.2, RFC 9114 §4.3.1.
pub(super) fn is_authority(text: &[u8]) -> bool {
    let first_outside =
        |text: &[u8], class| text.iter().position(|&byte| !is(byte, class)).unwrap_or(text.len());
    let (host, rest) = match text.strip_prefix(b"[") {
        Some(literal) => {
            let (address, rest) = literal.split_at(first_outside(literal, LITERAL));
            let Some(rest) = rest.strip_prefix(b"]") else { return false };
            (address, rest)
        }
        None => text.split_at(first_outside(text, HOST)),
    };
    !host.is_empty() && (rest.is_empty() || rest.strip_prefix(b":").is_some_and(is_port))
}

/// Whether an authority names a port, as CONNECT requires. RFC 9110 §9.3.6.
pub(super) fn has_port(authority: &[u8]) -> bool {
    let after_host = authority.iter().rposition(|&byte| byte == b']').map_or(0, |end| end + 1);
    authority
        .get(after_host..)
        .and_then(|rest| rest.iter().rposition(|&byte| byte == b':').and_then(|colon| rest.get(colon + 1..)))
        .is_some_and(|port| !port.is_empty())
}

/// RFC 3986 §3.2.3 permits an empty port; it means the scheme's default.
fn is_port(text: &[u8]) -> bool {
    let number = text.iter().try_fold(0_u32, |number, digit| {
        digit.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
    });
    number.is_some_and(|number| number <= u32::from(u16::MAX))
}

/// A Content-Length: digits only, and within 64 bits. RFC 9110 §8.6.
pub(super) fn content_length(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
