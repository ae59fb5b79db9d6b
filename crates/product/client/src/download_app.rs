//! The client's connections, as a worker's application: requests leave, answers come back, and what concerns more than
//! one connection is told as [`ConnectionNews`].

use crate::download::DownloadState;
use crate::error::GetError;
use crate::exchange::Exchange;
use crate::fault::{self, ConnectionEnd};
use crate::messages::{Messages, Stream};
use crate::report::PathReport;
use crate::request;
use crate::transfer::Transfer;
use base::slab::Handle;
use base::time::Instant;
use http::HeaderMap;
use http3::{BodyLength, Code, ConnectionError, RequestError, Session};
use std::sync::Arc;
use transport::{CloseReason, Connection, Fin, StreamId, StreamSink};
use wire::Side;
use worker::{App, Next};

/// What concerns more than one connection.
#[derive(Debug)]
pub(crate) enum ConnectionNews {
    /// The handshake of this connection is complete.
    Connected(Handle),
    /// This connection takes no more requests.
    Leaving(Handle),
    /// This connection is over.
    Closed(Handle, CloseReason, Option<ConnectionError>),
    /// A download needs another connection.
    NeedsConnection(Box<Transfer>),
    /// A download is over, and this is what its connection was like.
    Over(Box<Transfer>, PathReport),
}

/// What a connection keeps.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) session: Session<Messages>,
    host: String,
    /// What the worker calls it; `None` only before its first turn.
    handle: Option<Handle>,
    /// How many of the fleet's requests are on it.
    counted: usize,
    told_connected: bool,
    told_leaving: bool,
    told_closed: bool,
}

impl ClientConnection {
    /// A connection to `host` that has done nothing yet.
    pub(crate) fn new(host: &str, config: Arc<http3::Config>, now: Instant) -> ClientConnection {
        let connection = http3::Connection::new(Side::Client, config, now);
        ClientConnection {
            session: Session { connection, messages: Messages::default() },
            host: host.into(),
            handle: None,
            counted: 0,
            told_connected: false,
            told_leaving: false,
            told_closed: false,
        }
    }

    /// The worker calls it this.
    pub(crate) fn name(&mut self, handle: Handle) {
        self.handle = Some(handle);
    }

    /// Takes over a download.
    pub(crate) fn adopt(&mut self, mut transfer: Transfer, now: Instant) {
        transfer.download.on_moved();
        transfer.on_connected(now);
        self.session.messages.transfers.insert(transfer);
        self.session.messages.needs_attention = true;
    }
}

impl StreamSink for ClientConnection {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

/// All connections together.
#[derive(Debug)]
pub(crate) struct DownloadApp {
    /// Requests at a time, on all connections.
    parallel: usize,
    in_use: usize,
    headers: HeaderMap,
    connect_s: u64,
    silence_s: u64,
    news: Vec<ConnectionNews>,
}

impl DownloadApp {
    pub(crate) fn new(parallel: usize, headers: HeaderMap, connect_s: u64, silence_s: u64) -> DownloadApp {
        DownloadApp { parallel, in_use: 0, headers, connect_s, silence_s, news: Vec::new() }
    }

    /// What happened since the last call.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Vec<ConnectionNews> {
        core::mem::take(&mut self.news)
    }

    /// The error that a connection to `host` ended with.
    pub(crate) fn error(
        &self,
        host: &str,
        reason: &CloseReason,
        failure: Option<ConnectionError>,
    ) -> GetError {
        ConnectionEnd { host, connect_s: self.connect_s, silence_s: self.silence_s, failure }.error(reason)
    }

    /// Looks at everything that happened on a connection other than content.
    #[cold]
    fn settle(&mut self, now: Instant, connection: &mut Connection, connection_state: &mut ClientConnection) {
        connection_state.session.messages.needs_attention = false;
        let Some(handle) = connection_state.handle else { return };
        let messages = &mut connection_state.session.messages;
        messages.transfers.iter_mut().for_each(|(_, transfer)| transfer.on_turn(now));
        if messages.is_connected && !core::mem::replace(&mut connection_state.told_connected, true) {
            self.news.push(ConnectionNews::Connected(handle));
        }
        if messages.is_going_away && !core::mem::replace(&mut connection_state.told_leaving, true) {
            self.news.push(ConnectionNews::Leaving(handle));
        }
        if let Some(reason) = messages.closed.clone()
            && !core::mem::replace(&mut connection_state.told_closed, true)
        {
            self.on_closed(connection_state, &reason);
            self.news.push(ConnectionNews::Closed(
                handle,
                reason,
                connection_state.session.connection.failure(),
            ));
        }
        give_up_streams(connection, connection_state);
        self.part_with_transfers(connection, connection_state);
        self.count(connection_state);
    }

    /// The downloads of a connection that is over fail with it, or try again where that may help.
    fn on_closed(&self, connection_state: &mut ClientConnection, reason: &CloseReason) {
        let failure = connection_state.session.connection.failure();
        let messages = &mut connection_state.session.messages;
        for Stream { transfer, mut exchange, .. } in messages.streams.drain(..) {
            let Some(Transfer { download, .. }) = messages.transfers.entry_mut(transfer) else { continue };
            download.on_cut(&mut exchange);
            if let Some((expected, received)) = exchange.owed()
                && failure.as_ref().is_some_and(fault::is_cut_short)
            {
                download.fail(GetError::Short(expected, received));
            }
        }
        // A server that closes in good order may have crossed our request with it. RFC 9114 §5.2.
        let in_order =
            matches!(reason, CloseReason::PeerApplication { code, .. } if *code == Code::NO_ERROR.0);
        for (_, Transfer { download, .. }) in messages.transfers.iter_mut() {
            if download.standing() == DownloadState::Running && !(in_order && download.retry()) {
                download.fail(self.error(&connection_state.host, reason, failure));
            }
        }
    }

    /// Downloads that are over, or go on elsewhere, leave the connection.
    fn part_with_transfers(&mut self, connection: &Connection, connection_state: &mut ClientConnection) {
        let messages = &mut connection_state.session.messages;
        let is_over = messages.closed.is_some();
        let leaving = messages.is_going_away || is_over;
        let handles: Vec<Handle> = messages.transfers.handles().collect();
        for handle in handles {
            let Some(transfer) = messages.transfers.entry_mut(handle) else { continue };
            let idle = messages.streams.iter().all(|stream| stream.transfer != handle);
            let stays = match transfer.download.standing() {
                DownloadState::Running => !(leaving && idle),
                DownloadState::Elsewhere | DownloadState::Complete | DownloadState::Failed => false,
            };
            if stays {
                continue;
            }
            let Some(transfer) = messages.transfers.remove(handle) else { continue };
            self.news.push(match transfer.download.standing() {
                DownloadState::Complete | DownloadState::Failed => {
                    ConnectionNews::Over(Box::new(transfer), PathReport::of(connection))
                }
                DownloadState::Running | DownloadState::Elsewhere => {
                    ConnectionNews::NeedsConnection(Box::new(transfer))
                }
            });
        }
    }

    /// Sends requests as long as there are some to send and not too many under way.
    fn ask(&mut self, connection: &mut Connection, connection_state: &mut ClientConnection) {
        let Session { connection: http, messages } = &mut connection_state.session;
        while self.in_use < self.parallel && messages.closed.is_none() && !messages.is_going_away {
            let Some(handle) = messages.request_app() else { break };
            let Some(Transfer { download, .. }) = messages.transfers.entry_mut(handle) else { break };
            let Some(ask) = download.next_ask() else { break };
            let exchange = Exchange::new(&ask);
            let sent = request::head(download.target(), &ask, &self.headers)
                .map(|head| http.request(connection, &head, BodyLength::Empty));
            match sent {
                Ok(Ok(id)) => {
                    messages.streams.push(Stream { id, transfer: handle, exchange });
                    self.in_use += 1;
                    connection_state.counted += 1;
                }
                Ok(Err(RequestError::HeadTooLarge)) => {
                    download
                        .fail(GetError::Usage("the server takes no request with so much in its head".into()));
                    messages.needs_attention = true;
                }
                // An event tells when there is room again, or that the connection is over.
                Ok(Err(RequestError::NoStream | RequestError::GoingAway | RequestError::Closed)) => {
                    download.take_back(&exchange);
                    break;
                }
                Err(error) => {
                    download.fail(error);
                    messages.needs_attention = true;
                }
            }
        }
    }

    /// Brings the number of requests under way up to date.
    fn count(&mut self, connection_state: &mut ClientConnection) {
        let streams = connection_state.session.messages.streams.len();
        self.in_use = self.in_use.saturating_sub(connection_state.counted) + streams;
        connection_state.counted = streams;
    }
}

/// Cancels the streams whose content is no longer needed.
fn give_up_streams(connection: &mut Connection, connection_state: &mut ClientConnection) {
    let Session { connection: http, messages } = &mut connection_state.session;
    let Messages { streams, transfers, .. } = messages;
    streams.retain_mut(|stream| {
        let Some(Transfer { download, .. }) = transfers.entry_mut(stream.transfer) else { return false };
        let wanted = download.is_current(&stream.exchange) && download.standing() == DownloadState::Running;
        if !wanted {
            download.on_cut(&mut stream.exchange);
            http.cancel(connection, stream.id, Code::REQUEST_CANCELLED);
        }
        wanted
    });
}

impl App for DownloadApp {
    type State = ClientConnection;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> ClientConnection {
        // Never called: the endpoint ignores incoming connections.
        ClientConnection::new("", Arc::new(http3::Config::client()), now)
    }

    fn on_turn(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        connection_state: &mut ClientConnection,
    ) -> Next {
        connection_state.session.on_turn(connection, now);
        let failed = connection_state.session.connection.failure().is_some()
            && connection_state.session.messages.closed.is_none();
        if connection_state.session.messages.needs_attention {
            self.settle(now, connection, connection_state);
        }
        if self.in_use < self.parallel {
            self.ask(connection, connection_state);
        }
        if failed || connection_state.session.messages.needs_attention { Next::Again } else { Next::Wait }
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: ClientConnection) {}
}
