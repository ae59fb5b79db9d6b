//! The example of a program that owns the thread does what it says. Deleted, the example could rot.

#[expect(dead_code, reason = "the example's main is not called from here")]
#[path = "../examples/one_thread.rs"]
mod one_thread;

#[test]
fn a_server_and_a_client_in_one_thread() {
    let report = one_thread::run(20_000_000).unwrap();
    assert_eq!(report.bytes, 20_000_000);
    // It sleeps when it has nothing to do: at the latest while both ends wait for packets that are late.
    assert!(report.waits > 0 && report.turns > report.waits, "{report:?}");
    let report = one_thread::run(0).unwrap();
    assert_eq!(report.bytes, 0);
    assert!(report.turns < 1_000, "it does not spin: {report:?}");
}
