//! What is downloaded over one connection, its handshake included.

use crate::requests::Workload;

/// Resources of a page.
const RESOURCES: usize = 30;
/// Their sizes in bytes, over and over: 600 kB in all. Most are small, a few hold most of the bytes.
const SIZES: [u64; 6] = [2_000, 4_000, 8_000, 16_000, 30_000, 60_000];

/// A download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// 30 resources of 600 kB in all, asked for at once.
    Page,
    /// One response of 1 MB.
    Megabyte,
    /// One response of 10 MB.
    Bulk,
    /// One response of 100 MB.
    Large,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 4] = [Work::Page, Work::Megabyte, Work::Bulk, Work::Large];

    /// As tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Page => "page",
            Work::Megabyte => "1 MB",
            Work::Bulk => "10 MB",
            Work::Large => "100 MB",
        }
    }

    /// As requests.
    pub fn requests(self) -> Workload {
        match self {
            Work::Page => Workload::downloads(SIZES.into_iter().cycle().take(RESOURCES)),
            Work::Megabyte => Workload::downloads([1_000_000]),
            Work::Bulk => Workload::downloads([10_000_000]),
            Work::Large => Workload::downloads([100_000_000]),
        }
    }
}
