//! Responses by version of HTTP, class of status and site.

use super::histogram::Histogram;
use crate::access_log::Protocol;
use base::time::Duration;

/// Responses by the class of their status: 1xx to 5xx. The first stays 0, as only final responses are counted.
pub type Classes = [u64; 5];

/// Responses over one version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionTally {
    /// By the class of their status.
    pub classes: Classes,
    /// From the arrival of a request's head until all of its response was handed over, or was given up.
    pub durations: Histogram,
}

/// Responses of a thread, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestTally {
    /// Over HTTP/1.1, 2 and 3.
    versions: [VersionTally; 3],
    /// By the number of their site (sites/slots.rs), which is bounded there.
    sites: Vec<Classes>,
}

impl RequestTally {
    /// A response is over, whole or not.
    #[inline]
    pub(crate) fn on_answered(&mut self, protocol: Protocol, status: u16, site: usize, duration: Duration) {
        let class = usize::from((status / 100).clamp(1, 5)) - 1;
        if let Some(version) = self.versions.get_mut(protocol as usize) {
            version.classes.get_mut(class).into_iter().for_each(|count| *count += 1);
            version.durations.observe(duration);
        }
        if site >= self.sites.len() {
            self.sites.resize(site + 1, Classes::default());
        }
        let count = self.sites.get_mut(site).and_then(|classes| classes.get_mut(class));
        count.into_iter().for_each(|count| *count += 1);
    }

    pub(crate) fn add(&mut self, other: &RequestTally) {
        for (version, more) in self.versions.iter_mut().zip(&other.versions) {
            add(&mut version.classes, &more.classes);
            version.durations.add(&more.durations);
        }
        if self.sites.len() < other.sites.len() {
            self.sites.resize(other.sites.len(), Classes::default());
        }
        self.sites.iter_mut().zip(&other.sites).for_each(|(classes, more)| add(classes, more));
    }

    /// Makes it the same as `other`, in memory that it has.
    pub(crate) fn copy(&mut self, other: &RequestTally) {
        self.versions = other.versions;
        self.sites.clone_from(&other.sites);
    }

    /// Responses over HTTP/1.1, 2 and 3.
    pub fn versions(&self) -> &[VersionTally; 3] {
        &self.versions
    }

    /// Responses by site: those of none first, then by the numbers of [`crate::sites::LiveSites::counted`].
    pub fn sites(&self) -> &[Classes] {
        &self.sites
    }
}

fn add(classes: &mut Classes, more: &Classes) {
    classes.iter_mut().zip(more).for_each(|(count, more)| *count += more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_counted_for_its_version_its_class_and_its_site() {
        let mut tally = RequestTally::default();
        for (protocol, status, site) in [
            (Protocol::Http1, 200, 0),
            (Protocol::Http3, 404, 2),
            (Protocol::Http3, 599, 2),
            // No handler answers so; it must be counted all the same.
            (Protocol::Http2, 999, 1),
            (Protocol::Http2, 0, 1),
        ] {
            tally.on_answered(protocol, status, site, Duration::from_millis(1));
        }
        let mut sum = RequestTally::default();
        sum.add(&tally);
        sum.add(&tally);
        let classes = |of: &RequestTally| of.versions().map(|version| version.classes);
        assert_eq!(classes(&tally), [[0, 1, 0, 0, 0], [1, 0, 0, 0, 1], [0, 0, 0, 1, 1]]);
        assert_eq!(classes(&sum), [[0, 2, 0, 0, 0], [2, 0, 0, 0, 2], [0, 0, 0, 2, 2]]);
        assert_eq!(sum.sites(), [[0, 2, 0, 0, 0], [2, 0, 0, 0, 2], [0, 0, 0, 2, 2]]);
        let mut copy = RequestTally::default();
        copy.copy(&sum);
        assert_eq!(copy, sum);
    }
}
