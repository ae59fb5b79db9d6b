//! Bodies that are made up: `/bytes/2GB`, `/bytes/512KiB`, `/bytes/123`, and `/2000000000` as interop servers have it.
//!
//! Their content is [`base::pattern`], lent without copying, so that a transfer of any size measures the protocol and no
//! disk, and the client can still verify every byte.

/// The largest body: what one QUIC stream can carry. RFC 9000 §4.5.
pub const MAX_SIZE: u64 = (1 << 62) - 1;

/// The size that `path` (decoded, without the leading slash) asks for; `None` if it is no generated name.
pub fn size_of(path: &[u8]) -> Option<u64> {
    let text = path.strip_prefix(b"bytes/").unwrap_or(path);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at_checked(digits)?;
    if unit.len() == text.len() || (!unit.is_empty() && text.len() == path.len()) {
        return None;
    }
    let number = digits
        .iter()
        .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    number.checked_mul(unit_size(unit)?).filter(|size| *size <= MAX_SIZE)
}

fn unit_size(unit: &[u8]) -> Option<u64> {
    let mut lower = [0; 3];
    let lower = lower.get_mut(..unit.len())?;
    lower.copy_from_slice(unit);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"" | b"b" => 1,
        b"kb" => 1_000,
        b"mb" => 1_000_000,
        b"gb" => 1_000_000_000,
        b"tb" => 1_000_000_000_000,
        b"kib" => 1 << 10,
        b"mib" => 1 << 20,
        b"gib" => 1 << 30,
        b"tib" => 1 << 40,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes() {
        let table: &[(&str, Option<u64>)] = &[
            ("bytes/2GB", Some(2_000_000_000)),
            ("bytes/2gb", Some(2_000_000_000)),
            ("bytes/512KiB", Some(524_288)),
            ("bytes/123", Some(123)),
            ("bytes/123B", Some(123)),
            ("bytes/0", Some(0)),
            ("2000000000", Some(2_000_000_000)),
            ("007", Some(7)),
            ("4611686018427387903", Some(MAX_SIZE)),
            ("4611686018427387904", None),
            ("99999999999999999999999", None),
            ("bytes/99999999999TiB", None),
            ("2GB", None),
            ("bytes/", None),
            ("bytes", None),
            ("bytes/GB", None),
            ("bytes/1.5GB", None),
            ("bytes/-1", None),
            ("bytes/1/2", None),
            ("bytes/bytes/1", None),
            ("", None),
            ("index.html", None),
        ];
        for (name, size) in table {
            assert_eq!(size_of(name.as_bytes()), *size, "{name}");
        }
    }
}
