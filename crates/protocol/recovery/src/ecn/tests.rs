use super::*;
use EcnState::{Capable, Disabled, Failed, Testing, Unknown};
use base::rng::Rng;

const SPACE: Space = Space::Application;

fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1, ce })
}

/// A path on which ten packets left marked.
fn tested() -> EcnValidator {
    let mut ecn = EcnValidator::new();
    for sent in 0..TESTING_PACKETS {
        assert_eq!((ecn.state(), ecn.mark(), sent < 10), (Testing, Ecn::Ect0, true));
        ecn.on_sent(SPACE, ecn.mark(), 1);
    }
    assert_eq!((ecn.state(), ecn.mark()), (Unknown, Ecn::NotEct));
    ecn
}

/// Every state against every kind of report, as (newly acknowledged, report, state after). Deleting a row lets a path
/// that changes marks pass, or one that does not fail.
#[test]
fn reports_and_what_becomes_of_them() {
    for (newly_acked, report, state, why) in [
        (2, counts(2, 0, 0), Capable, "as sent"),
        (2, counts(1, 0, 1), Capable, "one met congestion"),
        (1, counts(3, 0, 0), Capable, "an earlier ACK frame was lost"),
        (0, counts(0, 0, 0), Unknown, "nothing marked was acknowledged"),
        (0, None, Unknown, "nor this time"),
        (2, None, Failed, "no counts for marked packets"),
        (2, counts(1, 0, 0), Failed, "a mark was cleared"),
        (2, counts(2, 1, 0), Failed, "marked ECT(1), which we never use"),
        (2, counts(11, 0, 0), Failed, "more than were sent"),
        (10, counts(0, 0, 10), Failed, "all marked CE"),
    ] {
        let mut ecn = tested();
        ecn.on_ack(SPACE, newly_acked, report);
        assert_eq!(ecn.state(), state, "{why}");
    }
}

#[test]
fn congestion_is_reported_once() {
    let mut ecn = tested();
    assert_eq!(ecn.on_ack(SPACE, 4, counts(3, 0, 1)), EcnOutcome::CongestionEvent(1));
    assert_eq!(ecn.on_ack(SPACE, 4, counts(7, 0, 1)), EcnOutcome::Nothing);
    assert_eq!(ecn.on_ack(SPACE, 2, counts(7, 0, 3)), EcnOutcome::CongestionEvent(2));
    assert_eq!(ecn.state(), Capable);
    assert_eq!(ecn.on_ack(SPACE, 0, counts(6, 0, 3)), EcnOutcome::Nothing);
    assert_eq!(ecn.state(), Failed, "counts never fall");
    assert_eq!(
        ecn.on_ack(SPACE, 0, counts(7, 0, 9)),
        EcnOutcome::Nothing,
        "and nothing is believed after that"
    );
}

#[test]
fn spaces_are_counted_apart() {
    let mut ecn = EcnValidator::new();
    ecn.on_sent(Space::Initial, Ecn::Ect0, 1);
    ecn.on_sent(Space::Handshake, Ecn::Ect0, 2);
    ecn.on_ack(Space::Initial, 1, counts(1, 0, 0));
    ecn.on_ack(Space::Handshake, 2, counts(2, 0, 0));
    assert_eq!(ecn.state(), Capable);
}

#[test]
fn a_path_that_drops_marked_packets_gets_none() {
    let mut ecn = tested();
    ecn.on_lost(9);
    assert_eq!(ecn.state(), Unknown);
    ecn.on_lost(1);
    assert_eq!(ecn.state(), Failed);
    let mut ecn = EcnValidator::new();
    ecn.on_sent(Space::Initial, ecn.mark(), 1);
    ecn.on_pto();
    assert_eq!(ecn.mark(), Ecn::NotEct, "the probe leaves unmarked");
    ecn.on_ack(Space::Initial, 1, counts(1, 0, 0));
    assert_eq!(ecn.state(), Capable, "it was only late");
}

#[test]
fn a_new_path_starts_over_from_the_old_counts() {
    let mut ecn = tested();
    ecn.on_ack(SPACE, 10, counts(8, 0, 2));
    ecn.on_path_change();
    assert_eq!(ecn.state(), Testing);
    ecn.on_sent(SPACE, Ecn::Ect0, 3);
    assert_eq!(ecn.on_ack(SPACE, 3, counts(11, 0, 2)), EcnOutcome::Nothing);
    assert_eq!(ecn.state(), Capable);
    let mut never = EcnValidator::disabled();
    never.on_path_change();
    assert_eq!((never.state(), never.mark()), (Disabled, Ecn::NotEct));
}

#[test]
fn an_honest_path_never_fails_and_a_lying_peer_never_overflows() {
    for seed in 0..20_000 {
        let mut rng = Rng::from_u64(seed);
        let (mut honest, mut lied_to) = (EcnValidator::new(), EcnValidator::new());
        let mut report = EcnCounts::default();
        for _ in 0..30 {
            let mark = honest.mark();
            honest.on_sent(SPACE, mark, 3);
            if mark == Ecn::Ect0 {
                let ce = rng.below(3);
                report.ce += ce;
                report.ect0 += 3 - ce;
            }
            honest.on_ack(SPACE, if mark == Ecn::Ect0 { 3 } else { 0 }, Some(report));
            assert_ne!(honest.state(), Failed, "seed {seed}");
            let mut any = || crate::testing::any_magnitude(&mut rng);
            let (newly_acked, lie) = (any() >> 8, EcnCounts { ect0: any(), ect1: any(), ce: any() });
            lied_to.on_sent(SPACE, lied_to.mark(), 3);
            lied_to.on_ack(SPACE, newly_acked, Some(lie));
        }
    }
}

#[test]
fn ect1_is_validated_as_ect0_is() {
    let mut ecn = EcnValidator::new().with_mark(Ecn::Ect1);
    assert_eq!(ecn.mark(), Ecn::Ect1);
    ecn.on_sent(Space::Application, Ecn::Ect1, 10);
    let counts = |ect0, ect1, ce| Some(EcnCounts { ect0, ect1, ce });
    assert_eq!(ecn.on_ack(Space::Application, 4, counts(0, 3, 1)), EcnOutcome::CongestionEvent(1));
    assert_eq!((ecn.state(), ecn.mark()), (EcnState::Capable, Ecn::Ect1));
    // A path that makes ECT(0) of ECT(1) would tell a classic queue that we are classic.
    ecn.on_ack(Space::Application, 2, counts(2, 3, 1));
    assert_eq!((ecn.state(), ecn.mark()), (EcnState::Failed, Ecn::NotEct));
}
