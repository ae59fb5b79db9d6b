use super::*;
use crate::testing::{any_magnitude, any_span};
use base::rng::Rng;

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A path with a PTO of 100 ms (60 + 4 × 10) and a peer with 25 ms.
fn rtt() -> Rtt {
    let mut rtt = Rtt::default();
    rtt.on_sample(Instant::ZERO, Duration::from_millis(60), Duration::ZERO);
    while rtt.variation() > Duration::from_millis(10) {
        rtt.on_sample(Instant::ZERO, Duration::from_millis(60), Duration::ZERO);
    }
    rtt
}

fn idle(rtt: &Rtt) -> Inputs<'_> {
    Inputs {
        spaces: [SpaceTimers::default(); 3],
        rtt,
        max_ack_delay: Duration::from_millis(25),
        pto_count: 0,
        handshake: Handshake::Confirmed,
        address_validation: AddressValidation::Complete,
        amplification: AmplificationLimit::Clear,
    }
}

fn outstanding(sent_ms: u64) -> SpaceTimers {
    SpaceTimers { loss_time: None, last_ack_eliciting_at: Some(ms(sent_ms)), ack_eliciting_in_flight: 1 }
}

#[test]
fn nothing_outstanding_nothing_to_wait_for() {
    assert_eq!(next_timeout(&idle(&rtt())), None);
}

#[test]
fn loss_times_go_before_probes() {
    let rtt = rtt();
    let mut inputs = idle(&rtt);
    inputs.spaces = [outstanding(0), outstanding(0), outstanding(0)];
    inputs.spaces[1].loss_time = Some(ms(900));
    inputs.spaces[2].loss_time = Some(ms(800));
    inputs.amplification = AmplificationLimit::Reached;
    let timeout = next_timeout(&inputs);
    assert_eq!(timeout, Some(Timeout { at: ms(800), action: Action::DetectLosses(Space::Application) }));
}

#[test]
fn a_server_that_may_not_send_does_not_probe() {
    let rtt = rtt();
    let mut inputs = idle(&rtt);
    inputs.spaces[0] = outstanding(0);
    inputs.amplification = AmplificationLimit::Reached;
    assert_eq!(next_timeout(&inputs), None);
}

#[test]
fn the_earliest_space_is_probed_and_backed_off() {
    let rtt = rtt();
    let pto = rtt.pto(Duration::ZERO);
    let mut inputs = idle(&rtt);
    inputs.spaces = [SpaceTimers::default(), outstanding(20), outstanding(10)];
    let probe = |space, at| Some(Timeout { at, action: Action::Probe(space) });
    // The Application space waits for the peer's delay too: 10 + 25 is later than 20.
    assert_eq!(next_timeout(&inputs), probe(Space::Handshake, ms(20) + pto));
    inputs.spaces[1] = outstanding(40);
    assert_eq!(next_timeout(&inputs), probe(Space::Application, ms(35) + pto));
    inputs.pto_count = 3;
    assert_eq!(
        next_timeout(&inputs),
        probe(Space::Handshake, ms(40) + pto * 8),
        "the delay doubles too: 10 + 200"
    );
}

#[test]
fn the_application_space_waits_for_confirmation() {
    let rtt = rtt();
    let mut inputs = idle(&rtt);
    inputs.handshake = Handshake::Unconfirmed;
    inputs.spaces[2] = outstanding(10);
    assert_eq!(next_timeout(&inputs), None);
    inputs.spaces[1] = outstanding(500);
    assert_eq!(next_timeout(&inputs).map(|timeout| timeout.action), Some(Action::Probe(Space::Handshake)));
}

#[test]
fn a_client_keeps_the_server_able_to_send() {
    let rtt = rtt();
    let mut inputs = idle(&rtt);
    inputs.handshake = Handshake::Unconfirmed;
    inputs.address_validation = AddressValidation::PendingInInitial { since: ms(7) };
    inputs.pto_count = 1;
    let at = ms(7) + rtt.pto(Duration::ZERO) * 2;
    let expected = Timeout { at, action: Action::ProbeForPeer(Space::Initial) };
    assert_eq!(next_timeout(&inputs), Some(expected));
    inputs.address_validation = AddressValidation::PendingInHandshake { since: ms(7) };
    let expected = Timeout { at, action: Action::ProbeForPeer(Space::Handshake) };
    assert_eq!(next_timeout(&inputs), Some(expected));
    // 0-RTT data is outstanding and cannot be probed yet: the server must be kept going all the same.
    inputs.spaces[2] = outstanding(10);
    assert_eq!(next_timeout(&inputs), Some(expected));
    inputs.spaces[0] = outstanding(3);
    assert_eq!(next_timeout(&inputs).map(|timeout| timeout.action), Some(Action::Probe(Space::Initial)));
}

#[test]
fn extremes_saturate() {
    for seed in 0..100_000 {
        let mut rng = Rng::from_u64(seed);
        let mut rtt = Rtt::default();
        rtt.on_sample(Instant::ZERO, any_span(&mut rng), Duration::ZERO);
        let mut inputs = idle(&rtt);
        inputs.max_ack_delay = any_span(&mut rng);
        inputs.pto_count = any_magnitude(&mut rng) as u32;
        let sent = Instant::from_nanos(any_magnitude(&mut rng));
        let space = rng.below(3) as usize;
        inputs.spaces[space].ack_eliciting_in_flight = 1;
        inputs.spaces[space].last_ack_eliciting_at = Some(sent);
        assert!(next_timeout(&inputs).is_some_and(|timeout| timeout.at >= sent), "seed {seed}");
    }
}
