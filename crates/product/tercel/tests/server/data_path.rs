//! The data path of a server of services.

use crate::world::{PATIENCE, VERSIONS, World, text};
use axum::Router;
use axum::routing::get;
use std::time::Duration;
use tercel::{Client, DataPath, Workers};
use tokio::time::{sleep, timeout};

/// One type says it to servers, clients and endpoints.
fn path() -> DataPath {
    DataPath::mmsg().spin(Duration::MAX)
}

/// Deleted, a worker that polls could keep handlers, their timers and HTTP/1.1 and 2 from its thread, or not poll; and a capture could
/// be lost, or be one file of two workers.
#[tokio::test]
async fn workers_that_poll_share_their_threads_and_write_a_capture_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served");
    let app = Router::new().route(
        "/",
        get(async || {
            sleep(Duration::from_millis(20)).await;
            "hello"
        }),
    );
    let two = Workers::Exactly(2.try_into().unwrap());
    let world = World::by(|builder| {
        let builder = builder.workers(two).data_path(path().capture(&file));
        builder.serve(app).unwrap()
    });
    for choice in VERSIONS {
        let client: Client = world.builder(choice).data_path(path()).build().unwrap();
        let asked = async { text(client.get(world.url("/")).await.unwrap()).await };
        assert_eq!(timeout(PATIENCE, asked).await.unwrap(), "hello", "{choice:?}");
    }
    let endpoint = tercel::quic::Endpoint::builder(([127, 0, 0, 1], 0).into()).data_path(path()).build();
    assert!(endpoint.is_ok());
    world.server.handle().stop();
    let summary = timeout(PATIENCE, world.server).await.unwrap().unwrap();
    for worker in summary.workers() {
        let polls = worker.counters.rx.calls;
        assert!(polls > 500, "worker {} looked for datagrams {polls} times only", worker.number);
    }
    let sizes = ["served", "served.1"].map(|name| std::fs::metadata(folder.path().join(name)).unwrap().len());
    assert!(sizes.iter().all(|size| *size >= 24) && sizes.iter().sum::<u64>() > 2_400, "{sizes:?}");
}
