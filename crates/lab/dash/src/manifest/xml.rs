//! The elements and attributes of a manifest that are looked at, as they are named there.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Mpd {
    #[serde(rename = "@type")]
    pub(super) kind: Option<String>,
    #[serde(rename = "@mediaPresentationDuration")]
    pub(super) duration: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub(super) base: Vec<String>,
    #[serde(rename = "Period", default)]
    pub(super) periods: Vec<Period>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Period {
    #[serde(rename = "@duration")]
    pub(super) duration: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub(super) base: Vec<String>,
    #[serde(rename = "SegmentTemplate")]
    pub(super) template: Option<SegmentTemplate>,
    #[serde(rename = "AdaptationSet", default)]
    pub(super) sets: Vec<AdaptationSet>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AdaptationSet {
    #[serde(rename = "@contentType")]
    content_type: Option<String>,
    #[serde(rename = "@mimeType")]
    mime_type: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub(super) base: Vec<String>,
    #[serde(rename = "SegmentTemplate")]
    pub(super) template: Option<SegmentTemplate>,
    #[serde(rename = "Representation", default)]
    pub(super) representations: Vec<Representation>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Representation {
    #[serde(rename = "@id", default)]
    pub(super) id: String,
    #[serde(rename = "@bandwidth")]
    pub(super) bandwidth: u64,
    #[serde(rename = "@mimeType")]
    mime_type: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub(super) base: Vec<String>,
    #[serde(rename = "SegmentTemplate")]
    pub(super) template: Option<SegmentTemplate>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SegmentTemplate {
    #[serde(rename = "@timescale")]
    pub(super) timescale: Option<u64>,
    #[serde(rename = "@duration")]
    pub(super) duration: Option<f64>,
    #[serde(rename = "@startNumber")]
    pub(super) start_number: Option<u64>,
    #[serde(rename = "@initialization")]
    pub(super) initialization: Option<String>,
    #[serde(rename = "@media")]
    pub(super) media: Option<String>,
    #[serde(rename = "SegmentTimeline")]
    pub(super) timeline: Option<SegmentTimeline>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SegmentTimeline {
    #[serde(rename = "S", default)]
    pub(super) entries: Vec<SegmentRun>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SegmentRun {
    #[serde(rename = "@t")]
    pub(super) time: Option<u64>,
    #[serde(rename = "@d")]
    pub(super) duration: u64,
    #[serde(rename = "@r")]
    pub(super) repeat: Option<i64>,
}

impl AdaptationSet {
    /// `video`, `audio`, or something that is not played.
    pub(super) fn content<'a>(&'a self, representation: &'a Representation) -> &'a str {
        let mime = representation.mime_type.as_deref().or(self.mime_type.as_deref()).unwrap_or_default();
        self.content_type.as_deref().unwrap_or_else(|| mime.split('/').next().unwrap_or_default())
    }
}
