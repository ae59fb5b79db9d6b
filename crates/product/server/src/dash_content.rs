//! A film that is made up, for DASH players: `/dash/manifest.mpd` and its segments (ISO/IEC 23009-1).
//!
//! 84 minutes of a ladder of video qualities and one of sound, in segments of 4 s; below `/dash/2s/` in segments of 2 s, and so on
//! from 1 to 10. Every segment of a quality has the size that its bitrate says; what is in it is [`base::pattern`], so players that
//! count bytes can play it and people cannot.

use core::fmt::Write as _;

/// Bitrates of the video, in kbit/s, with the picture's width and height.
const VIDEO: [(u64, u16, u16); 6] = [
    (400, 426, 240),
    (1_000, 640, 360),
    (2_500, 1_280, 720),
    (5_000, 1_920, 1_080),
    (8_000, 2_560, 1_440),
    (16_000, 3_840, 2_160),
];
/// The bitrate of the sound, in kbit/s.
const AUDIO: u64 = 128;
/// How long it lasts, in seconds: a multiple of all segment lengths.
const LENGTH: u64 = 5_040;
/// Seconds of a segment where the path does not say.
const SEGMENT: u64 = 4;
/// Bytes of what precedes a quality's first segment.
const INIT: u64 = 1_000;

/// What a path below `/dash/` means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The manifest's text.
    Manifest(String),
    /// Made-up bytes, this many.
    Media(u64),
}

/// What `path` (decoded, without the leading slash) means; `None` if it is no part of the film.
pub(crate) fn find(path: &[u8]) -> Option<Part> {
    let path = core::str::from_utf8(path).ok()?.strip_prefix("dash/")?;
    let (segment, path) = match path.split_once("s/") {
        Some((seconds, rest)) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
            (seconds.parse().ok().filter(|seconds| (1..=10).contains(seconds))?, rest)
        }
        _ => (SEGMENT, path),
    };
    if path == "manifest.mpd" {
        return Some(Part::Manifest(manifest(segment)));
    }
    let (quality, name) = path.split_once('/')?;
    let kbit = match quality.strip_prefix("video-") {
        Some(kbit) => VIDEO.iter().map(|(known, ..)| *known).find(|known| known.to_string() == kbit)?,
        None if quality == "audio" => AUDIO,
        None => return None,
    };
    if name == "init.mp4" {
        return Some(Part::Media(INIT));
    }
    let number: u64 = name.strip_suffix(".m4s").filter(|digits| !digits.starts_with('+'))?.parse().ok()?;
    (1..=LENGTH / segment).contains(&number).then_some(Part::Media(kbit * 1_000 / 8 * segment))
}

fn manifest(segment: u64) -> String {
    let template = format!(
        r#"<SegmentTemplate timescale="1000" duration="{}" startNumber="1" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s"/>"#,
        segment * 1_000
    );
    let mut text = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static" mediaPresentationDuration="PT{LENGTH}S" minBufferTime="PT{segment}S">
  <Period id="0" start="PT0S">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true" startWithSAP="1">
      {template}
"#
    );
    for (kbit, width, height) in VIDEO {
        // Writing into a text does not fail.
        let _ = writeln!(
            text,
            r#"      <Representation id="video-{kbit}" codecs="avc1.640028" bandwidth="{}" width="{width}" height="{height}"/>"#,
            kbit * 1_000
        );
    }
    let _ = write!(
        text,
        r#"    </AdaptationSet>
    <AdaptationSet id="1" contentType="audio" mimeType="audio/mp4" lang="und" segmentAlignment="true" startWithSAP="1">
      {template}
      <Representation id="audio" codecs="mp4a.40.2" bandwidth="{}" audioSamplingRate="48000"/>
    </AdaptationSet>
  </Period>
</MPD>
"#,
        AUDIO * 1_000
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a player could be given segments of another size than its bitrate says, and would measure nonsense.
    #[test]
    fn segments_have_the_size_that_the_manifest_promises() {
        let table: &[(&str, Option<u64>)] = &[
            ("dash/video-400/1.m4s", Some(200_000)),
            ("dash/2s/video-400/1.m4s", Some(100_000)),
            ("dash/video-16000/1260.m4s", Some(8_000_000)),
            ("dash/video-16000/1261.m4s", None),
            ("dash/audio/7.m4s", Some(64_000)),
            ("dash/audio/init.mp4", Some(INIT)),
            ("dash/video-400/0.m4s", None),
            ("dash/video-400/+1.m4s", None),
            ("dash/video-401/1.m4s", None),
            ("dash/0s/video-400/1.m4s", None),
            ("dash/11s/manifest.mpd", None),
            ("dash/video-400", None),
            ("dash/", None),
            ("video-400/1.m4s", None),
        ];
        for (path, size) in table {
            assert_eq!(find(path.as_bytes()), size.map(Part::Media), "{path}");
        }
        assert_eq!(find(b"dash/4s/manifest.mpd"), find(b"dash/manifest.mpd"));
        let Some(Part::Manifest(text)) = find(b"dash/2s/manifest.mpd") else { panic!("there is a manifest") };
        assert!(text.contains(r#"duration="2000""#) && text.contains(r#"id="video-16000""#), "{text}");
        assert!((1..=10).all(|segment| LENGTH.is_multiple_of(segment)));
    }
}
