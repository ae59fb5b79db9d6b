//! The methods that the application calls: actions and queries.

use super::assembly::Assembly;
use super::close::close_period;
use super::components::{ControlFrames, DatagramError, DatagramRoom};
use super::lanes::LaneUse;
use super::{Connection, Counters, Transmitted};
use crate::cid::{LocalCids, ResetToken};
use crate::error::AlreadySending;
use crate::event::{Event, StreamSink};
use crate::stream_id::{Dir, StreamId};
use crate::streams::{OpenError, Priority, ResetAtError, WriteError};
use crate::without::Technique;
use base::net::Addresses;
use base::sink::PacketSink;
use base::time::{Duration, Instant};
use bytes::Bytes;
use recovery::congestion::{Algorithm, ResumeReport, SavedParameters, SavedParametersUpdate};
use recovery::mtu::MtuReport;
use recovery::one_way::OneWayDelays;
use wire::Side;
use wire::version::Version;

/// What a closed connection reports about its last path.
pub(crate) struct PathSummary {
    /// The path in use at last.
    pub(crate) addresses: Addresses,
    /// What it has taught; `None` where the peer was not proved to be.
    pub(crate) saved_parameters: Option<SavedParametersUpdate>,
    /// The path of which something was known, and which is to be given back.
    pub(crate) recalled: Option<Addresses>,
    pub(crate) report: ResumeReport,
    /// When the peer was last heard of.
    pub(crate) seen_at: Instant,
}

/// What the endpoint has to learn of a connection, with the component that takes its answer.
pub(crate) enum News<'a> {
    /// IDs of ours have come or gone.
    LocalCids { cids: &'a mut LocalCids, is_connected: bool },
    /// A client that moved needs a token for its new address, which was proved at this time.
    TokenWanted { proved_at: Instant, addresses: Addresses, control_frames: &'a mut ControlFrames },
    /// The connection is over.
    Closed(PathSummary),
    /// The tokens by which the peer may end the connection are others.
    ResetTokens([Option<ResetToken>; 2]),
    /// So are those of the other paths that it uses at once. To be learnt first: a token may be one of the former now.
    LaneResetTokens(Vec<ResetToken>),
}

impl Connection {
    /// Builds packets of the current lane into the sink until nothing more may go, the sink is full, or a part of the window is in it.
    pub(super) fn transmit_lane(
        &mut self,
        now: Instant,
        usage: LaneUse,
        sink: &mut impl PacketSink,
    ) -> Transmitted {
        let mut assembly = Assembly { usage, ..self.assembly() };
        let outcome = assembly.transmit(now, sink);
        if let Some(reason) = assembly.fault {
            self.fall_silent(now, reason);
        }
        outcome
    }

    /// What building packets needs.
    #[inline]
    pub(super) fn assembly(&mut self) -> Assembly<'_> {
        Assembly {
            side: self.side,
            config: &self.config,
            lifecycle: &mut self.lifecycle,
            handshake: &self.handshake,
            keys: &mut self.keys,
            spaces: &mut self.spaces,
            components: &mut self.components,
            paths: &mut self.paths,
            timers: &mut self.timers,
            counters: &mut self.counters,
            rng: &mut self.rng,
            frames: &mut self.frames,
            usage: LaneUse::Data,
            trace: &mut self.trace,
            fault: None,
        }
    }

    /// The connection's trace, if it is traced: for events of the application protocol.
    #[inline]
    pub fn trace(&mut self) -> Option<&mut qlog::Trace> {
        self.trace.as_mut().map(|trace| &mut trace.log)
    }

    /// Memory that the events of a traced connection take, in bytes.
    #[inline]
    pub fn trace_bytes(&self) -> u64 {
        self.trace.as_ref().map_or(0, |trace| trace.log.held_bytes() as u64)
    }

    /// What happened since the last call; `None` when all is told.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.components.streams.next_event())
    }

    /// Whether `next_event` has something to tell. Sending, too, makes events: it gives writers room.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty() || self.components.streams.has_events()
    }

    /// Opens a stream of our own.
    ///
    /// # Errors
    /// The peer allows no more at present; `Event::StreamsAvailable` tells when it does.
    pub fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        self.components.streams.open(dir)
    }

    /// How many streams of our own the peer permits, counted from the beginning of the connection. Source: RFC 9000 §4.6.
    pub fn permitted_streams(&self, dir: Dir) -> u64 {
        self.components.streams.permitted_streams(dir)
    }

    /// From now on the peer may open another stream only when one is over and [`Connection::release_stream`] was called: for
    /// an application that keeps streams after their last byte. To be called before the first packet.
    pub fn hold_peer_streams(&mut self) {
        self.components.streams.hold_peer_streams();
    }

    /// The application is done with a stream of the peer's. Without effect unless [`Connection::hold_peer_streams`] was called.
    pub fn release_stream(&mut self, dir: Dir) {
        self.components.streams.release(dir);
    }

    /// Hands over bytes to be sent on a stream; they are kept, not copied, until acknowledged.
    ///
    /// # Errors
    /// The stream is finished, reset or not ours to send on.
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        if self.config.without.has(Technique::SharedBuffers) {
            return self.components.streams.write(id, Bytes::copy_from_slice(&bytes));
        }
        self.components.streams.write(id, bytes)
    }

    /// Hands over all that a stream is still to carry, in two pieces, and says that no more follows: [`Connection::write`] and
    /// [`Connection::finish_stream`] at once.
    ///
    /// # Errors
    /// As `write`.
    pub fn write_whole(&mut self, id: StreamId, pieces: [Bytes; 2]) -> Result<(), WriteError> {
        if self.config.without.has(Technique::SharedBuffers) {
            let copies = pieces.map(|bytes| Bytes::copy_from_slice(&bytes));
            return self.components.streams.write_whole(id, copies);
        }
        self.components.streams.write_whole(id, pieces)
    }

    /// As `write`, for a few bytes that are cheaper to copy than to share.
    ///
    /// # Errors
    /// As `write`.
    pub fn write_slice(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), WriteError> {
        self.components.streams.write_slice(id, bytes)
    }

    /// Sends a DATAGRAM frame: unreliable, not ordered, dropped from the front of its queue when it waits too long.
    ///
    /// # Errors
    /// The peer takes none, or none so large. Source: RFC 9221 §5.
    pub fn send_datagram(&mut self, bytes: Bytes) -> Result<(), DatagramError> {
        self.components.datagrams.send(bytes)
    }

    /// Streams that have state, of both sides.
    pub fn open_streams(&self) -> usize {
        self.components.streams.count()
    }

    /// Streams of this kind on which the peer has not acknowledged all that we wrote: data, the end, or a reset. 0 says that
    /// the connection can be closed without loss. Walks over all streams: meant for connections that are about to end.
    pub fn unacknowledged_streams(&self, dir: Dir) -> usize {
        self.components.streams.unacknowledged(dir)
    }

    /// The largest payload that `send_datagram` can put into a packet now, in bytes; `None` when the peer takes none.
    pub fn max_datagram_size(&self) -> Option<usize> {
        // First byte, connection ID, packet number and tag.
        let overhead = 1 + self.components.peer_cids.active().len() + 4 + crypto::TAG_LEN;
        self.components.datagrams.max_size(usize::from(self.packet_size()).saturating_sub(overhead))
    }

    /// What `send_datagram` takes before the oldest datagrams that wait give way. It grows when packets are sent.
    pub fn datagram_room(&self) -> DatagramRoom {
        self.components.datagrams.room()
    }

    /// DATAGRAM frames that gave way to later ones before they were sent.
    pub fn dropped_datagrams(&self) -> u64 {
        self.components.datagrams.dropped()
    }

    /// Bytes of stream data that are kept, to be acknowledged or to be put in order. Of a paused stream up to 64 KiB may count
    /// that were lent already.
    pub fn retained_bytes(&self) -> u64 {
        self.components.streams.retained_bytes()
    }

    /// Bytes that were written on streams and not acknowledged yet, counted in whole buffers: one counts until its last byte is
    /// acknowledged.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.components.streams.retained()
    }

    /// Bytes on bidirectional streams that the peer has acknowledged since the beginning. Bytes that were sent twice may
    /// count twice.
    pub fn delivered_bytes(&self) -> u64 {
        self.components.streams.delivered()
    }

    /// Memory is scarce: writers find no room beyond `retained` bytes of what was written and not acknowledged, and receive
    /// windows grow no more. `None`: there is enough again.
    pub fn limit_memory(&mut self, retained: Option<u64>) {
        self.components.streams.limit_memory(retained);
    }

    /// Bytes that a stream takes before it asks its writer to wait for `Event::Writable`.
    pub fn send_capacity(&mut self, id: StreamId) -> usize {
        self.components.streams.send_capacity(id)
    }

    /// Whether a stream takes so many bytes now, few as they are: at most 16 KiB. Cheaper than [`Connection::send_capacity`], and asks for
    /// no event.
    pub fn has_room(&mut self, id: StreamId, bytes: u64) -> bool {
        self.components.streams.has_room(id, bytes)
    }

    /// No more bytes follow on the stream.
    ///
    /// # Errors
    /// As `write`.
    pub fn finish_stream(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.components.streams.finish(id)
    }

    /// Gives up sending on a stream.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        self.components.streams.reset(id, code);
    }

    /// Whether [`Connection::reset_at`] is possible: the peer has said that it understands RESET_STREAM_AT.
    pub fn can_reset_at(&self) -> bool {
        self.handshake.can_reset_at()
    }

    /// As `reset`, but the first `reliable_size` bytes of the stream reach the peer's application all the same. May be called again
    /// with a smaller size; the code of the first call holds. Source: draft-ietf-quic-reliable-stream-reset.
    ///
    /// # Errors
    /// The peer does not understand that, there is nothing to reset, or fewer bytes were written.
    pub fn reset_at(&mut self, id: StreamId, code: u64, reliable_size: u64) -> Result<(), ResetAtError> {
        // Known when the handshake has brought the peer's parameters: in early data there is no such reset.
        //= reliable-stream-reset/3#2
        if !self.can_reset_at() {
            return Err(ResetAtError::Unsupported);
        }
        self.components.streams.reset_at(id, code, reliable_size)
    }

    /// Asks the peer to give up sending on a stream; what still arrives is discarded.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) {
        self.components.streams.stop_sending(id, code);
    }

    /// Lends a paused stream's bytes again, now that the application can take some.
    pub fn deliver(&mut self, now: Instant, id: StreamId, sink: &mut impl StreamSink) {
        let rtt = self.paths.active().rtt.smoothed();
        self.components.streams.deliver(id, now, rtt, sink);
    }

    /// The data path holds trains back until they depart: from now on some are handed to it before their time, at most
    /// [`recovery::pacer::HORIZON`] before, so that a wake-up serves several.
    pub fn use_departure_times(&mut self) {
        self.paths.use_departure_times();
    }

    /// For a caller that has many connections and wants to be woken seldom: what is paced leaves in trains of up to so much of
    /// the rate, and the peer is asked to acknowledge as rarely. Trains stay within a quarter of the round trip and ten packets, or
    /// half of a long queue that stands on the path ([`recovery::pacer::Savings`]), or are as they would be without.
    pub fn set_train_span(&mut self, span: Duration) {
        self.paths.set_train_span(span);
    }

    /// The interface takes no UDP payload of more than `bytes`: nothing larger is tried. To be told before the first packet.
    pub fn limit_packet_size(&mut self, bytes: usize) {
        let limit = u16::try_from(bytes).unwrap_or(u16::MAX);
        self.paths.on_size_limit(limit.max(crate::config::MIN_PACKET_SIZE));
    }

    /// The interface has refused a datagram of `bytes` to the peer as too long. Others than this connection may have sent it;
    /// what it tells of the interface is true for all.
    pub fn on_too_large(&mut self, now: Instant, bytes: usize) {
        let size = u16::try_from(bytes).unwrap_or(u16::MAX);
        self.paths.active_mut().on_size_refused(now, size);
    }

    /// Has this congestion controller decide how fast data leaves, instead of the one that the configuration names. A server
    /// calls it when it accepts the connection, knowing the client's address and most often the name it asks for; a client
    /// before its first turn.
    ///
    /// # Errors
    /// Something was sent already: what the present controller has learned and asked of the network cannot be taken over.
    pub fn set_congestion(&mut self, algorithm: Algorithm) -> Result<(), AlreadySending> {
        if self.counters.sent_packets > 0 {
            return Err(AlreadySending);
        }
        self.paths.set_congestion(algorithm);
        Ok(())
    }

    /// What became of careful resume on the path in use.
    pub fn resume_report(&self) -> ResumeReport {
        self.paths.active().congestion.resume_report()
    }

    /// An earlier connection on the same path has found this out. Before anything is sent.
    pub(crate) fn resume_from(&mut self, saved: SavedParameters) {
        self.path_memory.recalled = Some(Box::new(self.addresses()));
        self.paths.resume_from(saved);
    }

    /// What the endpoint has to learn of the connection, one thing at a time; `None` when all is told.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Option<News<'_>> {
        let is_connected = self.is_connected();
        if self.components.local_cids.has_changes() {
            return Some(News::LocalCids { cids: &mut self.components.local_cids, is_connected });
        }
        if let Some(lane) = self.components.lanes.as_ref().and_then(|lanes| lanes.changed_cids()) {
            let cids = self.components.local_cids_of(lane)?;
            return Some(News::LocalCids { cids, is_connected });
        }
        if let Some((proved_at, addresses)) = self.components.control_frames.take_wanted_token() {
            let control_frames = &mut self.components.control_frames;
            return Some(News::TokenWanted { proved_at, addresses, control_frames });
        }
        if let Some(summary) = self.take_path_summary() {
            return Some(News::Closed(summary));
        }
        if let Some(tokens) = self.components.lanes.as_mut().and_then(|lanes| lanes.take_reset_tokens()) {
            return Some(News::LaneResetTokens(tokens));
        }
        self.components.peer_cids.take_reset_tokens().map(News::ResetTokens)
    }

    /// What is to be remembered of the path, told once, when the connection is over.
    #[inline]
    fn take_path_summary(&mut self) -> Option<PathSummary> {
        if !self.lifecycle.is_over() || core::mem::replace(&mut self.path_memory.is_told, true) {
            return None;
        }
        let path = self.paths.active();
        let saved_parameters = path.congestion.saved_parameters().filter(|_| path.is_validated());
        if saved_parameters.is_none() && self.path_memory.recalled.is_none() {
            return None;
        }
        Some(PathSummary {
            addresses: path.addresses,
            saved_parameters,
            recalled: self.path_memory.recalled.as_deref().copied(),
            report: path.congestion.resume_report(),
            seen_at: self.timers.active_at(),
        })
    }

    /// The congestion controller in use.
    pub fn congestion(&self) -> Algorithm {
        self.paths.active().congestion.algorithm()
    }

    /// How the stream shares the connection with others. Source: RFC 9218.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.components.streams.set_priority(id, priority);
    }

    /// How the stream shares the connection with others; the default when there is no such stream.
    pub fn priority(&mut self, id: StreamId) -> Priority {
        self.components.streams.priority(id)
    }

    /// Client or server.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Whether all state may be dropped.
    pub fn is_gone(&self) -> bool {
        self.lifecycle.is_gone()
    }

    /// Whether the connection has been closed by either end.
    pub fn is_closed(&self) -> bool {
        self.lifecycle.is_over()
    }

    /// Whether streams may carry data both ways.
    pub fn is_connected(&self) -> bool {
        self.handshake.is_complete() && !self.lifecycle.is_over()
    }

    /// Whether the handshake was completed, also when the connection has ended since.
    pub fn has_connected(&self) -> bool {
        self.handshake.is_complete()
    }

    /// Whether the other end is known to have completed the handshake, too. Source: RFC 9001 §4.1.2.
    pub fn is_confirmed(&self) -> bool {
        self.handshake.is_confirmed() && !self.lifecycle.is_over()
    }

    /// Whether [`Connection::take_handshake_work`] has something to give away.
    #[inline]
    pub fn has_handshake_work(&self) -> bool {
        !self.handshake.is_complete() && self.handshake.tls.has_work() && !self.lifecycle.is_over()
    }

    /// The step that the handshake waits for, once: a signature that takes long. It may run on any thread;
    /// [`Connection::finish_handshake_work`] takes its outcome. Meanwhile the connection sends nothing, keeps what arrives within its
    /// bounds, and may end. Only on servers whose configuration says so ([`crypto::ServerTls::with_slow_steps_apart`]); on others the
    /// handshake takes the step in `receive`.
    pub fn take_handshake_work(&mut self) -> Option<crypto::HandshakeWork> {
        if self.lifecycle.is_over() {
            return None;
        }
        self.handshake.tls.take_work()
    }

    /// The application protocol agreed on.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.handshake.tls.alpn()
    }

    /// The name that the client asked for.
    pub fn server_name(&self) -> Option<&str> {
        self.handshake.tls.server_name()
    }

    /// The cipher suite in use; `None` before the handshake has chosen one.
    pub fn suite(&self) -> Option<crypto::Suite> {
        self.handshake.tls.suite()
    }

    /// The peer's certificate chain in DER, its own certificate first; empty when it has shown none.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let chain = self.handshake.tls.peer_certificates().unwrap_or_default();
        chain.iter().map(|certificate| certificate.to_vec()).collect()
    }

    /// Fills `out` with keying material of this connection, the same at both ends. Source: RFC 8446 §7.5.
    ///
    /// # Errors
    /// The handshake is not complete, or `out` is empty or longer than the exporter can fill.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), crypto::TlsError> {
        self.handshake.tls.export_keying_material(out, label, Some(context))
    }

    /// Whether the handshake has used a ticket of an earlier connection, and no certificate. Source: RFC 8446 §2.2.
    pub fn is_resumed(&self) -> bool {
        self.handshake.tls.is_resumed()
    }

    /// The name of the key exchange, as IANA lists it, once it is negotiated. Source: RFC 8446 §4.2.7.
    pub fn key_exchange(&self) -> Option<&'static str> {
        self.handshake.tls.key_exchange()
    }

    /// What became of early data. A client may send on streams at once when it is `Offered`. Source: RFC 9001 §4.6.
    pub fn early_status(&self) -> crypto::EarlyStatus {
        self.handshake.tls.early_status()
    }

    /// Whether what has arrived may be the copy of an earlier connection, sent by an attacker: on a server that takes early data,
    /// until the handshake is complete, which [`Event::Connected`] tells. What is done about it until then must be harmless
    /// when it is done twice. Source: RFC 8446 §8, RFC 8470 §3.
    pub fn is_early(&self) -> bool {
        //= rfc9001/9.2#1
        self.side == Side::Server && !self.handshake.is_complete() && self.counters.received_early > 0
    }

    /// On a client with a store of sessions, keeps what the application must know of this server before it answers on the next
    /// connection, such as HTTP/3's SETTINGS. At most 1,024 bytes are kept.
    pub fn keep_application(&self, state: &[u8]) {
        self.handshake.tls.keep_application(state);
    }

    /// What an earlier connection to this server has kept by [`Connection::keep_application`].
    pub fn kept_application(&self) -> Option<Vec<u8>> {
        self.handshake.tls.application()
    }

    /// The version that the connection began with. A server may have moved it to another one (RFC 9368).
    pub(crate) fn first_version(&self) -> Version {
        self.handshake.versions.first()
    }

    /// The version in use.
    pub fn version(&self) -> Version {
        self.handshake.version
    }

    /// The validated path in use.
    pub fn addresses(&self) -> Addresses {
        self.paths.validated_addresses()
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.paths.active().rtt.smoothed()
    }

    /// The least round-trip time of late; zero before the first sample.
    pub fn min_rtt(&self) -> Duration {
        self.paths.active().rtt.min()
    }

    /// How long packets take each way; `None` before the first sample, where either end does without
    /// ([`TransportConfig::timestamps`](crate::TransportConfig::timestamps)), and where several paths are used at once.
    pub fn one_way_delays(&self) -> Option<OneWayDelays> {
        self.components.timestamps.as_ref()?.delays()
    }

    /// Bytes that may be under way on the active path: the congestion window. Source: RFC 9002 §7.
    pub fn congestion_window(&self) -> u64 {
        self.paths.active().congestion.window()
    }

    /// The largest UDP payload that is sent at present, in bytes.
    pub fn packet_size(&self) -> u16 {
        self.paths.active().max_packet_size
    }

    /// What the search for larger packets has found on the path in use, and what it cost.
    pub fn mtu_report(&self) -> MtuReport {
        self.paths.active().mtu_report()
    }

    /// Counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Starts a key update; `false` when the last one is not acknowledged yet, or has been for less than three PTO.
    /// Source: RFC 9001 §6.1, §6.5.
    pub fn update_keys(&mut self, now: Instant) -> bool {
        let keep = close_period(&self.paths, &self.components);
        let is_confirmed = self.handshake.is_confirmed();
        self.keys.wake();
        //= rfc9001/6.1#1
        match self.keys.one_rtt.as_mut().filter(|_| is_confirmed) {
            Some(keys) => {
                let updated = keys.try_update(now, keep);
                self.counters.key_updates = keys.updates();
                updated
            }
            None => false,
        }
    }
}
