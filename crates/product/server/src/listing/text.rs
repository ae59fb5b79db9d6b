//! Names, sizes and times as a listing writes them.

use core::fmt::{self, Write as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};

/// Bytes of a name that stay as they are in a link. A colon is none of them, so that no name becomes a URL's scheme.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A name as a link has it, exact for any bytes.
pub(super) fn link(name: &[u8]) -> PercentEncode<'_> {
    percent_encode(name, KEPT)
}

/// A name as HTML text or in an attribute; bytes that are no UTF-8 become U+FFFD.
pub(super) struct Html<'a>(pub(super) &'a [u8]);

impl fmt::Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in String::from_utf8_lossy(self.0).chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// A name as a JSON string, with its quotes; bytes that are no UTF-8 become U+FFFD. RFC 8259 §7.
pub(super) struct Json<'a>(pub(super) &'a [u8]);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in String::from_utf8_lossy(self.0).chars() {
            match letter {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                letter if letter < ' ' => write!(f, "\\u{:04x}", u32::from(letter))?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}

/// Bytes as people write them, in powers of ten.
pub(super) struct Size(pub(super) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64;
        let mut unit = "";
        for larger in ["kB", "MB", "GB", "TB", "PB", "EB"] {
            if value < 999.5 {
                break;
            }
            value /= 1_000.0;
            unit = larger;
        }
        let decimals = if value < 9.95 { 1 } else { 0 };
        write!(f, "{value:.decimals$} {unit}")
    }
}
