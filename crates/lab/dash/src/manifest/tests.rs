//! Manifests as our server and ffmpeg write them, and some that cannot be played.

use super::*;
use proptest::prelude::*;

/// As `ffmpeg -f dash` writes it, shortened.
const FFMPEG: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns="urn:mpeg:dash:schema:mpd:2011"
    profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static" mediaPresentationDuration="PT9.5S" minBufferTime="PT8.0S">
  <ProgramInformation></ProgramInformation>
  <ServiceDescription id="0"></ServiceDescription>
  <Period id="0" start="PT0.0S">
    <AdaptationSet id="0" contentType="video" startWithSAP="1" segmentAlignment="true" frameRate="25/1" par="16:9">
      <Representation id="1" mimeType="video/mp4" codecs="avc1.64001f" bandwidth="2500000" width="1280" height="720" sar="1:1">
        <SegmentTemplate timescale="12800" initialization="init-stream$RepresentationID$.m4s"
            media="chunk-stream$RepresentationID$-$Number%05d$.m4s" startNumber="1">
          <SegmentTimeline><S t="0" d="51200" r="1" /><S d="19200" /></SegmentTimeline>
        </SegmentTemplate>
      </Representation>
      <Representation id="0" mimeType="video/mp4" codecs="avc1.64001e" bandwidth="400000" width="640" height="360" sar="1:1">
        <SegmentTemplate timescale="12800" initialization="init-stream$RepresentationID$.m4s"
            media="chunk-stream$RepresentationID$-$Number%05d$.m4s" startNumber="1">
          <SegmentTimeline><S t="0" d="51200" r="-1" /></SegmentTimeline>
        </SegmentTemplate>
      </Representation>
    </AdaptationSet>
    <AdaptationSet id="1" contentType="audio" startWithSAP="1" segmentAlignment="true">
      <Representation id="2" mimeType="audio/mp4" codecs="mp4a.40.2" bandwidth="128000" audioSamplingRate="44100">
        <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="1" />
        <SegmentTemplate timescale="44100" duration="176400" media="audio/$Number$.m4s"/>
      </Representation>
    </AdaptationSet>
  </Period>
</MPD>"#;

#[test]
fn what_ffmpeg_writes_is_understood() {
    let film = Presentation::parse(FFMPEG).unwrap();
    assert_eq!(film.length, Duration::from_millis(9_500));
    let [low, high] = &film.video[..] else { panic!("{film:?}") };
    assert_eq!((low.bits_per_second, high.bits_per_second), (400_000, 2_500_000), "the lowest comes first");
    assert_eq!(high.initialization().unwrap(), "init-stream1.m4s");
    assert_eq!(high.count(), 3);
    assert_eq!(
        high.segment(2).unwrap(),
        ("chunk-stream1-00003.m4s".to_owned(), Duration::from_millis(1_500))
    );
    assert_eq!(high.segment(3), None);
    assert_eq!(low.count(), 3, "a negative repetition goes on to the end");
    let [audio] = &film.audio[..] else { panic!("{film:?}") };
    assert_eq!((audio.count(), audio.initialization()), (3, None));
    assert_eq!(audio.segment(2).unwrap(), ("audio/3.m4s".to_owned(), Duration::from_millis(1_500)));
}

#[test]
fn bases_are_put_in_front() {
    let text = |bases: [&str; 3]| {
        let [mpd, set, representation] = bases.map(|base| format!("<BaseURL>{base}</BaseURL>"));
        let template = r#"<SegmentTemplate duration="4" media="$Number$"/>"#;
        format!(
            r#"<MPD mediaPresentationDuration="PT1M">{mpd}<Period>
               <AdaptationSet mimeType="video/mp4">{set}{template}
               <Representation id="v" bandwidth="1">{representation}</Representation></AdaptationSet></Period></MPD>"#
        )
    };
    let first = |bases| Presentation::parse(&text(bases)).unwrap().video[0].segment(0).unwrap().0;
    assert_eq!(first(["a/", "b/", "c/"]), "a/b/c/1");
    assert_eq!(first(["a/", "/b/", "c/"]), "/b/c/1");
    assert_eq!(first(["a/", "b/", "https://other/c/"]), "https://other/c/1");
}

#[test]
fn spans_of_time() {
    let table = [
        ("PT4S", Some(4_000)),
        ("PT1H2M3.5S", Some(3_723_500)),
        ("P1DT1S", Some(86_401_000)),
        ("P1Y", None),
        ("4S", None),
        ("PT-4S", None),
        ("PT4X", None),
        ("PT1e99S", None),
    ];
    for (text, ms) in table {
        assert_eq!(seconds(text), ms.map(Duration::from_millis), "{text}");
    }
}

#[test]
fn what_cannot_be_played_is_said_in_words() {
    let text = FFMPEG.to_owned();
    let table = [
        (text.replace("static", "dynamic"), "live"),
        (text.replace("mediaPresentationDuration=\"PT9.5S\"", ""), "how long it lasts"),
        (text.replace("video", "text"), "no video"),
        (text.replace("d=\"51200\" r=\"1\"", "d=\"0\""), "without length"),
        (text.replace("r=\"1\"", "r=\"99999999999\""), "more than"),
        (text.replace("SegmentTemplate", "SegmentList"), "no segment template"),
        (text.replace("</MPD>", "<Period></Period></MPD>"), "2 periods"),
        ("<html></html>".to_owned(), "periods"),
        ("nonsense".to_owned(), "no DASH manifest"),
    ];
    for (text, words) in table {
        let refused = Presentation::parse(&text).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let most = format!("startNumber=\"{}\"", u64::MAX);
    let listed = FFMPEG.replace("startNumber=\"1\"", &most);
    let even = listed.replace("duration=\"176400\"", &format!("duration=\"176400\" {most}"));
    let film = Presentation::parse(&even).unwrap();
    for track in film.video.iter().chain(&film.audio) {
        let (place, _) = track.segment(2).unwrap();
        assert!(place.contains(&u64::MAX.to_string()), "{place}");
    }
}

/// Deleted, a manifest of a few kB could take hundreds of MB for every player.
#[test]
fn lists_of_segments_are_bounded_over_all_qualities() {
    let text = |qualities: usize| {
        let each = format!(
            r#"<Representation id="v" bandwidth="1"><SegmentTemplate media="$Number$"><SegmentTimeline>
               <S d="1" r="{}"/></SegmentTimeline></SegmentTemplate></Representation>"#,
            MOST_SEGMENTS - 1
        );
        let set = format!(r#"<AdaptationSet contentType="video">{}</AdaptationSet>"#, each.repeat(qualities));
        format!(r#"<MPD mediaPresentationDuration="P1D"><Period>{set}</Period></MPD>"#)
    };
    assert_eq!(Presentation::parse(&text(4)).unwrap().video.len(), 4);
    let refused = Presentation::parse(&text(5)).unwrap_err().to_string();
    assert!(refused.contains("lists more than 345600 segments"), "{refused}");
}

proptest! {
    /// A server's manifest must not make a player panic or take all memory, whatever is in it.
    #[test]
    fn damaged_manifests_are_turned_down_or_bounded(at in 0_usize..2_000, byte in 32_u8..127, cut in 0_usize..2_400) {
        let mut text = FFMPEG.as_bytes().to_vec();
        let place = at.min(text.len() - 1);
        text[place] = byte;
        text.truncate(cut.max(100).min(text.len()));
        for text in [String::from_utf8_lossy(&text).into_owned(), FFMPEG.replacen('1', &(byte as char).to_string(), 20)] {
            if let Ok(film) = Presentation::parse(&text) {
                for track in film.video.iter().chain(&film.audio) {
                    prop_assert!(track.count() <= MOST_SEGMENTS);
                    let _ = (track.initialization(), track.segment(0), track.segment(u64::MAX));
                }
            }
        }
    }
}
