//! Techniques that connections do without, in a build for experiments and in an ordinary one.

#[cfg(feature = "experiments")]
use crate::ends::whole;
#[cfg(feature = "experiments")]
use crate::setup::Setup;
use transport::{Technique, TransportConfig, Without};

const TECHNIQUES: [Technique; 5] = [
    Technique::TrainMasks,
    Technique::MergedAcks,
    Technique::LentData,
    Technique::SharedBuffers,
    Technique::Runs,
];

/// Deleted, an ordinary build could be asked to do without a technique, use it all the same, and show that it is worth nothing.
#[test]
fn only_a_build_for_experiments_takes_a_set_of_techniques_to_do_without() {
    assert_eq!(Without::IS_BUILT, cfg!(feature = "experiments"));
    for technique in TECHNIQUES {
        let without = Without::default().with(technique);
        assert_eq!(without.has(technique), Without::IS_BUILT);
        let built = TransportConfig { without, ..TransportConfig::default() }.build();
        assert_eq!(built.is_ok(), Without::IS_BUILT, "{technique:?}");
    }
}

#[cfg(feature = "experiments")]
#[test]
fn connections_that_do_without_all_techniques_carry_the_same_bytes() {
    const LEN: usize = 300_000;
    let without = TECHNIQUES.into_iter().fold(Without::default(), Without::with);
    let mut world = Setup::both(&TransportConfig { without, ..TransportConfig::default() }).connected();
    let id = world.connection(wire::Side::Client).open(transport::Dir::Uni).expect("a stream");
    world.client.peer().send(id, LEN);
    world.run_until("the content", |world| world.server.peer().received(id).has_ended);
    assert!(world.server.peer().received(id) == &whole(id, LEN));
}
