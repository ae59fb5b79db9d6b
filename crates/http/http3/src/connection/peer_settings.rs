//! What is known of the peer's settings, and what a client remembers of them for early data. RFC 9114 §7.2.4.2.
//!
//! A client that sends early data goes by the settings of an earlier connection until SETTINGS arrives. A server that takes early
//! data must not have reduced them.

use super::Connection;
use crate::error::{Code, ConnectionError};
use crate::quic::QuicConnection;
use crate::settings::Settings;

/// The peer's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PeerSettings {
    /// Nothing is known, and the first turn has not asked what is remembered.
    #[default]
    Fresh,
    /// SETTINGS has not arrived. Those of an earlier connection, where early data was sent with them in mind.
    Awaited(Option<Settings>),
    /// SETTINGS has arrived since the last turn, and what was remembered.
    New(Settings, Option<Settings>),
    /// As SETTINGS says.
    Told(Settings),
}

impl PeerSettings {
    /// What SETTINGS says, if it has arrived.
    pub(super) fn told(&self) -> Option<&Settings> {
        match self {
            PeerSettings::New(settings, _) | PeerSettings::Told(settings) => Some(settings),
            PeerSettings::Fresh | PeerSettings::Awaited(_) => None,
        }
    }

    /// What messages are held to.
    pub(super) fn in_force(&self) -> Option<&Settings> {
        match self {
            PeerSettings::Awaited(remembered) => remembered.as_ref(),
            settings => settings.told(),
        }
    }

    /// SETTINGS has arrived.
    pub(super) fn on_told(&mut self, settings: Settings) {
        let remembered = match self {
            PeerSettings::Awaited(remembered) => remembered.take(),
            _ => None,
        };
        *self = PeerSettings::New(settings, remembered);
    }
}

/// Whether all that was permitted by `then` is permitted by `now`.
fn covers(now: &Settings, then: &Settings) -> bool {
    now.max_field_section_size >= then.max_field_section_size
        && now.qpack_max_table_capacity >= then.qpack_max_table_capacity
        && now.qpack_blocked_streams >= then.qpack_blocked_streams
        && now.enable_connect_protocol >= then.enable_connect_protocol
        && now.h3_datagram >= then.h3_datagram
}

impl Connection {
    /// Asks once what is remembered, and holds SETTINGS against it when it has arrived.
    #[inline]
    pub(super) fn compare_settings(&mut self, quic: &mut impl QuicConnection) {
        if matches!(self.settings, PeerSettings::Fresh | PeerSettings::New(..)) {
            self.on_news_of_settings(quic);
        }
    }

    #[cold]
    fn on_news_of_settings(&mut self, quic: &mut impl QuicConnection) {
        match self.settings {
            PeerSettings::Fresh => {
                self.begin_trace(quic);
                //= rfc9114/7.2.4.2#1
                let remembered = quic.remembered().filter(|_| !self.side.is_server());
                let settings = remembered.and_then(|payload| Settings::parse(&payload).ok());
                self.settings = PeerSettings::Awaited(settings);
            }
            PeerSettings::New(settings, remembered) => {
                self.settings = PeerSettings::Told(settings);
                if self.side.is_server() {
                    return;
                }
                quic.remember(&settings.to_payload());
                let is_reduced = remembered.is_some_and(|then| !covers(&settings, &then));
                if is_reduced && quic.is_early_data_accepted() {
                    // RFC 9114 §7.2.4.2: a server that has taken early data keeps to the settings which it was sent with.
                    //= rfc9114/7.2.4.2#2
                    let reason = "settings below those that early data was sent with";
                    self.fail(ConnectionError { code: Code::SETTINGS_ERROR, reason });
                }
            }
            PeerSettings::Awaited(_) | PeerSettings::Told(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::FakeQuic;
    use base::time::Instant;
    use std::sync::Arc;
    use wire::Side;

    /// A client that remembers `then` and is told `now`: what it keeps, and why it has closed the connection.
    fn told(then: &Settings, now: Settings, takes_early_data: bool) -> (Option<Vec<u8>>, Option<Code>) {
        let mut quic = FakeQuic::new(Side::Client);
        quic.remembered = Some(then.to_payload());
        let mut connection = Connection::new(Side::Client, Arc::new(Config::client()), Instant::ZERO);
        connection.compare_settings(&mut quic);
        assert_eq!((connection.settings.in_force(), connection.peer_settings()), (Some(then), None));
        quic.takes_early_data = takes_early_data;
        connection.settings.on_told(now);
        connection.compare_settings(&mut quic);
        assert_eq!(connection.peer_settings(), Some(&now));
        (quic.kept, connection.failure().map(|error| error.code))
    }

    /// Deleted, a client would send early data that breaks the server's settings, or would go on with a server that breaks its word.
    #[test]
    fn a_client_remembers_settings_and_a_server_that_takes_early_data_must_not_reduce_them() {
        let of = |max_field_section_size| Settings { max_field_section_size, ..Settings::default() };
        let kept = |settings: Settings| Some(settings.to_payload());
        assert_eq!(told(&of(1_000), of(1_000), true), (kept(of(1_000)), None));
        assert_eq!(told(&of(1_000), of(2_000), true), (kept(of(2_000)), None));
        assert_eq!(told(&of(1_000), of(999), true).1, Some(Code::SETTINGS_ERROR));
        assert_eq!(told(&of(1_000), of(999), false), (kept(of(999)), None), "nothing was sent by them");
        let with_datagrams = Settings { h3_datagram: true, ..of(1_000) };
        assert_eq!(told(&with_datagrams, of(1_000), true).1, Some(Code::SETTINGS_ERROR));
    }
}
