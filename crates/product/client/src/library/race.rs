//! Attempts of which the first success counts: addresses of a host, and QUIC beside TCP. RFC 8305 §5.

use super::error::{Error, Kind};
use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinSet;

/// The head start of each attempt. Source: RFC 8305 §5.
pub(crate) const HEAD_START: Duration = Duration::from_millis(250);

/// Begins the attempts in their order, each `head_start` after the one before, or as soon as one fails. The first success is
/// the result, and the other attempts are dropped.
///
/// # Errors
/// All have failed. What a server says tells more than that there is none, and that more than silence.
pub(crate) async fn race<T, F>(mut attempts: VecDeque<F>, head_start: Duration) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut failure: Option<Error> = None;
    loop {
        if let Some(attempt) = attempts.pop_front() {
            running.spawn(attempt);
        }
        let ended = if attempts.is_empty() {
            running.join_next().await
        } else {
            match tokio::time::timeout(head_start, running.join_next()).await {
                Ok(ended) => ended,
                Err(_) => continue,
            }
        };
        let error = match ended {
            Some(Ok(Ok(success))) => return Ok(success),
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => Error::caused(Kind::Connect, "an attempt to connect has failed", error),
            None => {
                return Err(
                    failure.unwrap_or_else(|| Error::new(Kind::Connect, "there is no address to connect to"))
                );
            }
        };
        if failure.as_ref().is_none_or(|known| weight(known) < weight(&error)) {
            failure = Some(error);
        }
    }
}

/// How much an error tells.
fn weight(error: &Error) -> u8 {
    match error.kind() {
        Kind::Timeout(_) => 0,
        Kind::Connect | Kind::Lost => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Phase;
    use super::*;
    use std::future::{pending, ready};
    use std::pin::Pin;

    type Attempt = Pin<Box<dyn Future<Output = Result<u8, Error>> + Send>>;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn success(number: u8) -> Attempt {
        Box::pin(ready(Ok(number)))
    }

    fn failure(kind: Kind) -> Attempt {
        Box::pin(ready(Err(Error::new(kind, "as the test wants it"))))
    }

    fn outcome(attempts: Vec<Attempt>, head_start: Duration) -> Result<u8, Kind> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(race(attempts.into(), head_start)).map_err(|error| error.kind())
    }

    #[test]
    fn the_first_success_counts_and_each_attempt_has_a_head_start() {
        assert_eq!(outcome(vec![success(1), success(2)], HOUR), Ok(1));
        assert_eq!(outcome(vec![failure(Kind::Connect), success(2)], HOUR), Ok(2), "a failure ends it");
        let silent = || Box::pin(pending()) as Attempt;
        assert_eq!(outcome(vec![silent(), silent(), success(3)], Duration::from_millis(1)), Ok(3));
    }

    #[test]
    fn when_all_fail_the_error_that_tells_most_is_reported() {
        let quiet = || failure(Kind::Timeout(Phase::Connect));
        let refused = || failure(Kind::Connect);
        let attempts = vec![quiet(), failure(Kind::Certificate), refused()];
        assert_eq!(outcome(attempts, HOUR), Err(Kind::Certificate));
        assert_eq!(outcome(vec![refused(), quiet()], HOUR), Err(Kind::Connect));
        assert_eq!(outcome(Vec::new(), HOUR), Err(Kind::Connect));
    }
}
