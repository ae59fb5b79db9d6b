//! Transport parameters. Source: draft-ietf-quic-qlog-quic-events §5.10.

use crate::{Event, Object};
use wire::transport_parameters::TransportParameters;

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// This end.
    Local,
    /// The peer.
    Remote,
}

impl Initiator {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Initiator::Local => "local",
            Initiator::Remote => "remote",
        }
    }
}

/// The transport parameters of one end. Reset tokens are left out; a preferred address is, too, as the schema demands its token.
#[derive(Clone, Copy, Debug)]
pub struct ParametersSet<'a> {
    /// Whose.
    pub initiator: Initiator,
    /// What it said.
    pub parameters: &'a TransportParameters,
    /// The cipher suite, if it is known.
    pub tls_cipher: Option<&'a str>,
}

impl Event for ParametersSet<'_> {
    const NAME: &'static str = "quic:parameters_set";

    fn write(&self, data: &mut Object<'_>) {
        let said = self.parameters;
        data.text("initiator", self.initiator.name());
        if let Some(cipher) = self.tls_cipher {
            data.text("tls_cipher", cipher);
        }
        let ids = [
            ("original_destination_connection_id", said.original_destination_connection_id),
            ("initial_source_connection_id", said.initial_source_connection_id),
            ("retry_source_connection_id", said.retry_source_connection_id),
        ];
        for (name, id) in ids {
            if let Some(id) = id {
                data.hex(name, id.as_slice());
            }
        }
        data.number("max_idle_timeout", said.max_idle_timeout_ms)
            .number("max_udp_payload_size", said.max_udp_payload_size)
            .number("ack_delay_exponent", said.ack_delay_exponent)
            .number("max_ack_delay", said.max_ack_delay_ms)
            .number("active_connection_id_limit", said.active_connection_id_limit)
            .number("initial_max_data", said.initial_max_data)
            .number("initial_max_stream_data_bidi_local", said.initial_max_stream_data_bidi_local)
            .number("initial_max_stream_data_bidi_remote", said.initial_max_stream_data_bidi_remote)
            .number("initial_max_stream_data_uni", said.initial_max_stream_data_uni)
            .number("initial_max_streams_bidi", said.initial_max_streams_bidi)
            .number("initial_max_streams_uni", said.initial_max_streams_uni);
        if said.max_datagram_frame_size > 0 {
            data.number("max_datagram_frame_size", said.max_datagram_frame_size);
        }
        let flags = [
            ("disable_active_migration", said.disable_active_migration),
            ("grease_quic_bit", said.grease_quic_bit),
            ("reset_stream_at", said.reset_stream_at),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            data.yes(name);
        }
    }
}
