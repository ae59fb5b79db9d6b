//! Frame dispatch: a table with one row per frame type. Source: RFC 9000 §12.4, table 3; RFC 9221.
//!
//! A row says who handles the frame, in which packets it may stand, whether the peer waits for an acknowledgement, and
//! whether it only probes a path. Whatever a frame does is in the component that owns the matter; the handlers here
//! parse and hand over.

use super::arrival::Arrival;
use super::components::Datagrams;
use super::{Connection, handshake};
use crate::error::TransportError;
use crate::event::StreamSink;
use crate::space::SpaceId;
use crate::streams::Streams;
use crate::without::{Technique, Without};
use recovery::ack::{AckTracker, Eliciting};
use wire::Side;
use wire::error::Code;
use wire::frame;
use wire::reader::Reader;

type Handler<S> =
    fn(&mut Connection, &mut Arrival<'_, S>, u64, &mut Reader<'_>) -> Result<(), TransportError>;

/// In which packets a frame may stand, as a set.
const INITIAL: u8 = 1;
const HANDSHAKE: u8 = 2;
pub(super) const ZERO_RTT: u8 = 4;
const ONE_RTT: u8 = 8;
const ANY: u8 = INITIAL | HANDSHAKE | ZERO_RTT | ONE_RTT;
const NOT_EARLY: u8 = INITIAL | HANDSHAKE | ONE_RTT;
const APPLICATION: u8 = ZERO_RTT | ONE_RTT;

/// What receiving the frame means for the packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing: ACK, CONNECTION_CLOSE.
    Silent,
    /// Nothing but that padding also appears in probing packets.
    Padding,
    /// Ack-eliciting, and legal in a packet that only probes a path (RFC 9000 §9.1).
    Probing,
    /// Ack-eliciting.
    Eliciting,
}

struct Row<S> {
    handler: Handler<S>,
    permitted: u8,
    effect: Effect,
}

const fn row<S>(permitted: u8, effect: Effect, handler: Handler<S>) -> Row<S> {
    Row { handler, permitted, effect }
}

struct Table<S>(core::marker::PhantomData<S>);

impl<S: StreamSink> Table<S> {
    const ROWS: [Row<S>; 0x20] = {
        use Effect::{Eliciting, Padding, Probing, Silent};
        [
            row(ANY, Padding, on_padding),                       // 0x00 PADDING
            row(ANY, Eliciting, on_ping),                        // 0x01 PING
            row(NOT_EARLY, Silent, on_ack),                      // 0x02 ACK
            row(NOT_EARLY, Silent, on_ack),                      // 0x03 ACK with ECN counts
            row(APPLICATION, Eliciting, on_reset_stream),        // 0x04 RESET_STREAM
            row(APPLICATION, Eliciting, on_stop_sending),        // 0x05 STOP_SENDING
            row(NOT_EARLY, Eliciting, on_crypto),                // 0x06 CRYPTO
            row(ONE_RTT, Eliciting, on_new_token),               // 0x07 NEW_TOKEN
            row(APPLICATION, Eliciting, on_stream),              // 0x08 STREAM
            row(APPLICATION, Eliciting, on_stream),              // 0x09
            row(APPLICATION, Eliciting, on_stream),              // 0x0a
            row(APPLICATION, Eliciting, on_stream),              // 0x0b
            row(APPLICATION, Eliciting, on_stream),              // 0x0c
            row(APPLICATION, Eliciting, on_stream),              // 0x0d
            row(APPLICATION, Eliciting, on_stream),              // 0x0e
            row(APPLICATION, Eliciting, on_stream),              // 0x0f
            row(APPLICATION, Eliciting, on_max_data),            // 0x10 MAX_DATA
            row(APPLICATION, Eliciting, on_max_stream_data),     // 0x11 MAX_STREAM_DATA
            row(APPLICATION, Eliciting, on_max_streams),         // 0x12 MAX_STREAMS, bidirectional
            row(APPLICATION, Eliciting, on_max_streams),         // 0x13 MAX_STREAMS, unidirectional
            row(APPLICATION, Eliciting, on_data_blocked),        // 0x14 DATA_BLOCKED
            row(APPLICATION, Eliciting, on_stream_data_blocked), // 0x15 STREAM_DATA_BLOCKED
            row(APPLICATION, Eliciting, on_streams_blocked),     // 0x16 STREAMS_BLOCKED, bidirectional
            row(APPLICATION, Eliciting, on_streams_blocked),     // 0x17 STREAMS_BLOCKED, unidirectional
            row(APPLICATION, Probing, on_new_connection_id),     // 0x18 NEW_CONNECTION_ID
            row(ONE_RTT, Eliciting, on_retire_connection_id),    // 0x19 RETIRE_CONNECTION_ID
            row(APPLICATION, Probing, on_path_challenge),        // 0x1a PATH_CHALLENGE
            row(ONE_RTT, Probing, on_path_response),             // 0x1b PATH_RESPONSE
            row(ANY, Silent, on_connection_close),               // 0x1c CONNECTION_CLOSE by the transport
            row(APPLICATION, Silent, on_connection_close),       // 0x1d CONNECTION_CLOSE by the application
            row(ONE_RTT, Eliciting, on_handshake_done),          // 0x1e HANDSHAKE_DONE
            row(ONE_RTT, Eliciting, on_immediate_ack),           // 0x1f IMMEDIATE_ACK
        ]
    };

    #[inline]
    fn find(ty: u64) -> Row<S> {
        match usize::try_from(ty).ok().and_then(|index| Self::ROWS.get(index)) {
            Some(row) => *row,
            //= rfc9221/5.2#1
            None if ty | 1 == frame::ty::DATAGRAM_LEN => row(APPLICATION, Effect::Eliciting, on_datagram),
            //= ack-frequency/3#4
            None if ty == frame::ty::RESET_STREAM_AT => {
                row(APPLICATION, Effect::Eliciting, on_reset_stream_at)
            }
            None if ty == frame::ty::ACK_FREQUENCY => row(ONE_RTT, Effect::Eliciting, on_ack_frequency),
            None if ty == frame::ty::TIMESTAMP => row(ONE_RTT, Effect::Silent, on_timestamp),
            //= multipath/4#1
            None if ty | 1 == frame::ty::PATH_ACK_ECN => row(ONE_RTT, Effect::Silent, on_path_ack),
            None => Self::find_of_lanes(ty),
        }
    }

    #[cold]
    fn find_of_lanes(ty: u64) -> Row<S> {
        let at = ty.checked_sub(frame::ty::PATH_ABANDON).and_then(|at| usize::try_from(at).ok());
        let unknown = row(0, Effect::Eliciting, on_unknown);
        at.and_then(|at| Self::ROWS_OF_LANES.get(at)).copied().unwrap_or(unknown)
    }

    /// The frames of several paths at once but PATH_ACK.
    const ROWS_OF_LANES: [Row<S>; 8] = {
        use Effect::Eliciting;
        [
            row(ONE_RTT, Eliciting, on_path_abandon), // 0x3e75 PATH_ABANDON
            row(ONE_RTT, Eliciting, on_path_status),  // 0x3e76 PATH_STATUS_BACKUP
            row(ONE_RTT, Eliciting, on_path_status),  // 0x3e77 PATH_STATUS_AVAILABLE
            row(ONE_RTT, Eliciting, on_path_new_connection_id), // 0x3e78 PATH_NEW_CONNECTION_ID
            row(ONE_RTT, Eliciting, on_path_retire_connection_id), // 0x3e79 PATH_RETIRE_CONNECTION_ID
            row(ONE_RTT, Eliciting, on_max_path_id),  // 0x3e7a MAX_PATH_ID
            row(ONE_RTT, Eliciting, on_paths_blocked), // 0x3e7b PATHS_BLOCKED
            row(ONE_RTT, Eliciting, on_path_cids_blocked), // 0x3e7c PATH_CIDS_BLOCKED
        ]
    };
}

impl<S> Clone for Row<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Row<S> {}

/// What a packet of the space is in the column `permitted`, unless it is a 0-RTT packet.
pub(super) const fn permission(space: SpaceId) -> u8 {
    match space {
        SpaceId::Initial => INITIAL,
        SpaceId::Handshake => HANDSHAKE,
        SpaceId::Application => ONE_RTT,
    }
}

/// Handles every frame of a decrypted packet. Source: RFC 9000 §12.4.
pub(super) fn dispatch<S: StreamSink>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    payload: &[u8],
) -> Result<(), TransportError> {
    //= rfc9000/12.4#1
    if payload.is_empty() {
        // RFC 9000 §12.4: a packet without frames is a connection error.
        return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "packet without frames"));
    }
    let mut reader = Reader::new(payload);
    while !reader.is_empty() {
        let ty = frame::read_type(&mut reader)?;
        let row = Table::<S>::find(ty);
        //= rfc9000/12.4#3
        if row.permitted & arrival.packet == 0 {
            //= rfc9000/12.4#2
            let code = if row.permitted == 0 { Code::FRAME_ENCODING_ERROR } else { Code::PROTOCOL_VIOLATION };
            let reason =
                if row.permitted == 0 { "unknown frame type" } else { "frame in the wrong packet type" };
            return Err(TransportError { code, frame: ty, reason });
        }
        if matches!(row.effect, Effect::Eliciting | Effect::Probing) {
            arrival.eliciting = Eliciting::Yes;
        }
        //= rfc9000/9.1#1
        arrival.non_probing |= matches!(row.effect, Effect::Eliciting | Effect::Silent);
        (row.handler)(connection, arrival, ty, &mut reader)
            .map_err(|error| TransportError { frame: ty, ..error })?;
    }
    Ok(())
}

type Outcome = Result<(), TransportError>;

fn on_unknown<S>(_: &mut Connection, _: &mut Arrival<'_, S>, _: u64, _: &mut Reader<'_>) -> Outcome {
    Err(TransportError::new(Code::FRAME_ENCODING_ERROR, "unknown frame type"))
}

fn on_padding<S>(_: &mut Connection, _: &mut Arrival<'_, S>, _: u64, reader: &mut Reader<'_>) -> Outcome {
    reader.skip_zeros();
    Ok(())
}

fn on_ping<S>(_: &mut Connection, _: &mut Arrival<'_, S>, _: u64, _: &mut Reader<'_>) -> Outcome {
    Ok(())
}

/// The handlers of frames with fields. Each parses its frame and gives it to what it concerns: a component, or the connection
/// where it concerns many of them.
macro_rules! handlers {
    ($($name:ident: $view:ident => |$c:pat_param, $arrival:pat_param, $frame:ident| $call:expr;)*) => {$(
        fn $name<S: StreamSink>(
            $c: &mut Connection,
            $arrival: &mut Arrival<'_, S>,
            ty: u64,
            reader: &mut Reader<'_>,
        ) -> Outcome {
            let $frame = frame::$view::parse(ty, reader)?;
            $call
        }
    )*};
}

handlers! {
    on_ack: Ack => |c, at, ack| {
        match c.components.lanes {
            Some(_) if at.space == SpaceId::Application => c.on_path_ack(at.now, at.arrived, 0, &ack)?,
            _ => {
                c.components.timestamps.iter_mut().for_each(|timestamps| timestamps.begin(at.pn));
                c.on_ack(at.now, at.arrived, at.space, &ack)?;
            }
        }
        if c.handshake.server_reads_1rtt {
            //= rfc9001/4.1.2#2
            c.on_server_done(at.now);
        }
        Ok(())
    };
    on_crypto: Crypto => |c, at, crypto| c.on_crypto(at.now, at.space, crypto.offset, crypto.data);
    on_stream: Stream => |c, at, stream| {
        let Connection { components, spaces, config, .. } = c;
        give_stream(&mut components.streams, &mut spaces.application.acks, config.without, at, stream)
    };
    on_reset_stream: ResetStream => |c, _, frame| c.components.streams.on_reset_stream(&frame);
    on_reset_stream_at: ResetStreamAt => |c, _, frame| c.components.streams.on_reset_stream_at(&frame);
    on_stop_sending: StopSending => |c, _, frame| c.components.streams.on_stop_sending(&frame);
    on_max_data: MaxData => |c, _, frame| c.components.streams.on_max_data(&frame);
    on_max_stream_data: MaxStreamData => |c, _, frame| c.components.streams.on_max_stream_data(&frame);
    on_max_streams: MaxStreams => |c, _, frame| c.components.streams.on_max_streams(&frame);
    on_data_blocked: DataBlocked => |c, _, frame| c.components.streams.on_data_blocked(&frame);
    on_stream_data_blocked: StreamDataBlocked => |c, _, frame| c.components.streams.on_stream_data_blocked(&frame);
    on_streams_blocked: StreamsBlocked => |c, _, frame| c.components.streams.on_streams_blocked(&frame);
    on_datagram: Datagram => |c, at, datagram| give_datagram(&c.components.datagrams, at.sink, &datagram);
    on_new_connection_id: NewConnectionId => |c, _, frame| c.components.on_new_cid(0, &frame);
    on_retire_connection_id: RetireConnectionId => |c, at, retire| {
        c.components.on_retire_cid(0, retire.sequence, &at.dcid)
    };
    on_path_challenge: PathChallenge => |c, at, challenge| {
        c.paths.on_path_challenge(at.now, at.path, challenge.0);
        Ok(())
    };
    on_path_response: PathResponse => |c, at, response| {
        let moved = c.paths.on_path_response(at.now, response.0).filter(|_| c.side.is_server());
        if let Some(addresses) = moved {
            c.components.control_frames.want_token(at.now, addresses);
        }
        c.on_path_proved(at.now);
        Ok(())
    };
    on_connection_close: ConnectionClose => |c, at, close| {
        c.on_connection_close(at.now, &close);
        Ok(())
    };
}

/// The same for frames that only connections with lanes know.
macro_rules! handlers_of_lanes {
    ($($name:ident: $view:ident => |$c:pat_param, $arrival:pat_param, $frame:ident| $call:expr;)*) => {$(
        fn $name<S>(
            connection: &mut Connection,
            arrival: &mut Arrival<'_, S>,
            ty: u64,
            reader: &mut Reader<'_>,
        ) -> Outcome {
            if connection.components.lanes.is_none() {
                return on_unknown(connection, arrival, ty, reader);
            }
            let $frame = frame::$view::parse(ty, reader)?;
            let ($c, $arrival) = (connection, arrival);
            $call
        }
    )*};
}

handlers_of_lanes! {
    on_path_ack: PathAck => |c, at, frame| c.on_path_ack(at.now, at.arrived, frame.path, &frame.ack);
    on_path_abandon: PathAbandon => |c, _, frame| c.components.on_path_abandon(&frame);
    on_path_status: PathStatus => |c, _, frame| c.components.on_path_status(&frame);
    on_path_new_connection_id: PathNewConnectionId => |c, _, frame| {
        c.components.on_new_cid(frame.path, &frame.new)
    };
    on_path_retire_connection_id: PathRetireConnectionId => |c, at, frame| {
        c.components.on_retire_cid(frame.path, frame.sequence, &at.dcid)
    };
    on_max_path_id: MaxPathId => |c, _, frame| c.components.on_max_path_id(&frame);
    on_paths_blocked: PathsBlocked => |c, _, frame| c.components.on_paths_blocked(&frame);
    on_path_cids_blocked: PathCidsBlocked => |c, _, frame| c.components.on_path_cids_blocked(&frame);
}

fn give_stream<S: StreamSink>(
    streams: &mut Streams,
    acks: &mut AckTracker,
    without: Without,
    arrival: &mut Arrival<'_, S>,
    stream: frame::Stream<'_>,
) -> Outcome {
    if stream.fin {
        acks.on_end_of_stream();
    }
    if without.has(Technique::LentData) {
        let copy = stream.data.to_vec();
        let stream = frame::Stream { data: &copy, ..stream };
        return streams.on_stream(&stream, arrival.now, arrival.rtt, arrival.sink);
    }
    streams.on_stream(&stream, arrival.now, arrival.rtt, arrival.sink)
}

fn give_datagram(
    datagrams: &Datagrams,
    sink: &mut impl StreamSink,
    datagram: &frame::Datagram<'_>,
) -> Outcome {
    //= rfc9221/3#3
    if !datagrams.may_receive(datagram.data.len()) {
        // RFC 9221 §3: a DATAGRAM that we did not allow, or larger than we allowed.
        return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "DATAGRAM frame not allowed"));
    }
    //= rfc9221/5#1
    sink.on_datagram(datagram.data);
    Ok(())
}

fn on_ack_frequency<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let ack_frequency = &mut connection.components.ack_frequency;
    if !ack_frequency.is_offered() {
        return on_unknown(connection, arrival, ty, reader);
    }
    if let Some(policy) = ack_frequency.on_frame(&frame::AckFrequency::parse(ty, reader)?)? {
        connection.spaces.application.acks.set_policy(policy);
        connection.components.lanes.iter_mut().for_each(|lanes| lanes.set_ack_policy(policy));
    }
    Ok(())
}

fn on_timestamp<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let Some(timestamps) = &mut connection.components.timestamps else {
        return on_unknown(connection, arrival, ty, reader);
    };
    timestamps.begin(arrival.pn);
    timestamps.on_frame(&frame::Timestamp::parse(ty, reader)?);
    Ok(())
}

fn on_immediate_ack<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    if !connection.components.ack_frequency.is_offered() {
        return on_unknown(connection, arrival, ty, reader);
    }
    //= ack-frequency/5#1
    connection.spaces.application.acks.expedite();
    Ok(())
}

fn on_new_token<S>(
    connection: &mut Connection,
    _: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    // Before its fields: from a client the frame itself is wrong, whatever is in it.
    //= rfc9000/19.7#2
    if connection.side == Side::Server {
        return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "NEW_TOKEN from a client"));
    }
    let token = frame::NewToken::parse(ty, reader)?;
    handshake::on_new_token(&connection.handshake, &mut connection.events, &token);
    Ok(())
}

fn on_handshake_done<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    _: u64,
    _: &mut Reader<'_>,
) -> Outcome {
    //= rfc9000/19.20#1
    if connection.side == Side::Server {
        // RFC 9000 §19.20: only servers send HANDSHAKE_DONE.
        return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "HANDSHAKE_DONE from a client"));
    }
    connection.on_server_done(arrival.now);
    Ok(())
}
