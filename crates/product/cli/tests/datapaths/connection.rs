//! What a server tells of its workers at the end, and what must be true of it.

use serde_json::Value;

/// One worker's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Connections that it accepted.
    pub(crate) connections: u64,
    /// Datagrams that it took from the data path.
    pub(crate) received: u64,
}

/// Fails with `text` unless `condition` holds.
pub(crate) fn expect(condition: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(text()) }
}

/// A number that the summary must have.
pub(crate) fn number(summary: &Value, name: &str) -> Result<u64, String> {
    summary[name].as_u64().ok_or_else(|| format!("the server's summary has no number \"{name}\": {summary}"))
}

/// Each worker's part, in the order of their numbers.
pub(crate) fn parts(summary: &Value) -> Result<Vec<Part>, String> {
    let workers =
        summary["workers"].as_array().ok_or_else(|| format!("no workers in the summary: {summary}"))?;
    let part = |worker: &Value| {
        Ok(Part {
            connections: number(worker, "connections")?,
            received: number(worker, "received_datagrams")?,
        })
    };
    workers.iter().map(part).collect()
}

/// Whether all packet frames are free again at the end, on every worker that has some.
pub(crate) fn no_frame_leaked(summary: &Value) -> Result<(), String> {
    for worker in summary["workers"].as_array().into_iter().flatten() {
        let [before, after] =
            ["free_frames_at_start", "free_frames_at_end"].map(|name| worker[name].as_u64());
        expect(before == after, || {
            format!("frames leaked: {before:?} were free before, {after:?} after: {worker}")
        })?;
    }
    Ok(())
}
