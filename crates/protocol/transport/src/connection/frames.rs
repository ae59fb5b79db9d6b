//! Frame dispatch: a table with one row per frame type. Source: RFC 9000 §12.4, table 3; RFC 9221.
//!
//! A row says who handles the frame, in which packets it may stand, whether the peer waits for an acknowledgement, and
//! whether it only probes a path. Whatever a frame does is in the component that owns the matter; the handlers here
//! parse and hand over.

use super::Connection;
use super::arrival::Arrival;
use crate::error::TransportError;
use crate::event::StreamSink;
use crate::space::SpaceId;
use crate::without::Technique;
use wire::Side;
use wire::error::Code;
use wire::frame;
use wire::reader::Reader;

type Handler<S> =
    fn(&mut Connection, &mut Arrival<'_, S>, u64, &mut Reader<'_>) -> Result<(), TransportError>;

/// In which packets a frame may stand, as a set.
const INITIAL: u8 = 1;
const HANDSHAKE: u8 = 2;
const ZERO_RTT: u8 = 4;
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
            None if ty == frame::ty::ACK_FREQUENCY => row(ONE_RTT, Effect::Eliciting, on_ack_frequency),
            None => row(0, Effect::Eliciting, on_unknown),
        }
    }
}

impl<S> Clone for Row<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Row<S> {}

const fn permission(space: SpaceId) -> u8 {
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
        if row.permitted & permission(arrival.space) == 0 {
            //= rfc9000/12.4#2
            let code = if row.permitted == 0 { Code::FRAME_ENCODING_ERROR } else { Code::PROTOCOL_VIOLATION };
            let reason =
                if row.permitted == 0 { "unknown frame type" } else { "frame in the wrong packet type" };
            return Err(TransportError { code, frame: ty, reason });
        }
        arrival.ack_eliciting |= matches!(row.effect, Effect::Eliciting | Effect::Probing);
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

fn on_ack<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let ack = frame::Ack::parse(ty, reader)?;
    connection.on_ack(arrival.now, arrival.space, &ack)
}

fn on_crypto<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let crypto = frame::Crypto::parse(ty, reader)?;
    connection.on_crypto(arrival.space, crypto.offset, crypto.data)
}

fn on_stream<S: StreamSink>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let stream = frame::Stream::parse(ty, reader)?;
    if stream.fin {
        connection.spaces.application.acks.on_end_of_stream();
    }
    if connection.config.without.has(Technique::LentData) {
        let copy = stream.data.to_vec();
        let stream = frame::Stream { data: &copy, ..stream };
        return connection.streams.on_stream(&stream, arrival.now, arrival.rtt, arrival.sink);
    }
    connection.streams.on_stream(&stream, arrival.now, arrival.rtt, arrival.sink)
}

/// A handler that parses one view and hands it to the set of streams.
macro_rules! to_streams {
    ($($name:ident: $view:ident => $method:ident;)*) => {$(
        fn $name<S>(
            connection: &mut Connection,
            _: &mut Arrival<'_, S>,
            ty: u64,
            reader: &mut Reader<'_>,
        ) -> Outcome {
            connection.streams.$method(&frame::$view::parse(ty, reader)?)
        }
    )*};
}

to_streams! {
    on_reset_stream: ResetStream => on_reset_stream;
    on_stop_sending: StopSending => on_stop_sending;
    on_max_data: MaxData => on_max_data;
    on_max_stream_data: MaxStreamData => on_max_stream_data;
    on_max_streams: MaxStreams => on_max_streams;
    on_data_blocked: DataBlocked => on_data_blocked;
    on_stream_data_blocked: StreamDataBlocked => on_stream_data_blocked;
    on_streams_blocked: StreamsBlocked => on_streams_blocked;
}

fn on_datagram<S: StreamSink>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let datagram = frame::Datagram::parse(ty, reader)?;
    //= rfc9221/3#3
    if !connection.datagrams.may_receive(datagram.data.len()) {
        // RFC 9221 §3: a DATAGRAM that we did not allow, or larger than we allowed.
        return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "DATAGRAM frame not allowed"));
    }
    //= rfc9221/5#1
    arrival.sink.on_datagram(datagram.data);
    Ok(())
}

fn on_ack_frequency<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    if !connection.ack_frequency.is_offered() {
        return on_unknown(connection, arrival, ty, reader);
    }
    let asked = frame::AckFrequency::parse(ty, reader)?;
    if let Some(policy) = connection.ack_frequency.on_frame(&asked)? {
        connection.spaces.application.acks.set_policy(policy);
    }
    Ok(())
}

fn on_immediate_ack<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    if !connection.ack_frequency.is_offered() {
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
    connection.on_new_token(token.token);
    Ok(())
}

fn on_new_connection_id<S>(
    connection: &mut Connection,
    _: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    connection.peer_cids.on_new_connection_id(&frame::NewConnectionId::parse(ty, reader)?)
}

fn on_retire_connection_id<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let retire = frame::RetireConnectionId::parse(ty, reader)?;
    connection.local_cids.on_retire(retire.sequence, &arrival.dcid)
}

fn on_path_challenge<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let challenge = frame::PathChallenge::parse(ty, reader)?;
    connection.paths.on_path_challenge(arrival.now, arrival.path, challenge.0);
    Ok(())
}

fn on_path_response<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let response = frame::PathResponse::parse(ty, reader)?;
    if let Some(addresses) = connection.paths.on_path_response(arrival.now, response.0)
        && connection.side.is_server()
    {
        connection.control_frames.want_token(arrival.now, addresses);
    }
    Ok(())
}

fn on_connection_close<S>(
    connection: &mut Connection,
    arrival: &mut Arrival<'_, S>,
    ty: u64,
    reader: &mut Reader<'_>,
) -> Outcome {
    let close = frame::ConnectionClose::parse(ty, reader)?;
    connection.on_connection_close(arrival.now, &close);
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
    connection.on_handshake_confirmed(arrival.now);
    Ok(())
}
