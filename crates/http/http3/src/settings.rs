//! The SETTINGS frame. RFC 9114 §7.2.4, RFC 9204 §5, RFC 9220 §3, RFC 9297 §2.1.1.

use crate::error::{Code, ConnectionError};
use crate::frame;
use wire::{Reader, varint};

mod id {
    pub(super) const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
    pub(super) const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    pub(super) const QPACK_BLOCKED_STREAMS: u64 = 0x07;
    pub(super) const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
    pub(super) const H3_DATAGRAM: u64 = 0x33;
    /// A reserved one, to keep the peer used to what it does not know. RFC 9114 §7.2.4.1.
    pub(super) const GREASE: u64 = 0x1f * 0x5eed + 0x21;
}

/// The largest SETTINGS payload that we take, in bytes. Known settings take some 50.
pub(crate) const MAX_PAYLOAD: u64 = 1_024;

/// What an endpoint says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest field section that it takes, in bytes as RFC 9114 §4.2.2 counts them.
    pub max_field_section_size: u64,
    /// The capacity up to which its peer may use a dynamic table, in bytes. Ours is 0.
    pub qpack_max_table_capacity: u64,
    /// How many streams may wait for insertions into that table. Ours is 0.
    pub qpack_blocked_streams: u64,
    /// Whether it takes extended CONNECT requests. RFC 9220.
    pub enable_connect_protocol: bool,
    /// Whether it takes HTTP datagrams. RFC 9297.
    pub h3_datagram: bool,
}

impl Default for Settings {
    /// What holds until SETTINGS says otherwise.
    fn default() -> Settings {
        Settings {
            max_field_section_size: varint::MAX,
            qpack_max_table_capacity: 0,
            qpack_blocked_streams: 0,
            enable_connect_protocol: false,
            h3_datagram: false,
        }
    }
}

impl Settings {
    /// Appends a SETTINGS frame: what differs from the default, and one setting without a meaning.
    pub(crate) fn append_frame(&self, out: &mut Vec<u8>) {
        let mut payload = self.to_payload();
        //= rfc9114/7.2.4.1#1
        varint::append(&mut payload, id::GREASE);
        varint::append(&mut payload, 0x7e);
        frame::append_header(out, frame::ty::SETTINGS, payload.len() as u64);
        out.extend_from_slice(&payload);
    }

    /// What differs from the default, as a SETTINGS frame has it: what clients and tickets remember for early data.
    /// Source: RFC 9114 §7.2.4.2.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(32);
        let default = Settings::default();
        let mut setting = |id: u64, value: u64, usual: u64| {
            if value != usual {
                varint::append(&mut payload, id);
                varint::append(&mut payload, value);
            }
        };
        setting(id::MAX_FIELD_SECTION_SIZE, self.max_field_section_size, default.max_field_section_size);
        setting(id::QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity, 0);
        setting(id::QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams, 0);
        setting(id::ENABLE_CONNECT_PROTOCOL, u64::from(self.enable_connect_protocol), 0);
        setting(id::H3_DATAGRAM, u64::from(self.h3_datagram), 0);
        payload
    }

    /// Reads the payload of a SETTINGS frame, which the caller has bounded by [`MAX_PAYLOAD`].
    ///
    /// # Errors
    /// Duplicates, identifiers of HTTP/2 and invalid values are H3_SETTINGS_ERROR; a wrong layout is H3_FRAME_ERROR.
    pub(crate) fn parse(payload: &[u8]) -> Result<Settings, ConnectionError> {
        let mut settings = Settings::default();
        let mut reader = Reader::new(payload);
        // A setting takes two bytes at least, and the payload is bounded: so is this list.
        let mut seen: Vec<u64> = Vec::new();
        while !reader.is_empty() {
            let (Ok(id), Ok(value)) = (reader.varint(), reader.varint()) else {
                return Err(ConnectionError {
                    code: Code::FRAME_ERROR,
                    reason: "SETTINGS ends within a setting",
                });
            };
            seen.push(id);
            //= rfc9114/7.2.4#4
            settings.set(id, value)?;
        }
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair.first() == pair.last()) {
            //= rfc9114/7.2.4#3
            return Err(invalid("a setting occurs twice"));
        }
        Ok(settings)
    }

    fn set(&mut self, id: u64, value: u64) -> Result<(), ConnectionError> {
        match id {
            id::MAX_FIELD_SECTION_SIZE => self.max_field_section_size = value,
            id::QPACK_MAX_TABLE_CAPACITY => self.qpack_max_table_capacity = value,
            id::QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            id::ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = switch(value)?,
            id::H3_DATAGRAM => self.h3_datagram = switch(value)?,
            // RFC 9114 §7.2.4.1: defined for HTTP/2 without a meaning here.
            //= rfc9114/7.2.4.1#2
            0x00 | 0x02..=0x05 => return Err(invalid("a setting of HTTP/2")),
            _ => {}
        }
        Ok(())
    }
}

fn switch(value: u64) -> Result<bool, ConnectionError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(invalid("a setting that is 0 or 1 has another value")),
    }
}

const fn invalid(reason: &'static str) -> ConnectionError {
    ConnectionError { code: Code::SETTINGS_ERROR, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(settings: &[(u64, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (id, value) in settings {
            varint::append(&mut out, *id);
            varint::append(&mut out, *value);
        }
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let settings = Settings { max_field_section_size: 65_536, h3_datagram: true, ..Settings::default() };
        let mut out = Vec::new();
        settings.append_frame(&mut out);
        let mut input = &out[..];
        let header = frame::HeaderReader::default().read(&mut input).unwrap();
        assert_eq!((header.ty, header.length), (frame::ty::SETTINGS, input.len() as u64));
        assert_eq!(Settings::parse(input), Ok(settings));
        assert_eq!(Settings::parse(&[]), Ok(Settings::default()));
    }

    #[test]
    fn wrong_settings_are_refused() {
        let table: [(&[(u64, u64)], Code); 9] = [
            (&[(0x00, 1)], Code::SETTINGS_ERROR),
            (&[(0x02, 0)], Code::SETTINGS_ERROR),
            (&[(0x03, 100)], Code::SETTINGS_ERROR),
            (&[(0x04, 65_535)], Code::SETTINGS_ERROR),
            (&[(0x05, 16_384)], Code::SETTINGS_ERROR),
            (&[(0x06, 1), (0x06, 1)], Code::SETTINGS_ERROR),
            (&[(0x21, 1), (0x06, 1), (0x21, 2)], Code::SETTINGS_ERROR),
            (&[(0x08, 2)], Code::SETTINGS_ERROR),
            (&[(0x33, 7)], Code::SETTINGS_ERROR),
        ];
        for (settings, code) in table {
            let outcome = Settings::parse(&payload(settings)).map_err(|error| error.code);
            assert_eq!(outcome, Err(code), "{settings:?}");
        }
        assert_eq!(Settings::parse(&[0x06]).map_err(|error| error.code), Err(Code::FRAME_ERROR));
        assert!(
            Settings::parse(&payload(&[(0x40, 5), (0x21, 6), (0x0d, 3)])).is_ok(),
            "unknown settings are ignored"
        );
    }

    proptest! {
        #[test]
        fn any_payload_is_handled(payload: Vec<u8>) {
            let _ = Settings::parse(&payload);
        }
    }
}
