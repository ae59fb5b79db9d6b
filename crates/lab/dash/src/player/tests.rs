//! Players in front of a simulated network: a link of a rate that changes with time, and a round trip before each answer.

use super::*;
use proptest::prelude::*;

/// Six qualities in segments of 4 s, and sound.
fn film(length_s: u64) -> Presentation {
    let representations: String = [400, 1_000, 2_500, 5_000, 8_000, 16_000]
        .iter()
        .map(|kbit| format!(r#"<Representation id="{kbit}" bandwidth="{}"/>"#, kbit * 1_000))
        .collect();
    let template =
        r#"<SegmentTemplate duration="4" initialization="$Bandwidth$/0" media="$Bandwidth$/$Number$"/>"#;
    Presentation::parse(&format!(
        r#"<MPD mediaPresentationDuration="PT{length_s}S"><Period>
           <AdaptationSet contentType="video">{template}{representations}</AdaptationSet>
           <AdaptationSet contentType="audio">{template}<Representation id="a" bandwidth="128000"/></AdaptationSet>
           </Period></MPD>"#
    ))
    .unwrap()
}

/// A link whose rate in bits a second is a function of time in seconds, 0 being a link that carries nothing.
struct Link<'a> {
    rate: &'a dyn Fn(f64) -> f64,
    round_trip: Duration,
}

const STEP: Duration = Duration::from_millis(10);

impl Link<'_> {
    /// When this many bits have come that were asked for now.
    fn arrival(&self, now: Instant, bits: f64, until: Instant) -> Instant {
        let (mut at, mut left) = (now + self.round_trip, bits);
        while left > 0.0 && at < until {
            left -= (self.rate)(at.saturating_since(Instant::ZERO).as_secs_f64()) * STEP.as_secs_f64();
            at = at + STEP;
        }
        at.min(until)
    }
}

/// Plays for this many seconds. `asked` hears what was fetched and when.
fn play(
    settings: Settings,
    film: Presentation,
    link: &Link<'_>,
    seconds: u64,
    asked: &mut dyn FnMut(f64, &str),
) -> PlaybackRecord {
    let until = Instant::ZERO + Duration::from_secs(seconds);
    let mut player = Player::new(film, settings, Instant::ZERO, Instant::ZERO);
    let mut now = Instant::ZERO;
    while now < until {
        match player.next(now) {
            Step::Fetch(place) => {
                asked(now.saturating_since(Instant::ZERO).as_secs_f64(), &place);
                let (bandwidth, number) = place.split_once('/').unwrap();
                let seconds = if number == "0" { 0.01 } else { 4.0 };
                let bits = bandwidth.parse::<f64>().unwrap() * seconds;
                now = link.arrival(now, bits, until);
                if now < until {
                    player.on_fetched(now, (bits / 8.0) as u64);
                }
            }
            Step::Wait(at) => now = at.max(now + Duration::from_nanos(1)).min(until),
            Step::Over => break,
        }
    }
    player.finish(now)
}

fn settings(rule: Rule) -> Settings {
    Settings { rule, ..Settings::default() }
}

const BOTH: [Rule; 2] = [Rule::Throughput, Rule::Buffer];

#[test]
fn a_steady_network_is_used_and_never_stands_still() {
    let link = Link { rate: &|_| 6_500_000.0, round_trip: Duration::from_millis(20) };
    for rule in BOTH {
        let playback_record = play(settings(rule), film(600), &link, 120, &mut |_, _| {});
        assert_eq!(
            (playback_record.stalls, playback_record.failures),
            (0, 0),
            "{rule:?} {playback_record:?}"
        );
        assert!((3e6..6.5e6).contains(&playback_record.bits_per_second), "{rule:?} {playback_record:?}");
        // The lowest quality's first segment, sound, and what precedes both.
        let startup = playback_record.startup.unwrap().as_secs_f64();
        assert!((0.2..1.5).contains(&startup), "{rule:?} {playback_record:?}");
        assert!(
            (playback_record.played.as_secs_f64() + startup - 120.0).abs() < 0.1,
            "{rule:?} {playback_record:?}"
        );
        // The throughput rule knows at once what the link carries; BOLA passes through the ladder as the buffer fills.
        let most = if rule == Rule::Throughput { 1 } else { 40 };
        assert!(playback_record.switches <= most, "{rule:?} {playback_record:?}");
    }
}

#[test]
fn a_network_that_becomes_slow_lowers_the_quality_in_time() {
    let link = Link { rate: &|s| if s < 60.0 { 20e6 } else { 1.6e6 }, round_trip: Duration::from_millis(20) };
    for rule in BOTH {
        let mut late = Vec::new();
        let playback_record = play(settings(rule), film(600), &link, 180, &mut |s, place| {
            if s > 120.0 && !place.starts_with("128000") {
                late.push(place.split('/').next().unwrap().parse::<u64>().unwrap());
            }
        });
        assert!(
            playback_record.stalls <= 1 && playback_record.stalled < Duration::from_secs(30),
            "{rule:?} {playback_record:?}"
        );
        let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
        assert!(mean <= 1.6e6, "{rule:?} {mean}");
        assert!(
            playback_record.qualities[0] + playback_record.qualities[1] > Duration::from_secs(40),
            "{rule:?} {playback_record:?}"
        );
    }
}

/// Deleted, time without a picture could be lost or counted twice.
#[test]
fn an_outage_is_counted_as_it_is_seen() {
    let link = Link { rate: &|s| if (60.0..110.0).contains(&s) { 0.0 } else { 10e6 }, round_trip: STEP };
    for rule in BOTH {
        let playback_record = play(settings(rule), film(600), &link, 150, &mut |_, _| {});
        assert_eq!(playback_record.stalls, 1, "{rule:?} {playback_record:?}");
        // 50 s without network, of which the buffer covers up to 30; and what was under way at its end still has to come.
        assert!(
            (18.0..40.0).contains(&playback_record.stalled.as_secs_f64()),
            "{rule:?} {playback_record:?}"
        );
        let all = playback_record.played + playback_record.stalled + playback_record.startup.unwrap();
        assert!((all.as_secs_f64() - 150.0).abs() < 0.1, "{rule:?} {playback_record:?}");
        assert!(
            (playback_record.stall_ratio() - playback_record.stalled.as_secs_f64() / 150.0).abs() < 0.02,
            "{rule:?} {playback_record:?}"
        );
    }
}

#[test]
fn a_network_below_the_ladder_stands_still_again_and_again() {
    let link = Link { rate: &|_| 300_000.0, round_trip: STEP };
    for rule in BOTH {
        let playback_record = play(settings(rule), film(600), &link, 300, &mut |_, _| {});
        assert!(
            playback_record.stalls >= 5 && playback_record.stall_ratio() > 0.3,
            "{rule:?} {playback_record:?}"
        );
        assert_eq!(playback_record.bits_per_second, 400_000.0, "{rule:?} {playback_record:?}");
    }
}

#[test]
fn it_fetches_no_more_than_the_buffer_takes_and_ends_with_the_film() {
    let link = Link { rate: &|_| 1e9, round_trip: STEP };
    for rule in BOTH {
        let mut fetched = Vec::new();
        let playback_record = play(settings(rule), film(100), &link, 1_000, &mut |s, place| {
            if !place.starts_with("128000") && !place.ends_with("/0") {
                fetched.push(s);
            }
        });
        assert_eq!(fetched.len(), 25, "{rule:?}");
        for (index, at) in fetched.iter().enumerate() {
            // What is fetched then is buffered, or played since the beginning.
            assert!(4.0 * (index + 1) as f64 <= 30.0 + at + 0.001, "{rule:?} segment {index} at {at}");
        }
        assert_eq!(
            (playback_record.played, playback_record.stalls),
            (Duration::from_secs(100), 0),
            "{rule:?}"
        );
    }
}

/// Deleted, a server with an empty film could keep every player busy with waiting for now.
#[test]
fn a_film_without_segments_is_over_at_once() {
    let empty = r#"<MPD mediaPresentationDuration="PT9S"><Period><AdaptationSet contentType="video">
        <SegmentTemplate media="$Number$"><SegmentTimeline></SegmentTimeline></SegmentTemplate>
        <Representation id="v" bandwidth="1"/></AdaptationSet></Period></MPD>"#;
    for film in [film(0), Presentation::parse(empty).unwrap()] {
        let mut player = Player::new(film, settings(Rule::Throughput), Instant::ZERO, Instant::ZERO);
        assert_eq!(player.next(Instant::ZERO), Step::Over);
        let playback_record = player.finish(Instant::ZERO);
        assert_eq!(
            (playback_record.startup, playback_record.stalls, playback_record.played),
            (None, 0, Duration::ZERO)
        );
    }
}

#[test]
fn what_fails_is_asked_for_again_and_not_for_ever() {
    let mut player = Player::new(film(100), settings(Rule::Throughput), Instant::ZERO, Instant::ZERO);
    let mut now = Instant::ZERO;
    for _ in 0..4 {
        assert!(matches!(player.next(now), Step::Fetch(_)));
        player.on_failed(now);
        let Step::Wait(at) = player.next(now) else { panic!("it waits before it asks again") };
        now = at;
    }
    assert!(matches!(player.next(now), Step::Fetch(_)));
    player.on_failed(now);
    assert_eq!(player.next(now), Step::Over);
    let playback_record = player.finish(now);
    assert_eq!((playback_record.failures, playback_record.startup), (5, None));
}

proptest! {
    /// Whatever the network does, time adds up and nothing overflows.
    #[test]
    fn time_adds_up(rates in prop::collection::vec(0_u32..30_000_000, 1..20), buffer in any::<bool>(), trip in 0_u64..2_000) {
        let rate = |s: f64| f64::from(rates[(s / 10.0) as usize % rates.len()]);
        let link = Link { rate: &rate, round_trip: Duration::from_millis(trip) };
        let rule = if buffer { Rule::Buffer } else { Rule::Throughput };
        let playback_record = play(settings(rule), film(600), &link, 100, &mut |_, _| {});
        let all = playback_record.startup.map_or(100.0, |startup| (playback_record.played + playback_record.stalled + startup).as_secs_f64());
        prop_assert!((all - 100.0).abs() < 0.1, "{all} {playback_record:?}");
        prop_assert!(playback_record.bits_per_second <= 16e6 && playback_record.stall_ratio() <= 1.0);
    }
}
