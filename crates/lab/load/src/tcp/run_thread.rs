//! One thread of the load generator over TCP: starts its tasks, follows the course of the run, and collects the record.

use super::clock;
use super::connect::alpn;
use super::connection_slot;
use super::pacer;
use super::thread_state::ThreadState;
use crate::plan::{LoadPlan, Pace, Protocol, Reuse};
use crate::record::Record;
use crate::run_phase::{PhaseChange, RunPhase, ThreadContext};
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
pub(super) fn run(plan: LoadPlan, thread_context: ThreadContext<'_>) -> io::Result<Record> {
    let mut run_phase = RunPhase::new(plan.rules(), thread_context, clock::now());
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
    let thread_state = Rc::new(ThreadState::new(plan, tcp));
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default());
    // The tasks are gone with it.
    let outcome = runtime.map(|runtime| runtime.block_on(run_thread(&thread_state, &mut run_phase)));
    let mut accounts = thread_state.accounts.borrow_mut();
    if outcome.is_err() {
        run_phase.finish(clock::now(), &mut accounts, Duration::ZERO, thread_state.traffic(0));
    }
    outcome.map(|()| RunPhase::take_record(&mut accounts))
}

/// Follows the course to its end.
async fn run_thread(thread_state: &Rc<ThreadState>, run_phase: &mut RunPhase<'_>) {
    for number in 0..thread_state.plan.connections {
        match thread_state.plan.reuse {
            Reuse::Always => spawn_local(connection_slot::keep(Rc::clone(thread_state), number)),
            Reuse::Never => spawn_local(connection_slot::once_each(Rc::clone(thread_state), number)),
        };
    }
    if matches!(thread_state.plan.pace, Pace::Open(_)) {
        spawn_local(pacer::pace(Rc::clone(thread_state)));
    }
    loop {
        let now = clock::now();
        let (came_up, went_down) = thread_state.take_news();
        if came_up {
            run_phase.on_up(now);
        }
        if went_down {
            run_phase.on_down(now);
        }
        let traffic = thread_state.traffic(waits());
        let connection_summary = thread_state.connection_summary();
        if run_phase.look(now, &mut thread_state.accounts.borrow_mut(), connection_summary, traffic)
            == PhaseChange::Begin
        {
            thread_state.work.notify_waiters();
            thread_state.paced.notify_one();
        }
        if run_phase.is_over(now, &thread_state.accounts.borrow(), connection_summary) {
            break;
        }
        let until = run_phase.next_look(now, &thread_state.accounts.borrow(), EAGER);
        let wait = std::time::Duration::from_nanos(until.saturating_since(now).as_nanos());
        let _ = tokio::time::timeout(wait, thread_state.news.notified()).await;
    }
    let now = clock::now();
    let (oldest, traffic) = (thread_state.oldest(now), thread_state.traffic(waits()));
    run_phase.finish(now, &mut thread_state.accounts.borrow_mut(), oldest, traffic);
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
