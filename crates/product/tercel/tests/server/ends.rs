//! How a server ends: what the documentation of [`tercel::Handle`], [`tercel::Running`] and the guide says.

use crate::world::{PATIENCE, VERSIONS, World, text};
use axum::Router;
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;
use tercel::client::HttpChoice;
use tercel::{Client, Server};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server whose handlers at `/slow` say that they have begun, and wait.
struct Slow {
    world: World,
    begun: mpsc::UnboundedReceiver<()>,
    gate: Arc<Semaphore>,
    /// Held by each handler that runs.
    alive: Arc<()>,
}

impl Slow {
    fn new(drain: Option<Duration>) -> Slow {
        let (began, begun) = mpsc::unbounded_channel();
        let (gate, alive) = (Arc::new(Semaphore::new(0)), Arc::new(()));
        let (ours, weak) = (Arc::clone(&gate), Arc::downgrade(&alive));
        let slow = async move || {
            let _alive = weak.upgrade();
            let _ = began.send(());
            let _permit = ours.acquire().await;
            "slow"
        };
        let app = Router::new().route("/slow", get(slow)).route("/", get(async || "hello"));
        let world = World::by(|builder| builder.drain(drain).serve(app).unwrap());
        Slow { world, begun, gate, alive }
    }

    /// Asks over all versions. Returns when all handlers run.
    async fn ask_all(&mut self) -> Vec<JoinHandle<Result<String, tercel::client::Error>>> {
        let mut asked = Vec::new();
        for choice in VERSIONS {
            let (client, url) = (self.world.client(choice), self.world.url("/slow"));
            asked.push(tokio::spawn(async move { Ok(text(client.get(url).await?).await) }));
            timeout(PATIENCE, self.begun.recv()).await.unwrap().unwrap();
        }
        asked
    }

    fn running(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }
}

async fn all_fail(asked: Vec<JoinHandle<Result<String, tercel::client::Error>>>) {
    for request in asked {
        assert!(timeout(PATIENCE, request).await.unwrap().unwrap().is_err());
    }
}

/// Deleted, connections of HTTP/1.1 and 2 could live on while a drain has no limit.
#[tokio::test]
async fn abort_closes_connections_of_all_versions_at_once_and_drops_their_handlers() {
    let mut slow = Slow::new(None);
    let asked = slow.ask_all().await;
    let idle: Vec<Client> = VERSIONS.map(|choice| slow.world.client(choice)).into();
    for client in &idle {
        assert_eq!(text(client.get(slow.world.url("/")).await.unwrap()).await, "hello");
    }
    assert_eq!(slow.running(), 3);
    slow.world.server.handle().abort();
    all_fail(asked).await;
    let Slow { world, alive, .. } = slow;
    let summary = timeout(PATIENCE, world.server).await.unwrap().unwrap();
    assert_eq!(Arc::strong_count(&alive), 1);
    let counters = summary.counters();
    assert_eq!(counters.http1.connections + counters.http2.connections + counters.http3.connections, 6);
}

/// Deleted, a server whose handle is gone could go on.
#[tokio::test]
async fn a_server_that_is_dropped_ends_as_by_abort_and_frees_its_port() {
    let mut slow = Slow::new(None);
    let asked = slow.ask_all().await;
    let address = slow.world.server.local_addr();
    let Slow { world, alive, .. } = slow;
    let handle = world.server.handle();
    drop(world);
    all_fail(asked).await;
    let is_free = async {
        while Server::builder().listen(address).bind().is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, is_free).await.unwrap();
    assert_eq!(Arc::strong_count(&alive), 1);
    // A handle is of no more effect, and still reads.
    handle.stop();
    handle.abort();
    assert_eq!(handle.counters().http3.connections, 1);
}

/// Deleted, a server could drop what was asked before the order to stop.
#[tokio::test]
async fn stop_answers_what_was_asked_and_a_handle_that_is_dropped_does_nothing() {
    let mut slow = Slow::new(None);
    drop(slow.world.server.handle());
    let asked = slow.ask_all().await;
    slow.world.server.handle().stop();
    let fresh = slow.world.client(HttpChoice::Http1);
    let refused = async { while fresh.get(slow.world.url("/")).await.is_ok() {} };
    timeout(PATIENCE, refused).await.unwrap();
    assert_eq!(slow.running(), 3);
    slow.gate.add_permits(3);
    for request in asked {
        assert_eq!(timeout(PATIENCE, request).await.unwrap().unwrap().unwrap(), "slow");
    }
    timeout(PATIENCE, slow.world.server).await.unwrap().unwrap();
}

/// Deleted, the limit of a drain could be none, or abort have no effect after stop.
#[tokio::test]
async fn a_drain_ends_at_its_limit_and_by_abort() {
    let mut limited = Slow::new(Some(Duration::from_millis(50)));
    let asked = limited.ask_all().await;
    limited.world.server.handle().stop();
    all_fail(asked).await;
    timeout(PATIENCE, limited.world.server).await.unwrap().unwrap();
    let mut unlimited = Slow::new(None);
    let asked = unlimited.ask_all().await;
    unlimited.world.server.handle().stop();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(unlimited.running(), 3);
    unlimited.world.server.handle().abort();
    all_fail(asked).await;
    timeout(PATIENCE, unlimited.world.server).await.unwrap().unwrap();
}
