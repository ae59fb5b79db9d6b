//! Memory that was freed returns to the operating system. A program of its own, so that no other test has memory meanwhile.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]
#![cfg(target_env = "gnu")]

/// Bytes of memory that this process has and no file stands behind.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Blocks that lie below one that stays are kept by the allocator.
#[test]
fn freed_memory_is_returned() {
    let mut blocks: Vec<Vec<u8>> = (0..20_000).map(|_| vec![1; 2_000]).collect();
    let last = blocks.pop();
    drop(blocks);
    let before = resident();
    udp::return_freed_memory();
    let after = resident();
    assert!(after + (20 << 20) < before, "{before} bytes before, {after} after");
    drop(last);
}
