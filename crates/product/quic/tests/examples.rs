//! The examples do what they say. Programs of the kind that are written on quinn: what would break them would break a port.

#[path = "../examples/echo.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod echo;
#[path = "../examples/file_transfer.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod file_transfer;
#[path = "../examples/rpc.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod rpc;
#[path = "../examples/speed.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod speed;

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

#[test]
fn the_measure_of_one_stream_counts_all_bytes_with_each_driver() {
    for driver in [quic::Driver::Thread, quic::Driver::Current] {
        speed::run(20_000_000, driver, 1_472).unwrap();
    }
}
