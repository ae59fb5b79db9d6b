//! Control frames that a connection sends once: HANDSHAKE_DONE, NEW_TOKEN, and keep-alive PING.

use crate::announce::Announce;
use crate::builder::PacketBuilder;
use crate::sent::SentFrame;
use crate::space::write_ping;
use base::net::Addresses;
use base::time::Instant;
use wire::frame;

/// HANDSHAKE_DONE, NEW_TOKEN and keep-alive PINGs. Source: RFC 9000 §19.20, §8.1.3, §10.1.2.
#[derive(Debug, Default)]
pub(crate) struct ControlFrames {
    handshake_done: Announce<()>,
    token: Announce<Box<[u8]>>,
    /// A token should be made for a client that was found at these addresses, then.
    wanted_token: Option<Box<(Instant, Addresses)>>,
    ping: bool,
}

impl ControlFrames {
    pub(crate) fn announce_handshake_done(&mut self) {
        self.handshake_done.request(());
    }

    pub(crate) fn announce_token(&mut self, token: Box<[u8]>) {
        self.token.request(token);
    }

    /// The client has proved to be at another address: its token is of no use there. Source: RFC 9000 §9.3.
    pub(crate) fn want_token(&mut self, now: Instant, addresses: Addresses) {
        self.wanted_token = Some(Box::new((now, addresses)));
    }

    /// Whether the endpoint must make a token. Only the endpoint has the token key.
    #[inline]
    pub(crate) fn take_wanted_token(&mut self) -> Option<(Instant, Addresses)> {
        self.wanted_token.take().map(|wanted| *wanted)
    }

    pub(crate) fn ping(&mut self) {
        self.ping = true;
    }

    /// Whether a PING waits to be sent, so that there is no need to ask for another.
    #[inline]
    pub(crate) fn owes_ping(&self) -> bool {
        self.ping
    }

    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.ping || self.handshake_done.is_pending() || self.token.is_pending()
    }

    pub(crate) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.handshake_done.is_pending() && packet.remaining() > 0 {
            packet.writer.varint(frame::ty::HANDSHAKE_DONE);
            packet.sent(SentFrame::HandshakeDone);
            self.handshake_done.on_sent();
        }
        if let Some(token) = self.token.pending() {
            let frame = frame::NewToken { token };
            if packet.remaining() >= frame.size() {
                frame.write(&mut packet.writer);
                packet.sent(SentFrame::NewToken);
                self.token.on_sent();
            }
        }
        if self.ping && packet.remaining() > 0 {
            write_ping(packet);
            self.ping = false;
        }
    }

    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        match frame {
            SentFrame::HandshakeDone => self.handshake_done.on_acked(),
            SentFrame::NewToken => self.token.on_acked(),
            _ => {}
        }
    }

    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        match frame {
            SentFrame::HandshakeDone => self.handshake_done.on_lost(),
            SentFrame::NewToken => self.token.on_lost(),
            _ => {}
        }
    }
}
