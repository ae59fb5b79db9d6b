//! A bottleneck as arithmetic: a rate, a round trip, a queue, and flows through it. No transport, no data: each flow is a
//! ledger, a round-trip estimate, a controller and a clock of departures, and the receiver acknowledges every second packet unless told otherwise.
//!
//! Packets depart one by one at the pacing rate. The queue is a point in time (when the link will be idle), so a packet's
//! whole way is known when it is sent. Same seed, same run.

use super::super::{AckedBytes, Algorithm, CongestionEvent, Controller};
use crate::ledger::Ledger;
use crate::packet::{PacketFlags, SentPacket};
use crate::rtt::Rtt;
use base::net::Ecn;
use base::rng::Rng;
use base::time::{Duration, Instant};
use core::cmp::Reverse;
use core::ops::RangeInclusive;
use std::collections::BinaryHeap;

/// Bytes of each packet.
pub(crate) const PACKET: u16 = 1_200;
/// The receiver waits so long for a second packet.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// Ranges that the receiver reports at most.
const RANGES: usize = 32;

/// The bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkOptions {
    /// Bits a second.
    pub(crate) bits: u64,
    pub(crate) rtt: Duration,
    /// Bytes that wait at most.
    pub(crate) queue: u64,
    /// Packets lost at random, of a million.
    pub(crate) loss_ppm: u64,
    /// The receiver acknowledges every this many packets.
    pub(crate) ack_every: u32,
    /// Packets that wait longer are marked, if their flow is markable.
    pub(crate) mark_above: Option<Duration>,
}

impl LinkOptions {
    /// A queue of this many hundredths of the bandwidth-delay product.
    pub(crate) fn new(megabits: u64, rtt_ms: u64, queue: u64) -> LinkOptions {
        let bdp = megabits * 125 * rtt_ms;
        let queue = (bdp * queue / 100).max(4 * u64::from(PACKET));
        let rtt = Duration::from_millis(rtt_ms);
        LinkOptions { bits: megabits * 1_000_000, rtt, queue, loss_ppm: 0, ack_every: 2, mark_above: None }
    }

    fn time_for(&self, bytes: u64) -> Duration {
        Duration::from_nanos((u128::from(bytes) * 8_000_000_000 / u128::from(self.bits)) as u64)
    }
}

/// What a flow came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) delivered: u64,
    pub(crate) marked: u64,
    /// Nanoseconds that delivered packets waited, in all.
    waited: u64,
}

impl Figures {
    /// Bytes delivered, as a share of what the link could.
    pub(crate) fn utilisation(&self, link: &LinkOptions, span: Duration) -> f64 {
        (self.delivered * u64::from(PACKET) * 8) as f64 / (link.bits as f64 * span.as_secs_f64())
    }

    pub(crate) fn queue_ms(&self) -> f64 {
        self.waited as f64 / 1e6 / self.delivered.max(1) as f64
    }

    pub(crate) fn loss(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake,
    Timer,
    Arrival {
        pn: u64,
        is_marked: bool,
        waited: u64,
    },
    /// Unless an acknowledgement has left since that one.
    DelayedAck {
        since: u64,
    },
    Ack {
        ranges: Vec<(u64, u64)>,
        marks: u64,
    },
}

#[derive(Debug, Default)]
struct Receiver {
    ranges: Vec<(u64, u64)>,
    marks: u64,
    unreported: u32,
    /// Acknowledgements so far.
    frames: u64,
}

/// A sender and its receiver.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) controller: Controller,
    pub(crate) rtt: Rtt,
    ledger: Ledger<()>,
    receiver: Receiver,
    /// Bytes left to send; `None` is no end.
    pub(crate) data: Option<u64>,
    pub(crate) figures: Figures,
    /// Its packets are marked where the link marks: Prague's from the start, those of others on demand.
    pub(crate) is_markable: bool,
    starts_at: Instant,
    next_pn: u64,
    next_departure: Instant,
    wake_at: Option<Instant>,
    timer_at: Option<Instant>,
    marks: u64,
    timeouts: u32,
    is_starved: bool,
}

/// Flows through a bottleneck.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) link: LinkOptions,
    pub(crate) flows: Vec<Flow>,
    idle_at: Instant,
    rng: Rng,
    events: BinaryHeap<Reverse<(Instant, u64, usize, Event)>>,
    order: u64,
}

impl World {
    pub(crate) fn new(link: LinkOptions) -> World {
        let now = Instant::from_nanos(1_000_000_000);
        let rng = Rng::from_u64(7);
        World { now, link, flows: Vec::new(), idle_at: now, rng, events: BinaryHeap::new(), order: 0 }
    }

    /// One flow with data without end, from now on.
    pub(crate) fn with_flow(mut self, algorithm: Algorithm) -> World {
        self.add(Controller::new(algorithm, PACKET), Duration::ZERO);
        self
    }

    pub(crate) fn add(&mut self, controller: Controller, after: Duration) {
        let starts_at = self.now + after;
        self.flows.push(Flow {
            is_markable: controller.ecn_mark() == Ecn::Ect1,
            controller,
            rtt: Rtt::default(),
            ledger: Ledger::new(),
            receiver: Receiver::default(),
            data: None,
            figures: Figures::default(),
            starts_at,
            next_pn: 0,
            next_departure: starts_at,
            wake_at: None,
            timer_at: None,
            marks: 0,
            timeouts: 0,
            is_starved: false,
        });
        self.push(starts_at, self.flows.len() - 1, Event::Wake);
    }

    fn push(&mut self, at: Instant, flow: usize, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, flow, event)));
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Lets time pass until something is so, and says whether it became so.
    pub(crate) fn run_until(&mut self, span: Duration, is_done: impl Fn(&World) -> bool) -> bool {
        let end = self.now + span;
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= end) {
            let Some(Reverse((at, _, flow, event))) = self.events.pop() else { break };
            self.now = at;
            self.handle(flow, event);
            if is_done(self) {
                return true;
            }
        }
        self.now = end;
        false
    }

    /// Figures from now on.
    pub(crate) fn forget(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.figures = Figures::default());
    }

    /// How long a packet would wait now.
    pub(crate) fn queue(&self) -> Duration {
        self.idle_at.saturating_since(self.now)
    }

    /// More data for a flow that had an end.
    pub(crate) fn give(&mut self, flow: usize, bytes: u64) {
        self.flows[flow].data = Some(self.flows[flow].data.unwrap_or(0) + bytes);
        self.send(flow);
    }

    fn handle(&mut self, flow: usize, event: Event) {
        match event {
            Event::Wake => {
                self.flows[flow].wake_at = None;
                self.send(flow);
            }
            Event::Timer => self.on_timer(flow),
            Event::Arrival { pn, is_marked, waited } => self.on_arrival(flow, pn, is_marked, waited),
            Event::DelayedAck { since } if self.flows[flow].receiver.frames == since => {
                self.acknowledge(flow)
            }
            Event::DelayedAck { .. } => {}
            Event::Ack { ranges, marks } => self.on_ack(flow, &ranges, marks),
        }
    }

    fn send(&mut self, index: usize) {
        loop {
            let flow = &mut self.flows[index];
            let room = flow.controller.available(flow.ledger.in_flight_bytes()) >= u64::from(PACKET);
            flow.is_starved = flow.data.is_some_and(|data| data < u64::from(PACKET));
            if !room || flow.is_starved || self.now < flow.starts_at {
                break;
            }
            if flow.next_departure > self.now {
                let at = flow.next_departure;
                if flow.wake_at.is_none_or(|wake| wake > at) {
                    flow.wake_at = Some(at);
                    self.push(at, index, Event::Wake);
                }
                break;
            }
            self.send_one(index);
        }
        self.set_timer(index);
    }

    fn send_one(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let pn = flow.next_pn;
        flow.next_pn += 1;
        if let Some(data) = &mut flow.data {
            *data = data.saturating_sub(u64::from(PACKET));
        }
        let packet = SentPacket { pn, sent_at: self.now, size: PACKET, flags: PacketFlags::DATA };
        flow.ledger.on_sent(packet, &[]);
        flow.controller.on_sent(self.now, u64::from(PACKET), flow.ledger.in_flight_bytes());
        flow.figures.sent += 1;
        let per_second = flow.controller.pacing_rate(&flow.rtt).bytes_per_second();
        let gap = Duration::from_nanos((f64::from(PACKET) * 1e9 / per_second) as u64);
        flow.next_departure = flow.next_departure.max(self.now) + gap;
        self.cross(index, pn);
    }

    /// Through the bottleneck, or not.
    fn cross(&mut self, index: usize, pn: u64) {
        let link = self.link;
        let wait = self.queue();
        let queued = (u128::from(wait.as_nanos()) * u128::from(link.bits) / 8_000_000_000) as u64;
        let is_full = queued + u64::from(PACKET) > link.queue;
        if is_full || self.rng.below(1_000_000) < link.loss_ppm {
            return;
        }
        let is_marked = self.flows[index].is_markable && link.mark_above.is_some_and(|most| wait > most);
        self.idle_at = self.now.max(self.idle_at) + link.time_for(u64::from(PACKET));
        let at = self.idle_at + link.rtt / 2;
        self.push(at, index, Event::Arrival { pn, is_marked, waited: wait.as_nanos() });
    }

    fn on_arrival(&mut self, index: usize, pn: u64, is_marked: bool, waited: u64) {
        let ack_every = self.link.ack_every;
        let flow = &mut self.flows[index];
        flow.figures.delivered += 1;
        flow.figures.marked += u64::from(is_marked);
        flow.figures.waited += waited;
        let receiver = &mut flow.receiver;
        receiver.marks += u64::from(is_marked);
        match receiver.ranges.last_mut() {
            Some((_, end)) if *end + 1 == pn => *end = pn,
            _ => receiver.ranges.push((pn, pn)),
        }
        if receiver.ranges.len() > RANGES {
            receiver.ranges.remove(0);
        }
        receiver.unreported += 1;
        if receiver.unreported >= ack_every {
            self.acknowledge(index);
        } else if receiver.unreported == 1 {
            let since = receiver.frames;
            self.push(self.now + MAX_ACK_DELAY, index, Event::DelayedAck { since });
        }
    }

    fn acknowledge(&mut self, index: usize) {
        let receiver = &mut self.flows[index].receiver;
        if core::mem::take(&mut receiver.unreported) == 0 {
            return;
        }
        receiver.frames += 1;
        let ranges = receiver.ranges.iter().rev().copied().collect();
        let marks = receiver.marks;
        self.push(self.now + self.link.rtt / 2, index, Event::Ack { ranges, marks });
    }

    fn on_ack(&mut self, index: usize, ranges: &[(u64, u64)], marks: u64) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let frame = ranges.iter().map(|&(low, high)| RangeInclusive::new(low, high));
        let outcome = flow.ledger.on_ack(frame, &mut |_, _, _| {}).unwrap();
        let Some(largest) = outcome.largest else { return };
        let sample = outcome.rtt_sample(now);
        if let Some(sample) = sample {
            flow.rtt.on_sample(now, sample, Duration::ZERO);
        }
        let ce = marks.saturating_sub(flow.marks);
        flow.marks = flow.marks.max(marks);
        if let Some(sign) = CongestionEvent::of_marks(&outcome, ce, PACKET).filter(|_| ce > 0) {
            flow.controller.on_congestion(now, &sign);
        }
        flow.detect_losses(now);
        flow.timeouts = 0;
        let acked = AckedBytes {
            bytes: outcome.bytes,
            packets: outcome.packets,
            largest_sent_at: largest.sent_at,
            app_limited: flow.is_starved,
            rtt: flow.rtt.smoothed(),
            latest_rtt: sample,
            ack_delay: Duration::ZERO,
            in_flight: flow.ledger.in_flight_bytes(),
            ce,
            spurious: outcome.spurious,
            spurious_from: outcome.spurious_from,
        };
        flow.controller.on_ack(now, &acked);
        self.send(index);
    }

    fn set_timer(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let deadline = flow.deadline();
        if flow.timer_at != deadline {
            flow.timer_at = deadline;
            if let Some(at) = deadline {
                self.push(at.max(self.now), index, Event::Timer);
            }
        }
    }

    fn on_timer(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.timer_at.is_none_or(|at| at > self.now) {
            return;
        }
        flow.timer_at = None;
        if flow.ledger.loss_time().is_some() {
            flow.detect_losses(self.now);
        } else {
            flow.timeouts += 1;
            self.send_one(index);
        }
        self.send(index);
    }
}

impl Flow {
    fn deadline(&self) -> Option<Instant> {
        if self.ledger.loss_time().is_some() {
            return self.ledger.loss_time();
        }
        let last =
            self.ledger.last_ack_eliciting_at().filter(|_| self.ledger.ack_eliciting_in_flight() > 0)?;
        Some(last + self.rtt.pto(MAX_ACK_DELAY).saturating_shl(self.timeouts))
    }

    fn detect_losses(&mut self, now: Instant) {
        let outcome = self.ledger.detect_losses(now, self.rtt.loss_thresholds(), &mut |_, _| {});
        self.figures.lost += outcome.packets;
        let Some(sign) = CongestionEvent::of_losses(&outcome) else { return };
        self.controller.on_congestion(now, &sign);
        if outcome.persistent_span.is_some_and(|span| self.rtt.is_persistent_congestion(span, MAX_ACK_DELAY))
        {
            self.controller.on_persistent_congestion();
            self.rtt.on_persistent_congestion();
        }
    }
}
