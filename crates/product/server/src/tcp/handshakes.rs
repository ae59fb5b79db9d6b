//! How connections become secure, and the steps of their handshakes that other threads take.
//!
//! rustls signs while it reads a ClientHello. Where the client gets a certificate whose key takes long, another thread takes that step,
//! and this one serves its other connections meanwhile (docs/decisions/030). So does the next step of a client that is asked for another
//! ClientHello. All other steps, and all of servers with fast keys, are taken where they are.
//!
//! Invariant: at most [`MOST_OUT`] steps for each thread of TCP are out, so that handshakes of HTTP/3, which the same threads sign for, do not
//! wait behind all of TCP's. Others wait in the order in which they came, and their places go with their connections.

use crate::signers::Signers;
use crypto::SharedIdentities;
use rustls::server::{Accepted, AcceptedAlert, ClientHello};
use rustls::{Error, ServerConfig, ServerConnection};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, oneshot};
use worker::MOST_OUT;

/// A connection, and whether TLS accepts what the client has said; or a client that is refused at once.
pub(super) type Outcome = Result<(ServerConnection, Result<(), Error>), (Error, AcceptedAlert)>;

/// A step that another thread takes.
pub(super) struct Step(Pin<Box<dyn Future<Output = Option<Outcome>>>>);

impl Step {
    /// What came of it; `None` if no thread has taken it.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outcome>> {
        self.0.as_mut().poll(cx)
    }
}

/// How connections become secure. Clones have their places in common.
#[derive(Clone)]
pub struct Handshakes {
    config: Arc<ServerConfig>,
    /// The certificates in it.
    identities: SharedIdentities,
    signers: Signers,
    places: Arc<Semaphore>,
}

impl fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshakes").field("identities", &self.identities).finish_non_exhaustive()
    }
}

impl Handshakes {
    /// For so many threads, by `config`, in which `identities` are the certificates.
    pub(crate) fn new(
        config: Arc<ServerConfig>,
        identities: SharedIdentities,
        signers: Signers,
        threads: usize,
    ) -> Handshakes {
        Handshakes { config, identities, signers, places: Arc::new(Semaphore::new(threads * MOST_OUT)) }
    }

    /// What every connection is secured by, unless it is a certificate authority's.
    pub(super) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }

    /// Whether some clients get a certificate whose key takes long.
    pub(super) fn may_take_long(&self) -> bool {
        self.identities.have_slow_keys()
    }

    /// Whether this client does.
    pub(super) fn takes_long(&self, hello: &ClientHello<'_>) -> bool {
        self.identities.sign_slowly_for(hello)
    }

    /// Another thread answers a ClientHello.
    pub(super) fn answer(&self, accepted: Accepted) -> Step {
        let config = Arc::clone(&self.config);
        self.step(move || accepted.into_connection(config).map(|session| (session, Ok(()))))
    }

    /// Another thread has `session` read what the client has sent.
    pub(super) fn read(&self, mut session: ServerConnection, bytes: Vec<u8>) -> Step {
        self.step(move || {
            let outcome = read_all(&mut session, &bytes);
            Ok((session, outcome))
        })
    }

    fn step(&self, work: impl FnOnce() -> Outcome + Send + 'static) -> Step {
        let (places, signers) = (Arc::clone(&self.places), self.signers.clone());
        Step(Box::pin(async move {
            let _place = places.acquire().await.ok()?;
            let (done, outcome) = oneshot::channel();
            signers.run(move || {
                // Not for a connection that is gone.
                if !done.is_closed() {
                    let _ = done.send(work());
                }
            });
            outcome.await.ok()
        }))
    }
}

fn read_all(session: &mut ServerConnection, mut bytes: &[u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        // A slice can be read.
        session.read_tls(&mut bytes).map_err(|error| Error::General(error.to_string()))?;
        session.process_new_packets()?;
    }
    Ok(())
}
