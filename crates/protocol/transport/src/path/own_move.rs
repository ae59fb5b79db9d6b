//! A client's move to another path: what it waits for.
//!
//! ```text
//! Rest ── begin ──> Probing ── the server has answered there ──> Proved ── the path is in use ──> Rest
//!                      └────── it has not, for three PTO ───────────────────────────────────────> Rest
//! ```

use super::path::PathId;

/// Why a client moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveCause {
    /// The application has asked for it, or the server.
    Wish,
    /// The path in use has fallen silent: the move is off when it is heard of again.
    Silence,
}

/// A client's move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OwnMove {
    /// None is under way.
    #[default]
    Rest,
    /// The path is probed.
    Probing(PathId, MoveCause),
    /// The server has answered there.
    Proved(PathId, MoveCause),
}

impl OwnMove {
    /// The path that it goes to.
    pub(super) fn target(self) -> Option<PathId> {
        match self {
            OwnMove::Rest => None,
            OwnMove::Probing(id, _) | OwnMove::Proved(id, _) => Some(id),
        }
    }

    /// A challenge was answered with proof that a path is good.
    pub(super) fn on_path_proved(&mut self, id: PathId) {
        if let OwnMove::Probing(probed, cause) = *self
            && probed == id
        {
            *self = OwnMove::Proved(id, cause);
        }
    }
}
