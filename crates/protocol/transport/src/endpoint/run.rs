//! Splits a train where its datagrams stop having the same destination. Kernels gather datagrams by addresses and ports, and
//! all connections of a client process may share those.

use super::routes::Destination;
use base::net::Train;

/// The datagrams at the front that go to the same connection ID, and the rest. Most trains are one such run.
pub fn split_run(train: Train<'_>) -> (Train<'_>, Option<Train<'_>>) {
    let Train { bytes, segment_size, addresses, ecn } = train;
    let size = segment_size.max(1);
    let mut datagrams = bytes.chunks(size);
    let first = datagrams.next().and_then(Destination::of);
    let same = 1 + datagrams.take_while(|datagram| Destination::of(datagram) == first).count();
    let end = same.saturating_mul(size).min(bytes.len());
    let (run, rest) = bytes.split_at_mut_checked(end).unwrap_or_default();
    let rest = (!rest.is_empty()).then_some(Train { bytes: rest, segment_size, addresses, ecn });
    (Train { bytes: run, segment_size, addresses, ecn }, rest)
}
