//! The client against this library's own server and one of others, over all versions of HTTP.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that meets an error has failed")]

mod early;
#[path = "../../examples/client.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod example;
mod exchanges;
mod foreign;
mod limits;
mod plain;
mod pool;
mod refusals;
mod resumed;
mod settings;
mod sinks;
mod versions;
mod world;

/// Deleted, the example could stop working.
#[tokio::test]
async fn the_example_prints_what_it_is_sent() {
    let app = axum::Router::new().route("/", axum::routing::get(async || "hello"));
    let world = world::World::new(app);
    let mut out = Vec::new();
    example::fetch(&world.url("/"), world.roots(), &mut out).await.unwrap();
    assert_eq!(out, b"hello");
}
