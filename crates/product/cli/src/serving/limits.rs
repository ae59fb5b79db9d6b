//! What clients may have of a server at a time.

use clap::Args;

/// Limits on connections. Each holds for HTTP/3, and again for HTTP/1.1 and 2.
#[derive(Args)]
pub(crate) struct LimitArgs {
    /// Connections at a time over HTTP/3, and as many over HTTP/1.1 and 2.
    ///
    /// HTTP/3 refuses more with CONNECTION_REFUSED; over TCP they wait in the kernel's queue.
    #[arg(
        long, default_value_t = 30_000, value_parser = at_least_one, value_name = "N",
        help_heading = "Limits"
    )]
    max_connections: usize,
    /// The same from one address: an IPv4 address, or an IPv6 /64. Default: half of --max-connections.
    #[arg(long, value_parser = at_least_one, value_name = "N", help_heading = "Limits", hide_short_help = true)]
    max_connections_per_address: Option<usize>,
    /// The same from one network: an IPv4 /24, or an IPv6 /48. Default: three quarters of --max-connections.
    #[arg(long, value_parser = at_least_one, value_name = "N", help_heading = "Limits", hide_short_help = true)]
    max_connections_per_prefix: Option<usize>,
}

/// Each of so many threads has its part, rounded up: clients are spread over them by their ports.
impl LimitArgs {
    /// Connections of a thread.
    pub(crate) fn in_all(&self, threads: usize) -> usize {
        part(self.max_connections, threads)
    }

    /// Connections of a thread from one address.
    pub(crate) fn per_address(&self, threads: usize) -> usize {
        let usual = self.max_connections.div_ceil(2);
        part(self.max_connections_per_address.unwrap_or(usual), threads)
    }

    /// Connections of a thread from one network.
    pub(crate) fn per_prefix(&self, threads: usize) -> usize {
        let usual = self.max_connections.saturating_mul(3).div_ceil(4);
        part(self.max_connections_per_prefix.unwrap_or(usual), threads)
    }
}

fn part(whole: usize, threads: usize) -> usize {
    whole.div_ceil(threads.max(1))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number of at least 1".into()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_follows_the_first_and_is_shared_out() {
        let mut limits = LimitArgs {
            max_connections: 10,
            max_connections_per_address: None,
            max_connections_per_prefix: None,
        };
        assert_eq!((limits.in_all(1), limits.per_address(1), limits.per_prefix(1)), (10, 5, 8));
        assert_eq!((limits.in_all(3), limits.per_address(3), limits.per_prefix(3)), (4, 2, 3));
        limits.max_connections_per_address = Some(1);
        assert_eq!(limits.per_address(4), 1, "at least one for each thread");
        assert!(at_least_one("0").is_err() && at_least_one("x").is_err() && at_least_one("7") == Ok(7));
    }
}
