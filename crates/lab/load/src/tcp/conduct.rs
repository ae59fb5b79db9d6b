//! One thread of the load generator over TCP: starts its tasks, follows the course of the run, and collects the record.

use super::berth;
use super::clock;
use super::connect::alpn;
use super::desk::Desk;
use super::pacer;
use crate::course::{Course, Post, Turn};
use crate::plan::{Pace, Plan, Protocol, Reuse};
use crate::record::Record;
use base::time::Duration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::runtime::{Builder, Handle, LocalOptions};
use tokio::task::spawn_local;

/// How often threads look that wait for each other to begin.
const EAGER: Duration = Duration::from_millis(1);

/// Carries out `plan`, a thread's share.
pub(super) fn run(plan: Plan, post: Post<'_>) -> io::Result<Record> {
    let mut course = Course::new(&plan, post, clock::now());
    let tcp = match &plan.protocol {
        Protocol::Http1(tcp) | Protocol::Http2(tcp) => tcp.clone(),
        Protocol::Http3(_) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "HTTP/3 does not go over TCP"));
        }
    };
    allow_sockets();
    let mut tcp = tcp;
    if let Some(tls) = &mut tcp.tls {
        Arc::make_mut(tls).alpn_protocols = vec![alpn(&plan.protocol).to_vec()];
    }
    let desk = Rc::new(Desk::new(plan, tcp));
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default());
    // The tasks are gone with it.
    let outcome = runtime.map(|runtime| runtime.block_on(conduct(&desk, &mut course)));
    let mut books = desk.books.borrow_mut();
    if outcome.is_err() {
        course.finish(clock::now(), &mut books, Duration::ZERO, desk.traffic(0));
    }
    outcome.map(|()| Course::take_record(&mut books))
}

/// Follows the course to its end.
async fn conduct(desk: &Rc<Desk>, course: &mut Course<'_>) {
    for number in 0..desk.plan.connections {
        match desk.plan.reuse {
            Reuse::Always => spawn_local(berth::keep(Rc::clone(desk), number)),
            Reuse::Never => spawn_local(berth::once_each(Rc::clone(desk), number)),
        };
    }
    if matches!(desk.plan.pace, Pace::Open(_)) {
        spawn_local(pacer::pace(Rc::clone(desk)));
    }
    loop {
        let now = clock::now();
        let (came_up, went_down) = desk.take_news();
        if came_up {
            course.on_up(now);
        }
        if went_down {
            course.on_down(now);
        }
        let traffic = desk.traffic(waits());
        let crowd = desk.crowd();
        if course.look(now, &mut desk.books.borrow_mut(), crowd, traffic) == Turn::Begin {
            desk.work.notify_waiters();
            desk.paced.notify_one();
        }
        if course.is_over(now, &desk.books.borrow(), crowd) {
            break;
        }
        let until = course.next_look(now, &desk.books.borrow(), EAGER);
        let wait = std::time::Duration::from_nanos(until.saturating_since(now).as_nanos());
        let _ = tokio::time::timeout(wait, desk.news.notified()).await;
    }
    let now = clock::now();
    let (oldest, traffic) = (desk.oldest(now), desk.traffic(waits()));
    course.finish(now, &mut desk.books.borrow_mut(), oldest, traffic);
}

/// How often the thread went to sleep, or looked whether anything had arrived.
fn waits() -> u64 {
    Handle::current().metrics().worker_park_count(0)
}

/// Lets the process have as many sockets as it may ask for.
fn allow_sockets() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() && limit.current.is_some() {
        // Where it is refused, connections fail under their own name.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}
