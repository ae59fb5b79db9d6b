//! The two ends of a connection.

/// An end of a connection: the one that connects, or the one that is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that sent the first Initial packet.
    Client,
    /// The end that answered it.
    Server,
}

impl Side {
    /// The other end.
    #[inline]
    pub const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// Whether this is the client.
    #[inline]
    pub const fn is_client(self) -> bool {
        matches!(self, Side::Client)
    }

    /// Whether this is the server.
    #[inline]
    pub const fn is_server(self) -> bool {
        matches!(self, Side::Server)
    }
}
