//! The examples do what they say. Programs of the kind that are written on quinn: what would break them would break a port.
#![expect(clippy::duplicate_mod, reason = "each example has the module of its own")]

#[path = "../examples/datagrams.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod datagrams;
#[path = "../examples/echo.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod echo;
#[path = "../examples/ported/file_transfer.rs"]
mod file_transfer;
#[path = "../examples/own_loop.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod own_loop;
#[path = "../examples/ported/rpc.rs"]
mod rpc;
#[path = "../examples/setup/mod.rs"]
mod setup;

#[tokio::test]
async fn the_echo_sends_back_what_it_is_sent() {
    assert_eq!(echo::run().await.unwrap(), "quick brown fox");
}

#[tokio::test]
async fn files_arrive_whole_and_others_are_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|place| (place ^ (place >> 9)) as u8).collect();
    std::fs::write(folder.path().join("large"), &large).unwrap();
    std::fs::write(folder.path().join("empty"), b"").unwrap();
    let names = ["large", "empty", "missing", "../large"].map(str::to_owned);
    let contents = file_transfer::transfer(folder.path(), &names).await.unwrap();
    assert!(contents == [Some(large), Some(Vec::new()), None, None]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_the_same_time_are_answered() {
    assert_eq!(rpc::run(1_000).await.unwrap(), 999_000);
}

/// On loopback the last one arrives, though others may give way.
#[tokio::test]
async fn the_newest_datagram_arrives() {
    assert_eq!(datagrams::run(50).await.unwrap(), 50);
}

#[test]
fn a_loop_of_the_programs_own_drives_a_server_and_a_client() {
    assert_eq!(own_loop::run("21 degrees").unwrap(), "21 degrees");
}
