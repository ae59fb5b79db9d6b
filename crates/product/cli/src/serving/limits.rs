//! What clients may have of a server at a time.

use clap::Args;
use server::Limits;

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

impl LimitArgs {
    /// The server's limits, with `memory` bytes for all connections.
    pub(crate) fn of_clients(&self, memory: Option<u64>) -> Limits {
        let mut limits = Limits::default().connections(self.max_connections);
        if let Some(bytes) = memory {
            limits = limits.memory(bytes);
        }
        if let Some(count) = self.max_connections_per_address {
            limits = limits.connections_per_address(count);
        }
        if let Some(count) = self.max_connections_per_prefix {
            limits = limits.connections_per_prefix(count);
        }
        limits
    }
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
    fn a_limit_is_a_number_above_zero() {
        assert!(at_least_one("0").is_err() && at_least_one("x").is_err() && at_least_one("7") == Ok(7));
    }
}
