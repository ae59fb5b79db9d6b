//! A probe of a larger packet size, and the window: what may leave, what waits.

use base::time::Instant;

/// Which probe of a larger size may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MtuProbe {
    /// None.
    None,
    /// One of this many bytes.
    Go(u16),
    /// One that the window has no room for yet, and data should leave it some.
    Wait,
}

/// Whether the window keeps the search from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// No.
    No,
    /// In slow start it does: the window is used.
    ByWindow,
}

/// Whether data waits for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeWait {
    No,
    Until(Instant),
    /// It has waited long enough, when the window was so large.
    Over {
        window: u64,
    },
}
