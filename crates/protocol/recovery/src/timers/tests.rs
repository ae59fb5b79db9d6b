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
        spaces: &[NOTHING; 3],
        rtt,
        max_ack_delay: Duration::from_millis(25),
        doublings: 0,
        handshake: Handshake::Confirmed,
        address_validation: AddressValidation::Complete,
        amplification: AmplificationLimit::Clear,
    }
}

const NOTHING: SpaceTimers =
    SpaceTimers { loss_time: None, last_ack_eliciting_at: None, ack_eliciting_in_flight: 0 };

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
    let lost = |at| SpaceTimers { loss_time: Some(ms(at)), ..outstanding(0) };
    let spaces = [outstanding(0), lost(900), lost(800)];
    inputs.spaces = &spaces;
    inputs.amplification = AmplificationLimit::Reached;
    let timeout = next_timeout(&inputs);
    assert_eq!(timeout, Some(Timeout { at: ms(800), action: Action::DetectLosses(Space::Application) }));
}

#[test]
fn a_server_that_may_not_send_does_not_probe() {
    let rtt = rtt();
    let mut inputs = idle(&rtt);
    let spaces = [outstanding(0), NOTHING, NOTHING];
    inputs.spaces = &spaces;
    inputs.amplification = AmplificationLimit::Reached;
    assert_eq!(next_timeout(&inputs), None);
}

#[test]
fn the_earliest_space_is_probed_and_backed_off() {
    let rtt = rtt();
    let pto = rtt.pto(Duration::ZERO);
    let mut inputs = idle(&rtt);
    let spaces = [NOTHING, outstanding(20), outstanding(10)];
    inputs.spaces = &spaces;
    let probe = |space, at| Some(Timeout { at, action: Action::Probe(space) });
    // The Application space waits for the peer's delay too: 10 + 25 is later than 20.
    assert_eq!(next_timeout(&inputs), probe(Space::Handshake, ms(20) + pto));
    let spaces = [NOTHING, outstanding(40), outstanding(10)];
    inputs.spaces = &spaces;
    assert_eq!(next_timeout(&inputs), probe(Space::Application, ms(35) + pto));
    // Without the spaces of the handshake the one that is left is still the last one.
    inputs.spaces = &spaces[2..];
    assert_eq!(next_timeout(&inputs), probe(Space::Application, ms(35) + pto));
    inputs.spaces = &spaces;
    inputs.doublings = 3;
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
    let spaces = [NOTHING, NOTHING, outstanding(10)];
    inputs.spaces = &spaces;
    assert_eq!(next_timeout(&inputs), None);
    let spaces = [NOTHING, outstanding(500), outstanding(10)];
    inputs.spaces = &spaces;
    assert_eq!(next_timeout(&inputs).map(|timeout| timeout.action), Some(Action::Probe(Space::Handshake)));
}

#[test]
fn a_client_keeps_the_server_able_to_send() {
    let rtt = rtt();
    let mut inputs = idle(&rtt);
    inputs.handshake = Handshake::Unconfirmed;
    inputs.address_validation = AddressValidation::PendingInInitial { since: ms(7) };
    inputs.doublings = 1;
    let at = ms(7) + rtt.pto(Duration::ZERO) * 2;
    let expected = Timeout { at, action: Action::ProbeForPeer(Space::Initial) };
    assert_eq!(next_timeout(&inputs), Some(expected));
    inputs.address_validation = AddressValidation::PendingInHandshake { since: ms(7) };
    let expected = Timeout { at, action: Action::ProbeForPeer(Space::Handshake) };
    assert_eq!(next_timeout(&inputs), Some(expected));
    // 0-RTT data is outstanding and cannot be probed yet: the server must be kept going all the same.
    let spaces = [NOTHING, NOTHING, outstanding(10)];
    inputs.spaces = &spaces;
    assert_eq!(next_timeout(&inputs), Some(expected));
    let spaces = [outstanding(3), NOTHING, outstanding(10)];
    inputs.spaces = &spaces;
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
        inputs.doublings = any_magnitude(&mut rng) as u32;
        let sent = Instant::from_nanos(any_magnitude(&mut rng));
        let space = rng.below(3) as usize;
        let mut spaces = [NOTHING; 3];
        spaces[space].ack_eliciting_in_flight = 1;
        spaces[space].last_ack_eliciting_at = Some(sent);
        inputs.spaces = &spaces;
        assert!(next_timeout(&inputs).is_some_and(|timeout| timeout.at >= sent), "seed {seed}");
    }
}
