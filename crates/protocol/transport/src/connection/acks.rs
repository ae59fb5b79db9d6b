//! What acknowledgements and losses mean: the ledger says which packets, the owners of their frames hear of it, the path
//! learns from the timing. Source: RFC 9000 §13.2, §13.3; RFC 9002 §5 to §7.

use super::Connection;
use super::close::close_period;
use super::components::{Acked, Wanted, ledger_and_owners};
use crate::error::TransportError;
use crate::space::SpaceId;
use base::time::{Duration, Instant};
use recovery::congestion::{AckedBytes, CongestionEvent};
use recovery::ecn::{EcnCounts, EcnOutcome};
use recovery::ledger::{AckOutcome, LossOutcome};
use recovery::packet::PacketFlags;
use recovery::rtt::LossThresholds;
use recovery::timers::AddressValidation;
use wire::error::Code;
use wire::frame;

impl Connection {
    /// An ACK frame is taken in, which may have `arrived` before its keys. Source: RFC 9002 appendix A.7.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        arrived: Instant,
        id: SpaceId,
        ack: &frame::Ack<'_>,
    ) -> Result<(), TransportError> {
        let Some((ledger, mut owners)) =
            ledger_and_owners(&mut self.components, &mut self.spaces, id, self.config.without)
        else {
            return Ok(());
        };
        let path = self.paths.active_mut();
        let first_pn = path.first_pn;
        let outcome = ledger
            .on_ack(ack.ranges(), &mut |packet, count, frames| {
                if let Some(trace) = &mut self.trace {
                    (packet.pn..packet.pn + count).for_each(|pn| trace.on_acked(pn));
                }
                // What a large packet proves, a later one of the same size proves too.
                let last = packet.pn + count - 1;
                if path.is_large(packet.size) && last >= first_pn {
                    path.on_large_acked(last, packet.size);
                    if packet.flags.has(PacketFlags::MTU_PROBE) {
                        path.on_mtu_probe_acked(now, packet.size);
                    }
                }
                owners.on_all_acked(frames);
            })
            // RFC 9000 §13.1: an acknowledgement of what was never sent.
            //= rfc9000/13.1#2
            .map_err(|_| TransportError::new(Code::PROTOCOL_VIOLATION, "acknowledges a packet never sent"))?;
        owners.settle_run();
        self.trace.iter_mut().for_each(|trace| trace.settle_acked(now, id));
        let Some(largest) = outcome.largest else { return Ok(()) };
        if id == SpaceId::Application && self.confirm_phase(now, largest.pn) {
            self.handshake.server_reads_1rtt = self.side.is_client();
        }
        // RFC 9002 §5.1, RFC 9000 §9.4: a packet of the old path measures the old path.
        // RFC 9002 §5.3: nor does one measure while it waits for its keys.
        //= rfc9002/5.3#4
        let latest_rtt = outcome
            .rtt_sample(arrived)
            .filter(|sample| largest.pn >= first_pn && !self.is_repeated_ack(id, *sample, ack.delay()));
        let ack_delay =
            latest_rtt.map_or(Duration::ZERO, |sample| self.on_round_trip(arrived, id, sample, ack.delay()));
        if let Some(earliest) = outcome.overtaken_from {
            let path = self.paths.active_mut();
            let age = now.saturating_since(earliest);
            path.reordering.on_late(outcome.overtaken_by, age, path.rtt.smoothed());
        }
        let ce = self.on_ecn(now, id, &outcome, ack);
        self.detect_losses(now, id);
        let in_flight = self.spaces.in_flight_bytes();
        let path = self.paths.active_mut();
        let acked = AckedBytes {
            bytes: outcome.bytes,
            packets: outcome.packets,
            largest_sent_at: largest.sent_at,
            app_limited: path.app_limited,
            rtt: path.rtt.smoothed(),
            latest_rtt,
            ack_delay,
            in_flight,
            ce,
            spurious: outcome.spurious,
            spurious_from: outcome.spurious_from,
        };
        path.congestion.on_ack(now, &acked);
        path.on_acknowledged(now);
        // One request holds for all lanes: that of the home lane.
        if self.components.lanes.as_ref().is_none_or(|lanes| lanes.current == lanes.home) {
            let wanted = Wanted { packet_size: path.max_packet_size, span: path.pacer.savings().span };
            let ack_frequency = &mut self.components.ack_frequency;
            ack_frequency.on_acknowledged(now, outcome.packets, &path.rtt);
            ack_frequency.on_path_state(now, &path.congestion, &path.rtt, wanted);
        }
        self.handshake.on_ack(id);
        //= rfc9002/6.2.1#4
        if self.address_validation() == AddressValidation::Complete && !self.awaits_finished() {
            // RFC 9002 §6.2.1: a client backs off until it knows that the server may answer, a server while it asks for the Finished.
            self.timers.end_back_off(largest.sent_at);
        }
        Ok(())
    }

    /// Whether an acknowledgement of this packet is the first to show that the peer has the current keys.
    fn confirm_phase(&mut self, now: Instant, pn: u64) -> bool {
        let Some(keys) = self.keys.one_rtt.as_mut().filter(|keys| keys.confirms_phase(pn)) else {
            return false;
        };
        let keep = close_period(&self.paths, &self.components);
        keys.on_phase_confirmed(now, keep);
        true
    }

    /// The round trip of a packet that is newly acknowledged, with the raw delay of its ACK frame. Returns that delay as far as the peer may wait.
    fn on_round_trip(&mut self, arrived: Instant, id: SpaceId, sample: Duration, raw_delay: u64) -> Duration {
        let delay = self.acceptable_ack_delay(id, raw_delay);
        let rtt = &mut self.paths.active_mut().rtt;
        rtt.on_sample(arrived, sample, delay);
        self.spaces.application.acks.set_round_trip(rtt.smoothed());
        if let Some(timestamps) = self.components.timestamps.as_mut().filter(|_| id == SpaceId::Application) {
            let ack_delay = self.handshake.ack_delay(raw_delay);
            timestamps.on_acked(Acked { acked_at: arrived, took: sample, ack_delay });
        }
        delay
    }

    /// Whether an acknowledgement in the handshake, or after a probe timeout, repeats one that was lost: its sample would be a timeout
    /// of the peer or the length of an outage, not a round trip, and longer than what is assumed. A peer delays none of these so long by
    /// itself (RFC 9000 §13.2.1), and the delay that it reports is not believed in any other way (RFC 9002 §5.3).
    fn is_repeated_ack(&self, id: SpaceId, sample: Duration, raw_delay: u64) -> bool {
        let rtt = &self.paths.active().rtt;
        // The datagram that ends the handshake ends the back-off before its frames of this space are read.
        let may_repeat = id != SpaceId::Application || self.timers.has_backed_off() || !rtt.has_sample();
        sample > rtt.smoothed()
            && may_repeat
            && self.handshake.ack_delay(raw_delay) > (sample / 2).max(self.longest_ack_delay(id))
    }

    /// What a peer may wait with an acknowledgement.
    fn longest_ack_delay(&self, id: SpaceId) -> Duration {
        if id == SpaceId::Application {
            self.components.ack_frequency.peer_max_ack_delay()
        } else {
            Duration::ZERO
        }
    }

    /// The delay that the peer admits to, as far as it may. Source: RFC 9002 §5.3.
    fn acceptable_ack_delay(&self, id: SpaceId, raw: u64) -> Duration {
        //= rfc9002/5.3#2
        if id != SpaceId::Application {
            return Duration::ZERO;
        }
        let delay = self.handshake.ack_delay(raw);
        //= rfc9002/5.3#3
        if self.handshake.is_confirmed() {
            delay.min(self.components.ack_frequency.peer_max_ack_delay())
        } else {
            delay
        }
    }

    /// Returns how many packets more the peer reports as marked CE. Source: RFC 9000 §13.4.2.1.
    fn on_ecn(&mut self, now: Instant, id: SpaceId, outcome: &AckOutcome, ack: &frame::Ack<'_>) -> u64 {
        if outcome.packets == 0 || !outcome.is_largest_raised {
            return 0;
        }
        let counts =
            ack.ecn().map(|counts| EcnCounts { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce });
        let path = self.paths.active_mut();
        match path.ecn.on_ack(id, outcome.ect0 + outcome.ect1, counts) {
            EcnOutcome::Nothing => 0,
            EcnOutcome::CongestionEvent(ce) => {
                if let Some(sign) = CongestionEvent::of_marks(outcome, ce, path.max_packet_size) {
                    //= rfc9002/7.1#1
                    path.congestion.on_congestion(now, &sign);
                }
                path.on_true_congestion();
                ce
            }
        }
    }

    /// Source: RFC 9002 §6.1, §7.6, appendix A.10.
    pub(super) fn detect_losses(&mut self, now: Instant, id: SpaceId) {
        let acked_elsewhere = self.spaces.acked_sent_at_beside(id);
        let thresholds = LossThresholds { acked_elsewhere, ..self.paths.active().loss_thresholds(now) };
        let max_ack_delay = self.components.ack_frequency.peer_max_ack_delay();
        let Some((ledger, mut owners)) =
            ledger_and_owners(&mut self.components, &mut self.spaces, id, self.config.without)
        else {
            return;
        };
        let path = self.paths.active_mut();
        let first_pn = path.first_pn;
        let (mut full_lost, mut is_other_lost) = (None, false);
        let trace = &mut self.trace;
        let outcome = ledger.detect_losses(now, thresholds, &mut |packet, frames| {
            if let Some(trace) = trace {
                trace.on_lost(packet);
            }
            if packet.flags.has(PacketFlags::MTU_PROBE) {
                if packet.pn >= first_pn {
                    path.on_mtu_probe_lost(now, packet.size);
                }
            } else if path.is_full(packet.size) {
                full_lost = full_lost.max(Some(packet.pn));
            } else if packet.is_in_flight() {
                is_other_lost = true;
                path.on_true_congestion();
            }
            // What a timeout probe has carried again need not go a third time.
            for frame in frames.iter().filter(|_| !packet.is_probed()) {
                owners.on_lost(frame);
            }
        });
        if let Some(pn) = full_lost.filter(|pn| *pn >= first_pn) {
            path.on_full_lost(now, pn, ledger.largest_sent().unwrap_or(pn), max_ack_delay);
        }
        if is_other_lost {
            // A state kept just now as well.
            path.on_true_congestion();
        }
        if let Some(trace) = &mut self.trace {
            trace.settle_lost(now, id, (ledger.largest_acked(), thresholds.packets));
        }
        if outcome.packets > 0 {
            self.on_losses(now, &outcome);
        }
    }

    fn on_losses(&mut self, now: Instant, outcome: &LossOutcome) {
        self.counters.lost_packets += outcome.packets;
        let max_ack_delay = self.components.ack_frequency.peer_max_ack_delay();
        let path = self.paths.active_mut();
        path.ecn.on_lost(outcome.ect);
        let Some(sign) = CongestionEvent::of_losses(outcome) else { return };
        self.components.ack_frequency.on_losses(now, &path.rtt);
        path.on_losses(now);
        let silence = outcome.persistent_span.filter(|span| *span >= path.rtt.smoothed());
        let before = silence.and_then(|_| path.congestion.before_silence(path.rtt.min()));
        path.congestion.on_congestion(now, &sign);
        if outcome.persistent_span.is_some_and(|span| path.rtt.is_persistent_congestion(span, max_ack_delay))
        {
            path.congestion.on_persistent_congestion();
            path.on_true_congestion();
            path.rtt.on_persistent_congestion();
        }
        if let Some(before) = before {
            path.congestion.on_silence(now, before, path.max_packet_size);
        }
        path.repace();
    }
}

/// A lane ends.
impl Connection {
    /// The lane is over: what was not acknowledged is lost. Source: draft-ietf-quic-multipath §3.4.2.
    pub(super) fn forfeit(&mut self) {
        let id = SpaceId::Application;
        let without = self.config.without;
        let Some((ledger, mut owners)) =
            ledger_and_owners(&mut self.components, &mut self.spaces, id, without)
        else {
            return;
        };
        //= multipath/3.4#2
        ledger.discard(&mut |packet, frames| {
            for frame in frames.iter().filter(|_| !packet.is_probed()) {
                owners.on_lost(frame);
            }
        });
    }
}
