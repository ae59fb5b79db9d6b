//! Many seeds on a few threads. A seed that fails is named together with the command that runs it alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Failures after which a run gives up.
const ENOUGH: usize = 5;

/// What to run. From the environment: `SIM_SEED` runs one seed, `SIM_SEEDS` this many from `SIM_FIRST` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Seeds {
    /// As many as the environment says, otherwise `count` from 0.
    pub fn from_environment(count: u64) -> Seeds {
        let number = |name| std::env::var(name).ok().and_then(|value: String| value.parse().ok());
        match number("SIM_SEED") {
            Some(first) => Seeds { first, count: 1 },
            None => {
                Seeds { first: number("SIM_FIRST").unwrap_or(0), count: number("SIM_SEEDS").unwrap_or(count) }
            }
        }
    }

    /// Runs `one` on every seed, two at a time. `test` is what `cargo test` calls it: `--test FILE NAME`.
    ///
    /// # Errors
    /// The seeds that failed, each with its reason and the command to replay it.
    pub fn run(self, test: &str, one: impl Fn(u64) -> Result<(), String> + Sync) -> Result<(), String> {
        let (next, failed) = (AtomicU64::new(self.first), AtomicUsize::new(0));
        let failures = Mutex::new(Vec::new());
        let work = || {
            while failed.load(Ordering::Relaxed) < ENOUGH {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed - self.first >= self.count {
                    return;
                }
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| one(seed))).unwrap_or_else(|cause| Err(words(&*cause)));
                if let Err(reason) = outcome {
                    failed.fetch_add(1, Ordering::Relaxed);
                    let line = format!(
                        "seed {seed}: {reason}\n  SIM_SEED={seed} cargo test -p tercel-sim {test} -- --nocapture"
                    );
                    if let Ok(mut failures) = failures.lock() {
                        failures.push(line);
                    }
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
        let failures = failures.into_inner().unwrap_or_default();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

/// What a panic said.
fn words(cause: &(dyn core::any::Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without words"))
}
