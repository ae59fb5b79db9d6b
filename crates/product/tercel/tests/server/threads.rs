//! Handlers, their tasks, timers and sockets run on the thread of their connection.

use crate::world::{PATIENCE, VERSIONS, World, text};
use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use http::StatusCode;
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use tercel::client::HttpChoice;
use tercel::{Workers, service_fn};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::timeout;

fn here() -> ThreadId {
    std::thread::current().id()
}

/// The name of the thread, if all of `seen` ran on it.
fn name_of(seen: &[ThreadId]) -> String {
    let is_one = seen.iter().all(|&id| id == here());
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    if is_one { name } else { format!("{name}, and others: {seen:?}") }
}

/// Waits in turn for a timer, tasks, and a socket that a thread of the program's answers.
async fn wait_for_tokio(port: u16) -> Vec<ThreadId> {
    let mut seen = vec![here()];
    tokio::time::sleep(Duration::from_millis(2)).await;
    seen.push(here());
    let local = std::rc::Rc::new(here());
    seen.push(spawn_local(async move { *local }).await.unwrap());
    let spawned = tokio::spawn(async {
        tokio::task::yield_now().await;
        here()
    });
    seen.push(spawned.await.unwrap());
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    socket.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
    seen.push(here());
    seen
}

/// Answers what it reads on its connections, on a thread of its own.
fn echo() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, mut bytes) = (socket.unwrap(), [0; 4]);
            socket.read_exact(&mut bytes).unwrap();
            socket.write_all(&bytes).unwrap();
        }
    });
    port
}

/// Deleted, a wake of a handler could cross threads, or a handler find no runtime.
#[tokio::test]
async fn all_that_a_handler_waits_for_runs_on_the_one_thread_of_all_versions() {
    let port = echo();
    let app = Router::new().route("/", get(async move || name_of(&wait_for_tokio(port).await)));
    let world = World::new(app);
    for choice in VERSIONS {
        let client = world.client(choice);
        let asked = async { text(client.get(world.url("/")).await.unwrap()).await };
        assert_eq!(timeout(PATIENCE, asked).await.unwrap(), "worker-0", "{choice:?}");
    }
}

/// Deleted, the handlers of a thread could run on another one's, or its tasks.
#[tokio::test]
async fn each_of_many_workers_keeps_its_handlers_and_their_tasks() {
    let port = echo();
    let app = Router::new().route("/", get(async move || name_of(&wait_for_tokio(port).await)));
    let workers = Workers::Exactly(3.try_into().unwrap());
    let world = World::by(|builder| builder.workers(workers).serve(app).unwrap());
    for _ in 0..8 {
        for choice in VERSIONS {
            let client = world.client(choice);
            let asked = async { text(client.get(world.url("/")).await.unwrap()).await };
            let name = timeout(PATIENCE, asked).await.unwrap();
            assert!(["worker-0", "worker-1", "worker-2"].contains(&name.as_str()), "{name}");
        }
    }
}

/// Deleted, a connection could sleep although another one has brought what its request waits for.
#[tokio::test]
async fn a_request_wakes_that_of_another_connection() {
    type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<ThreadId>>>>;
    let waiting = Waiting::default();
    let told = Arc::clone(&waiting);
    let wait = async move |Path(key): Path<String>| {
        let (sender, receiver) = oneshot::channel();
        waiting.lock().unwrap().insert(key, sender);
        name_of(&[receiver.await.unwrap()])
    };
    // 404 until the other request is there.
    let tell = async move |Path(key): Path<String>| {
        let sender = told.lock().unwrap().remove(&key);
        sender.map_or(StatusCode::NOT_FOUND, |sender| {
            sender.send(here()).map_or(StatusCode::GONE, |()| StatusCode::OK)
        })
    };
    let world = World::new(Router::new().route("/wait/{key}", get(wait)).route("/tell/{key}", get(tell)));
    for (round, waits) in VERSIONS.into_iter().enumerate() {
        for (place, tells) in VERSIONS.into_iter().enumerate() {
            let (waits, tells) = (world.client(waits), world.client(tells));
            let key = format!("{round}{place}");
            let (wait, tell) = (world.url(&format!("/wait/{key}")), world.url(&format!("/tell/{key}")));
            let waiter = tokio::spawn(async move { text(waits.get(wait).await.unwrap()).await });
            let told = async { while tells.get(tell.as_str()).await.unwrap().status() != StatusCode::OK {} };
            timeout(PATIENCE, told).await.unwrap();
            assert_eq!(timeout(PATIENCE, waiter).await.unwrap().unwrap(), "worker-0", "{key}");
        }
    }
}

/// Deleted, the end of a server could wait for tasks that never end, or leave them.
#[tokio::test]
async fn a_server_that_ends_drops_the_tasks_of_its_handlers_and_waits_for_no_work_that_blocks() {
    let alive = Arc::new(());
    let ours = Arc::downgrade(&alive);
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let app = Router::new().route(
        "/",
        get(async move || {
            let (alive, held) = (Arc::clone(&alive), Arc::clone(&held));
            tokio::task::spawn_blocking(move || held.lock().unwrap().recv());
            tokio::spawn(async move {
                let _alive = alive;
                std::future::pending::<()>().await
            });
            "begun"
        }),
    );
    let world = World::new(app);
    for choice in VERSIONS {
        let client = world.client(choice);
        assert_eq!(text(client.get(world.url("/")).await.unwrap()).await, "begun");
    }
    assert!(ours.strong_count() > 3);
    world.server.handle().stop();
    timeout(PATIENCE, world.server).await.unwrap().unwrap();
    assert_eq!(ours.strong_count(), 0);
    drop(release);
}

/// Deleted, a panic of a handler or of its task could end a thread.
#[tokio::test]
async fn a_panic_ends_one_request_and_a_panic_of_a_task_none() {
    let app = Router::new().route("/panic", get(async || -> &'static str { panic!("on purpose") })).route(
        "/task",
        get(async || {
            let task = tokio::spawn(async { panic!("on purpose") });
            task.await.unwrap_err().is_panic().to_string()
        }),
    );
    let world = World::new(app);
    for choice in VERSIONS {
        let client = world.client(choice);
        let panicked = client.get(world.url("/panic")).await.unwrap();
        assert_eq!(panicked.status(), StatusCode::INTERNAL_SERVER_ERROR, "{choice:?}");
        assert_eq!(text(client.get(world.url("/task")).await.unwrap()).await, "true", "{choice:?}");
    }
}

/// Deleted, a service that is made on its thread could find no runtime, or be made twice.
#[tokio::test]
async fn a_service_is_made_once_on_each_thread_in_its_runtime() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let ours = Arc::clone(&made);
    let world = World::by(|builder| {
        let make = move |thread| {
            made.lock().unwrap().push(thread);
            let task = std::rc::Rc::new(std::cell::RefCell::new(Some(spawn_local(async { here() }))));
            service_fn(move |_| {
                let task = task.borrow_mut().take();
                async move {
                    let ran = match task {
                        Some(task) => task.await.unwrap() == here(),
                        None => false,
                    };
                    Ok::<_, std::convert::Infallible>(http::Response::new(tercel::Body::from(
                        ran.to_string(),
                    )))
                }
            })
        };
        builder.bind().unwrap().serve_with(make).unwrap()
    });
    let client = world.client(HttpChoice::Http3);
    assert_eq!(text(client.get(world.url("/")).await.unwrap()).await, "true");
    assert_eq!(*ours.lock().unwrap(), [0]);
}
