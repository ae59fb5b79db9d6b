//! What the error of one connection costs others: nothing.

use super::client::Pace;
use super::{LARGE, connected, folder, options, server, world};
use base::time::Duration;
use bytes::Bytes;
use sim::StopReason;
use transport::Dir;

/// Deleted, a peer whose connection ends by an error could take with it what the worker or the endpoint share: GHSA-rfhg-rjfp-9q8q.
#[test]
fn an_error_ends_one_connection_and_not_its_neighbour() {
    let folder = folder();
    let mut world = world(server(options(folder.path())), 20_000);
    let (neighbour, faulty) = (connected(&mut world, Pace::All), connected(&mut world, Pace::All));
    let download = neighbour.get(&mut world, "/large");
    let broken = faulty.get(&mut world, "/large");
    // The client's second control stream, which RFC 9114 §6.2.1 forbids.
    let (transport, _) = world.client().connection(faulty.handle).unwrap();
    let control = transport.open(Dir::Uni).unwrap();
    transport.write(control, Bytes::from_static(&[0])).unwrap();
    assert_eq!(world.run(Duration::from_secs(5), |_| faulty.is_cut()), StopReason::Done);
    assert!(!neighbour.has_ended(download), "the error comes in the middle of the download");
    assert!(!faulty.has_ended(broken));
    assert_eq!(world.run(Duration::from_secs(30), |_| neighbour.has_ended(download)), StopReason::Done);
    assert!(neighbour.response(download) == (200, vec![7; LARGE]));
    let next = neighbour.get(&mut world, "/small");
    assert_eq!(world.run(Duration::from_secs(5), |_| neighbour.has_ended(next)), StopReason::Done);
    assert_eq!(neighbour.response(next), (200, b"abc".to_vec()));
    let newcomer = connected(&mut world, Pace::All);
    assert!(newcomer.is_up() && !neighbour.is_cut());
}
