//! All orders of a server: a thread that sleeps until one is due, and carries it out.
//!
//! Orders run one after the other. Each reads the file of its certificate again under the lock of the state folder: where another server
//! has renewed it, nothing is ordered.

use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::http::Http;
use crate::renewal::{self, Wish};
use crate::schedule::{Pace, pause, renewal_s, share, within_s};
use crate::settings::Order;
use crate::store::{Failures, Lock, Store};
use instant_acme::CertificateIdentifier;
use server::challenges::Challenges;
use server::date::{http_date, unix_now};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How often the clock is looked at: it may be set.
const LOOK: Duration = Duration::from_secs(60);
/// From one look at the lock that another server holds to the next.
const LOCKED: Duration = Duration::from_secs(1);

/// What a server does for its orders.
pub struct Hooks {
    /// Tells an operator, in a line.
    pub note: Box<dyn Fn(&str) + Send + Sync>,
    /// Warns an operator, in a line.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
    /// A certificate has come into its file.
    pub renewed: Box<dyn Fn() + Send + Sync>,
    /// Whether orders are not the server's business any more: it ends, or another process has its ports.
    pub is_ending: Box<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hooks")
    }
}

/// An order at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The names of hosts.
    pub names: Vec<String>,
    /// The authority's host.
    pub authority: String,
    /// Until when clients take the certificate, in seconds since 1970, if there is one.
    pub expires_s: Option<u64>,
    /// When the next attempt begins, in seconds since 1970.
    pub next_s: u64,
    /// Attempts in a row that have failed.
    pub failures: u32,
    /// Why the last one has failed, if it has.
    pub error: Option<String>,
}

/// What has become of all orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Certificates that were issued.
    pub issued: u64,
    /// Attempts that have failed.
    pub failed: u64,
}

/// The orders of a server; clones are the same.
#[derive(Clone, Debug)]
pub struct Manager(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    challenges: Challenges,
    pace: Pace,
    hooks: OnceLock<Hooks>,
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    totals: Totals,
    has_thread: bool,
}

/// An order, and how far it is.
#[derive(Clone, Debug)]
struct Entry {
    order: Arc<Order>,
    /// From when until when the certificate is valid.
    span_s: Option<(u64, u64)>,
    failures: Failures,
    error: Option<String>,
    /// When to order.
    due_s: u64,
    /// When to ask the authority for its wish; `None`: it has none.
    ask_s: Option<u64>,
    /// The authority has told a wish: it knows certificates by their identifiers.
    has_wish: bool,
    /// A random number below one: how early within what is permitted.
    share: f64,
}

impl Manager {
    /// Keeps certificates in `store`. Nothing is done before [`Manager::order`].
    pub fn new(store: Store, challenges: Challenges, pace: Pace) -> Manager {
        let (hooks, held, changed) = (OnceLock::new(), Mutex::default(), Notify::new());
        Manager(Arc::new(Shared { store, challenges, pace, hooks, held, changed }))
    }

    /// What the server does for its orders. The first call counts.
    pub fn hook(&self, hooks: Hooks) {
        let _ = self.0.hooks.set(hooks);
    }

    /// These orders are carried out from now on, and no others. One that has failed is tried again at once, if it is asked for `again`.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn order(&self, orders: Vec<Order>, again: Again) -> io::Result<()> {
        let mut held = self.0.held();
        let entries = orders.into_iter().map(|order| {
            let known = held.entries.iter().find(|entry| *entry.order == order).cloned();
            let mut entry = known.unwrap_or_else(|| self.0.entry(order));
            if again == Again::AtOnce && entry.failures.count > 0 {
                entry.due_s = 0;
            }
            entry
        });
        let entries: Vec<Entry> = entries.collect();
        held.entries = entries;
        self.0.changed.notify_one();
        if held.entries.is_empty() || held.has_thread {
            return Ok(());
        }
        held.has_thread = true;
        let shared = Arc::clone(&self.0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        std::thread::Builder::new().name("acme".into()).spawn(move || runtime.block_on(shared.run()))?;
        Ok(())
    }

    /// All orders.
    pub fn status(&self) -> Vec<Status> {
        let of = |entry: &Entry| Status {
            names: entry.order.names.clone(),
            authority: entry.order.authority.host().to_owned(),
            expires_s: entry.span_s.map(|(_, ends)| ends),
            next_s: entry.due_s,
            failures: entry.failures.count,
            error: entry.error.clone(),
        };
        self.0.held().entries.iter().map(of).collect()
    }

    /// What has become of all orders since the start.
    pub fn totals(&self) -> Totals {
        self.0.held().totals
    }
}

/// What becomes of orders that have failed, when all are given anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// They wait for their time.
    InTime,
    /// They are tried: an operator has asked for it.
    AtOnce,
}

/// What comes next.
enum Step {
    Wait(Duration),
    Order(PathBuf),
    Ask(PathBuf),
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An order of which nothing is known.
    fn entry(&self, order: Order) -> Entry {
        let failures = self.store.failures(&order, self.pace.longest.as_secs());
        let span_s = self.store.certificate_of(&order).and_then(|identity| identity.span_s());
        let share = share();
        let due_s = span_s.map_or(0, |span| renewal_s(span, share)).max(failures.next_s);
        let ask_s = span_s.map(|_| unix_now().saturating_add(self.jittered_s(self.pace.poll)));
        Entry { order: Arc::new(order), span_s, failures, error: None, due_s, ask_s, has_wish: false, share }
    }

    /// Up to twice as long.
    fn jittered_s(&self, span: Duration) -> u64 {
        span.mul_f64(1.0 + share()).as_secs().max(1)
    }

    fn warn(&self, text: &str) {
        if let Some(hooks) = self.hooks.get() {
            (hooks.warn)(text);
        }
    }

    async fn run(self: Arc<Shared>) {
        loop {
            match self.next() {
                Step::Wait(span) => drop(timeout(span, self.changed.notified()).await),
                Step::Order(path) => self.attempt(&path).await,
                Step::Ask(path) => self.ask(&path).await,
            }
        }
    }

    fn next(&self) -> Step {
        if self.hooks.get().is_none_or(|hooks| (hooks.is_ending)()) {
            return Step::Wait(LOOK);
        }
        let (held, now) = (self.held(), unix_now());
        let path = |entry: &Entry| self.store.certificate(&entry.order);
        let due = held.entries.iter().filter(|entry| entry.due_s <= now).min_by_key(|entry| entry.due_s);
        if let Some(entry) = due {
            return Step::Order(path(entry));
        }
        if let Some(entry) = held.entries.iter().find(|entry| entry.ask_s.is_some_and(|ask_s| ask_s <= now)) {
            return Step::Ask(path(entry));
        }
        let moments = held.entries.iter().flat_map(|entry| [Some(entry.due_s), entry.ask_s]).flatten();
        let next = moments.min().map_or(LOOK, |next| Duration::from_secs(next.saturating_sub(now)));
        Step::Wait(next.min(LOOK))
    }

    /// The entry of a certificate, if it is still there.
    fn find(&self, path: &PathBuf) -> Option<Entry> {
        self.held().entries.iter().find(|entry| self.store.certificate(&entry.order) == *path).cloned()
    }

    fn change(&self, order: &Order, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.held().entries.iter_mut().find(|entry| *entry.order == *order) {
            change(entry);
        }
    }

    async fn attempt(&self, path: &PathBuf) {
        let Some(entry) = self.find(path) else { return };
        let order = Arc::clone(&entry.order);
        let mut put_off_s = None;
        let tried = match timeout(self.pace.attempt, self.locked(&entry, &mut put_off_s)).await {
            Ok(tried) => tried,
            Err(_) => Err(Failure::new("the authority was not done in time")),
        };
        match tried {
            Ok(is_new) => self.succeed(&order, is_new),
            Err(failure) => self.fail(&order, entry.failures.count.saturating_add(1), &failure, put_off_s),
        }
    }

    /// Orders, unless another server has done so. Returns whether a certificate was issued.
    async fn locked(&self, entry: &Entry, put_off_s: &mut Option<u64>) -> Result<bool, Failure> {
        let order = &*entry.order;
        let _lock = self.lock(order).await?;
        let found = self.store.certificate_of(order);
        let span_s = found.as_ref().and_then(|identity| identity.span_s());
        if span_s.is_some_and(|span| Some(span) != entry.span_s && renewal_s(span, 0.0) > unix_now()) {
            return Ok(false);
        }
        // An authority that does not like it is asked without the next time.
        let replaces: Option<CertificateIdentifier<'static>> = found
            .as_ref()
            .filter(|_| entry.has_wish && entry.failures.count == 0)
            .and_then(renewal::identifier);
        let http = Http::new(&order.authority)?;
        let (store, challenges, pace) = (&self.store, &self.challenges, &self.pace);
        let ran = Exchange { order, store, challenges, pace, http: &http }.run(replaces).await;
        *put_off_s = http.put_off_s();
        ran.map(|()| true)
    }

    /// The right to order, once no other server has it.
    async fn lock(&self, order: &Order) -> Result<Lock, Failure> {
        loop {
            match self.store.lock(&order.authority) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) => tokio::time::sleep(LOCKED).await,
                Err(error) => {
                    let path = self.store.certificate(order);
                    let folder = path.parent().unwrap_or(&path).display();
                    return Err(Failure::new(format!("the state folder cannot be used: {folder}: {error}")));
                }
            }
        }
    }

    /// Who sees the new status finds everything else done.
    fn succeed(&self, order: &Order, is_new: bool) {
        let span_s = self.store.certificate_of(order).and_then(|identity| identity.span_s());
        // What cannot be removed is an older failure, which delays a later start at most.
        let _ = self.store.note_failures(order, Failures::default());
        self.held().totals.issued += u64::from(is_new);
        if let Some(hooks) = self.hooks.get() {
            if is_new {
                let until = span_s.map(|(_, ends)| String::from_utf8_lossy(&http_date(ends)).into_owned());
                let (title, authority) = (order.title(), order.authority.host());
                let until = until.unwrap_or_default();
                (hooks.note)(&format!("a certificate for {title} by {authority} was issued, until {until}"));
            }
            (hooks.renewed)();
        }
        let ask_s = unix_now().saturating_add(self.jittered_s(self.pace.ask));
        self.change(order, |entry| {
            entry.span_s = span_s;
            entry.failures = Failures::default();
            entry.error = None;
            // Never at once again, whatever the certificate says.
            entry.share = share();
            let due_s = span_s.map_or(0, |span| renewal_s(span, entry.share));
            entry.due_s = due_s.max(unix_now().saturating_add(1));
            entry.ask_s = Some(ask_s);
        });
    }

    fn fail(&self, order: &Order, count: u32, failure: &Failure, put_off_s: Option<u64>) {
        let now = unix_now();
        let pause_s = pause(&self.pace, count, share()).as_secs().max(1);
        let next_s = now.saturating_add(pause_s).max(put_off_s.unwrap_or(0));
        let failures = Failures { count, next_s };
        let kept = match self.store.note_failures(order, failures) {
            Ok(()) => String::new(),
            Err(error) => format!(" (and the state folder cannot be written: {error})"),
        };
        self.held().totals.failed += 1;
        let (title, again) = (order.title(), next_s.saturating_sub(now));
        self.warn(&format!("no certificate for {title}: {failure}; the next attempt is in {again} s{kept}"));
        self.change(order, |entry| {
            entry.failures = failures;
            entry.error = Some(failure.to_string());
            entry.due_s = next_s;
        });
    }

    /// Asks the authority when it wants a certificate renewed.
    async fn ask(&self, path: &PathBuf) {
        let Some(entry) = self.find(path) else { return };
        let asked = async {
            let http = Http::new(&entry.order.authority)?;
            renewal::ask(&entry.order, &self.store, &http).await
        };
        let asked = timeout(self.pace.attempt, asked).await;
        let now = unix_now();
        let later = now.saturating_add(self.jittered_s(self.pace.ask));
        self.change(&entry.order, |entry| match asked {
            Ok(Ok(Wish::Within { window_s, again })) => {
                entry.has_wish = true;
                entry.ask_s = Some(now.saturating_add(again.max(self.pace.poll).as_secs().max(1)).min(later));
                if entry.failures.count == 0 {
                    let own = entry.span_s.map_or(0, |span| renewal_s(span, entry.share));
                    entry.due_s = own.min(within_s(window_s, entry.share));
                }
            }
            Ok(Ok(Wish::None)) => entry.ask_s = None,
            // The certificate is renewed by its own time.
            Ok(Err(_)) | Err(_) => entry.ask_s = Some(later),
        });
    }
}
