//! Reductions whose losses prove to be none.

use super::*;

const ALL: [Algorithm; 3] = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague];

impl Path {
    /// So many packets sent at that time are declared lost. Returns the window then.
    fn lose_many(&mut self, sent_at: Instant, packets: u64) -> u64 {
        let sign = CongestionEvent { packets, ..sign(sent_at, CongestionCause::Loss) };
        self.controller.on_congestion(self.now, &sign);
        self.now = self.now + Duration::from_millis(1);
        self.controller.window()
    }

    /// So many of them, the earliest sent then, arrive after all. Returns the window then.
    fn find(&mut self, earliest: Instant, packets: u64) -> u64 {
        let late = AckedBytes { spurious: packets, spurious_from: Some(earliest), ..acked(0, earliest) };
        self.controller.on_ack(self.now, &late);
        self.now = self.now + Duration::from_millis(1);
        self.controller.window()
    }
}

fn path(algorithm: Algorithm) -> (Path, u64, Instant) {
    let mut path = Path::new(algorithm);
    path.rounds(6, 7);
    path.lose();
    path.rounds(40, 7);
    let (window, sent_at) = (path.controller.window(), path.now);
    path.now = path.now + RTT;
    (path, window, sent_at)
}

#[test]
fn a_reduction_is_undone_when_all_of_its_losses_have_arrived() {
    for algorithm in ALL {
        let (mut path, window, sent_at) = path(algorithm);
        let threshold = path.controller.ssthresh();
        let reduced = path.lose_many(sent_at, 3);
        assert!(reduced < window);
        assert_eq!(path.lose_many(sent_at, 2), reduced, "of the same recovery");
        assert_eq!(path.find(sent_at, 4), reduced, "one is still missing");
        assert_eq!(path.find(sent_at, 1), window, "{algorithm:?}");
        assert_eq!(path.controller.ssthresh(), threshold);
        // And what is lost now is news, although it left before the reduction that was undone.
        assert_eq!(path.lose_many(sent_at, 1), reduced, "{algorithm:?}");
    }
}

/// Or else one packet that comes late would end the first slow start for good.
#[test]
fn slow_start_goes_on() {
    for algorithm in ALL {
        let mut path = Path::new(algorithm);
        path.rounds(2, 7);
        let (window, sent_at) = (path.controller.window(), path.now);
        path.now = path.now + RTT;
        path.lose_many(sent_at, 1);
        assert!(!path.controller.is_in_slow_start());
        assert_eq!(path.find(sent_at, 1), window);
        assert!(path.controller.is_in_slow_start());
        assert_eq!(path.round(7), window * 2, "{algorithm:?}");
    }
}

/// The curve goes on where it was, not from a new plateau.
#[test]
fn cubic_remembers_its_curve() {
    let [mut path, mut other] = [path(Algorithm::Cubic), path(Algorithm::Cubic)].map(|(path, ..)| path);
    let sent_at = path.now - RTT;
    path.lose_many(sent_at, 2);
    path.find(sent_at, 2);
    other.now = path.now;
    for _ in 0..60 {
        let (one, same) = (path.round(7), other.round(7));
        assert!(one.abs_diff(same) <= u64::from(MTU), "{one} {same}");
    }
}

#[test]
fn true_congestion_is_not_undone() {
    for algorithm in ALL {
        // Marks in the same recovery say that there is a queue.
        let (mut path, _, sent_at) = path(algorithm);
        let reduced = path.lose_many(sent_at, 1);
        path.controller.on_congestion(path.now, &marks(sent_at, sent_at, 1));
        assert_eq!(path.find(sent_at, 1), reduced, "{algorithm:?}");
        // Persistent congestion.
        let (mut path, _, sent_at) = self::path(algorithm);
        path.lose_many(sent_at, 1);
        path.controller.on_persistent_congestion();
        assert_eq!(path.find(sent_at, 1), 2 * u64::from(MTU), "{algorithm:?}");
        // What arrives late is of the recovery before.
        let (mut path, window, sent_at) = self::path(algorithm);
        path.lose_many(sent_at, 2);
        path.rounds(1, 7);
        let again = path.now;
        path.now = path.now + RTT;
        let reduced = path.lose_many(again, 1);
        assert_eq!(path.find(sent_at, 1), reduced);
        assert!(path.find(again, 1) < window, "only the second reduction, {algorithm:?}");
    }
}

/// A window that has collapsed is reduced by losses of its own, and only their arrival undoes that.
#[test]
fn arrivals_from_before_persistent_congestion_undo_no_later_reduction() {
    for algorithm in ALL {
        let (mut path, _, before) = path(algorithm);
        path.lose_many(before, 1);
        path.controller.on_persistent_congestion();
        path.rounds(6, 7);
        let sent_at = path.now;
        path.now = path.now + RTT;
        let reduced = path.lose_many(sent_at, 1);
        assert_eq!(path.find(before, 1), reduced, "{algorithm:?}");
        assert!(path.find(sent_at, 1) > reduced, "{algorithm:?}");
    }
}

/// RFC 9438 §4.9.2: the latest values are kept if the window is larger by then.
#[test]
fn a_window_that_has_grown_beyond_stays() {
    for algorithm in ALL {
        let (mut path, window, sent_at) = path(algorithm);
        path.lose_many(sent_at, 1);
        while path.round(7) <= window {}
        let grown = path.controller.window();
        assert_eq!(path.find(sent_at, 1), grown, "{algorithm:?}");
    }
}

/// Auto, made BBR's by two losses while nothing waits; the window before, and when the packets were sent.
fn deceived() -> (Path, u64, Instant) {
    let mut path = Path::new(Algorithm::Auto);
    path.rounds(3, 7);
    let (window, sent_at) = (path.controller.window(), path.now);
    path.now = path.now + RTT;
    path.lose_many(sent_at, 2);
    path.controller.on_ack(path.now, &acked(2 * u64::from(MTU), sent_at));
    assert_eq!(path.controller.in_use(), Algorithm::Bbr);
    (path, window, sent_at)
}

/// Deleted, a download whose packets come late would be BBR's although CUBIC suits it as well.
#[test]
fn auto_gives_cubic_back_as_it_was() {
    let (mut path, window, sent_at) = deceived();
    path.find(sent_at, 1);
    assert_eq!(path.controller.in_use(), Algorithm::Bbr, "one is still missing");
    assert_eq!(path.find(sent_at, 1), window);
    let choice = path.controller.choice().expect("auto");
    assert_eq!((choice.in_use, choice.cause), (Algorithm::Cubic, Some(Cause::SpuriousLoss)));
    assert!(path.controller.is_in_slow_start());
    assert_eq!(path.round(7), window * 2);
    // It has not become warier of losses that are some.
    let sent_at = path.now;
    path.now = path.now + RTT;
    path.lose_many(sent_at, 1);
    path.round(7);
    assert_eq!(path.controller.in_use(), Algorithm::Bbr);
}

#[test]
fn auto_does_not_where_something_has_been_lost_or_has_changed() {
    type Event = fn(&mut Path, Instant);
    let events: [Event; 4] = [
        |path, sent_at| path.controller.on_congestion(path.now, &marks(sent_at, sent_at, 1)),
        |path, _| path.controller.on_persistent_congestion(),
        |path, _| path.controller.on_mtu_change(MTU + 100),
        |path, _| {
            path.now = path.now + RTT;
            path.lose_many(path.now, 1);
        },
    ];
    for event in events {
        let (mut path, _, sent_at) = deceived();
        event(&mut path, sent_at);
        path.find(sent_at, 2);
        assert_eq!(path.controller.in_use(), Algorithm::Bbr);
    }
}
