//! Endpoints take the data path that is chosen, by each driver.

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{client_config, server_config};
use quic::{DataPath, Driver, Endpoint};
use std::time::Duration;

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Deleted, an endpoint could open another path than was chosen, or a worker that polls keep its tokio thread from the other tasks.
#[test]
fn bytes_arrive_by_each_path_from_a_worker_that_polls_and_are_captured() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [("gso", DataPath::gso()), ("mmsg", DataPath::mmsg()), ("plain", DataPath::plain())];
    for (name, path) in paths {
        for driver in [Driver::Thread, Driver::Current] {
            let capture = folder.path().join(format!("{name}-{driver:?}"));
            let path = path.clone().receive_buffer(1 << 20).spin(Duration::MAX);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Endpoint::builder(LOOPBACK.into()).server(server_config());
                let server = server.data_path(path.clone().capture(&capture)).driver(driver).build().unwrap();
                let client =
                    Endpoint::builder(LOOPBACK.into()).data_path(path).driver(driver).build().unwrap();
                let to = server.local_addr().unwrap();
                let accepting = tokio::spawn(async move {
                    let connection = server.accept().await.unwrap().await.unwrap();
                    let received = connection.accept_uni().await.unwrap().read_to_end(1 << 20).await.unwrap();
                    connection.close(0_u8.into(), b"");
                    received
                });
                // A timer of the same thread, beside a worker that never sleeps.
                tokio::time::sleep(Duration::from_millis(2)).await;
                let connection =
                    client.connect_with(client_config(), to, "localhost").unwrap().await.unwrap();
                let mut stream = connection.open_uni().await.unwrap();
                stream.write_all(&[7; 100_000]).await.unwrap();
                stream.finish().unwrap();
                connection.closed().await;
                assert_eq!(accepting.await.unwrap(), [7; 100_000], "{name} {driver:?}");
            });
            let captured = std::fs::metadata(&capture).unwrap().len();
            assert!(captured > 100_000, "{name} {driver:?}: {captured} bytes");
        }
    }
}
