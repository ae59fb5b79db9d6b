//! What a manifest says: which qualities there are, and where their segments lie.
//!
//! Taken from the XML are on-demand presentations of one period with segment templates, numbered or timed, which is what ffmpeg
//! and the other usual packagers write. Live presentations, segment lists and byte ranges of single files are turned down in
//! words. Times of a player are base::time; those of the manifest, in its own units, end here.

mod template;
mod xml;

use base::time::Duration;
use core::fmt;
use template::Template;
use xml::{AdaptationSet, Mpd, Representation, SegmentTemplate};

/// A film, or whatever it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Presentation {
    /// How long it lasts.
    pub length: Duration,
    /// The qualities of the picture, the lowest bitrate first; at least one.
    pub video: Vec<Track>,
    /// Those of the sound; none when there is no sound of its own.
    pub audio: Vec<Track>,
}

/// One quality of picture or sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Its name in the manifest.
    pub id: String,
    /// Its bitrate as the manifest says.
    pub bits_per_second: u64,
    base: String,
    initialization: Option<Template>,
    media: Template,
    timing: Timing,
}

/// When segments begin, in units of which a second has `timescale`.
#[derive(Clone, Debug, PartialEq)]
enum Timing {
    /// All equally long but the last.
    Even { timescale: u64, duration: u64, first_number: u64, length: Duration },
    /// Each with its beginning and its length.
    Listed { timescale: u64, first_number: u64, segments: Vec<(u64, u64)> },
}

/// Why a manifest cannot be played: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError(String);

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ManifestError {}

fn error(what: impl Into<String>) -> ManifestError {
    ManifestError(what.into())
}

/// The most segments that a quality may have: a day of seconds. What a server sends must not take all memory.
const MOST_SEGMENTS: u64 = 86_400;
/// The most qualities.
const MOST_TRACKS: usize = 100;
/// The most segments that a player remembers the times of, over all qualities: a few hundred bytes of a manifest can list many,
/// and every player has its own list. 16 bytes each.
const MOST_LISTED: usize = 4 * MOST_SEGMENTS as usize;

impl Presentation {
    /// Reads a manifest.
    ///
    /// # Errors
    /// It is no manifest, or one that cannot be played here.
    pub fn parse(text: &str) -> Result<Presentation, ManifestError> {
        let mpd: Mpd = quick_xml::de::from_str(text)
            .map_err(|cause| error(format!("it is no DASH manifest: {cause}")))?;
        if mpd.kind.as_deref() == Some("dynamic") {
            return Err(error("it is a live presentation: only those on demand can be played"));
        }
        let [period] = &mpd.periods[..] else {
            return Err(error(format!(
                "it has {} periods: only a single one can be played",
                mpd.periods.len()
            )));
        };
        let length = period.duration.as_ref().or(mpd.duration.as_ref());
        let length = length.ok_or_else(|| error("it does not say how long it lasts"))?;
        let length = seconds(length).ok_or_else(|| error(format!("{length} is no length of time")))?;
        let outer = [mpd.base.first(), period.base.first()];
        let (mut video, mut audio) = (Vec::new(), Vec::new());
        let mut listed = 0;
        for set in &period.sets {
            for representation in &set.representations {
                let list = match set.content(representation) {
                    "video" => &mut video,
                    "audio" => &mut audio,
                    _ => continue,
                };
                if list.len() < MOST_TRACKS {
                    let template = representation.template.as_ref().or(set.template.as_ref());
                    let inherited = set.template.as_ref().or(period.template.as_ref());
                    let track = track(set, representation, template.or(inherited), (outer, length))?;
                    listed += track.timing.listed();
                    if listed > MOST_LISTED {
                        return Err(error(format!("it lists more than {MOST_LISTED} segments")));
                    }
                    list.push(track);
                }
            }
        }
        if video.is_empty() {
            return Err(error("it has no video"));
        }
        for list in [&mut video, &mut audio] {
            list.sort_by_key(|track| track.bits_per_second);
        }
        Ok(Presentation { length, video, audio })
    }
}

type Bases<'a> = [Option<&'a String>; 2];

fn track(
    set: &AdaptationSet,
    representation: &Representation,
    template: Option<&SegmentTemplate>,
    (outer, length): (Bases<'_>, Duration),
) -> Result<Track, ManifestError> {
    let id = representation.id.clone();
    let template = template.ok_or_else(|| error(format!("quality {id} has no segment template")))?;
    let inherited = set.template.as_ref();
    let media = template.media.as_ref().or(inherited.and_then(|set| set.media.as_ref()));
    let media = media.ok_or_else(|| error(format!("quality {id} does not say where its segments are")))?;
    let initialization =
        template.initialization.as_ref().or(inherited.and_then(|set| set.initialization.as_ref()));
    let mut base = String::new();
    for part in outer.into_iter().flatten().chain(set.base.first()).chain(representation.base.first()) {
        let part = part.trim();
        base = if part.contains("://") || part.starts_with('/') { part.to_owned() } else { base + part };
    }
    Ok(Track {
        bits_per_second: representation.bandwidth,
        base,
        initialization: initialization.map(|text| Template::parse(text)),
        media: Template::parse(media),
        timing: timing(&id, template, length)?,
        id,
    })
}

fn timing(id: &str, template: &SegmentTemplate, length: Duration) -> Result<Timing, ManifestError> {
    let timescale = template.timescale.unwrap_or(1).max(1);
    let first_number = template.start_number.unwrap_or(1);
    if let Some(line) = &template.timeline {
        let (mut segments, mut at) = (Vec::new(), 0_u64);
        let end = (length.as_secs_f64() * timescale as f64) as u64;
        for entry in &line.entries {
            at = entry.time.unwrap_or(at);
            if entry.duration == 0 {
                return Err(error(format!("quality {id} has segments without length")));
            }
            // A negative repetition goes on to the end.
            let times = u64::try_from(entry.repeat.unwrap_or(0)).map_or_else(
                |_| end.saturating_sub(at).div_ceil(entry.duration),
                |repeat| repeat.saturating_add(1),
            );
            for _ in 0..times {
                if segments.len() as u64 >= MOST_SEGMENTS {
                    return Err(error(format!("quality {id} has more than {MOST_SEGMENTS} segments")));
                }
                segments.push((at, entry.duration));
                at = at.saturating_add(entry.duration);
            }
        }
        return Ok(Timing::Listed { timescale, first_number, segments });
    }
    let duration = template.duration.filter(|duration| *duration > 0.0);
    let duration =
        duration.ok_or_else(|| error(format!("quality {id} does not say how long its segments are")))?;
    let timing = Timing::Even { timescale, duration: (duration as u64).max(1), first_number, length };
    if timing.count() > MOST_SEGMENTS {
        return Err(error(format!("quality {id} has more than {MOST_SEGMENTS} segments")));
    }
    Ok(timing)
}

fn span(units: u64, timescale: u64) -> Duration {
    Duration::from_nanos((units as f64 / timescale as f64 * 1e9) as u64)
}

impl Timing {
    fn count(&self) -> u64 {
        match self {
            Timing::Even { timescale, duration, length, .. } => {
                let each = span(*duration, *timescale).as_nanos().max(1);
                length.as_nanos().div_ceil(each)
            }
            Timing::Listed { segments, .. } => segments.len() as u64,
        }
    }

    /// How many segments it remembers one by one.
    fn listed(&self) -> usize {
        match self {
            Timing::Even { .. } => 0,
            Timing::Listed { segments, .. } => segments.len(),
        }
    }

    /// Number, time in the manifest's units, and length of a segment.
    fn segment(&self, index: u64) -> Option<(u64, u64, Duration)> {
        match self {
            Timing::Even { timescale, duration, first_number, length } => {
                let each = span(*duration, *timescale);
                let begin = each * index;
                let left = length.saturating_sub(begin);
                (!left.is_zero()).then(|| {
                    (first_number.saturating_add(index), duration.saturating_mul(index), each.min(left))
                })
            }
            Timing::Listed { timescale, first_number, segments } => {
                let (time, duration) = segments.get(usize::try_from(index).ok()?)?;
                Some((first_number.saturating_add(index), *time, span(*duration, *timescale)))
            }
        }
    }
}

impl Track {
    /// How many segments there are.
    pub fn count(&self) -> u64 {
        self.timing.count()
    }

    /// Where what precedes the segments lies, relative to the manifest; `None` when there is no such thing.
    pub fn initialization(&self) -> Option<String> {
        let place = self.initialization.as_ref()?.expand(&self.id, self.bits_per_second, (0, 0));
        Some(format!("{}{place}", self.base))
    }

    /// Where a segment lies, relative to the manifest, and how long it plays. `None` behind the last.
    pub fn segment(&self, index: u64) -> Option<(String, Duration)> {
        let (number, time, length) = self.timing.segment(index)?;
        let place = self.media.expand(&self.id, self.bits_per_second, (number, time));
        Some((format!("{}{place}", self.base), length))
    }
}

/// A span as XML Schema writes it: `P1DT2H3M4.5S`. Months and years have no length and are turned down.
fn seconds(text: &str) -> Option<Duration> {
    let rest = text.trim().strip_prefix('P')?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    let mut total = 0.0;
    for (part, units) in [(days, &[('D', 86_400.0)][..]), (time, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])]
    {
        let mut rest = part;
        for (unit, each) in units {
            if let Some((number, after)) = rest.split_once(*unit) {
                total += number.parse::<f64>().ok().filter(|number| *number >= 0.0)? * each;
                rest = after;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    (0.0..1e9).contains(&total).then(|| Duration::from_nanos((total * 1e9) as u64))
}

#[cfg(test)]
mod tests;
