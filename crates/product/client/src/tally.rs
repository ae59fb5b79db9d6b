//! Bytes that are kept nowhere: counted, and perhaps compared with what they should be.
//!
//! It stands where an incomplete file stands otherwise (see [`crate::part`]), with the same verbs, so that a measurement
//! asks for the same requests as a download does: parallel streams, parts, changes on the way.

use crate::answer::Version;
use crate::error::GetError;
use crate::part::Run;
use base::pattern;
use base::ranges::RangeSet;
use core::ops::Range;

/// What is done with bytes that are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing.
    Nothing,
    /// They must be those of a generated body, [`base::pattern`], from this offset on.
    Pattern(u64),
}

/// What was received.
#[derive(Debug)]
pub struct ReceivedBytes {
    received: RangeSet,
    version: Version,
    check: Check,
}

impl ReceivedBytes {
    /// Nothing yet.
    pub fn new(check: Check) -> ReceivedBytes {
        ReceivedBytes { received: RangeSet::new(), version: Version::default(), check }
    }

    pub(crate) fn validator(&self) -> Option<&str> {
        self.version.validator().filter(|_| !self.received.is_empty())
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.version.size
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.iter().map(|range| range.end - range.start).sum()
    }

    pub(crate) fn missing(&self) -> Vec<Range<u64>> {
        let mut missing = RangeSet::new();
        missing.insert(0..self.version.size.unwrap_or(u64::MAX));
        for range in self.received.iter() {
            missing.remove(range);
        }
        missing.iter().collect()
    }

    pub(crate) fn restart(&mut self, version: Version) {
        self.received.clear();
        self.version = version;
    }

    pub(crate) fn on_version(&mut self, version: &Version) -> Result<(), GetError> {
        if !self.version.agrees_with(version) {
            return Err(GetError::Changed);
        }
        if self.version == Version::default() {
            self.version = version.clone();
        }
        self.version.size = self.version.size.or(version.size);
        Ok(())
    }

    #[inline]
    pub(crate) fn append(&mut self, run: &mut Run, bytes: &[u8]) -> Result<(), GetError> {
        let offset = run.offset();
        if let Check::Pattern(from) = self.check
            && let Some(place) = pattern::first_difference(from.saturating_add(offset), bytes)
        {
            return Err(GetError::Corrupt(place));
        }
        let end = offset.saturating_add(bytes.len() as u64);
        self.received.insert(offset..end);
        *run = Run::new(end);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), GetError> {
        match self.version.size {
            Some(size) if !self.missing().is_empty() => Err(GetError::Short(size, self.received())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_found_in_parts_that_come_in_any_order() {
        let mut tally = ReceivedBytes::new(Check::Pattern(0));
        tally.on_version(&Version { size: Some(3_000), ..Version::default() }).unwrap();
        tally.append(&mut Run::new(2_000), &pattern::at(2_000)[..1_000]).unwrap();
        assert_eq!(tally.missing().len(), 1);
        let mut wrong = pattern::at(0)[..2_000].to_vec();
        wrong[7] ^= 1;
        assert!(matches!(tally.append(&mut Run::new(0), &wrong), Err(GetError::Corrupt(7))));
        tally.append(&mut Run::new(0), &pattern::at(0)[..2_000]).unwrap();
        assert!(tally.missing().is_empty() && tally.received() == 3_000);
        tally.finish().unwrap();
        let short = ReceivedBytes::new(Check::Nothing);
        assert!(short.finish().is_ok(), "the length is not known");
    }
}
