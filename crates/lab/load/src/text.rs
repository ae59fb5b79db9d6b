//! The figures of a run, for people.

use super::cost::GeneratorCost;
use super::failure::PerFailure;
use super::kinds::HandshakeKinds;
use super::report::Report;
use core::fmt;

fn counts(failures: &PerFailure) -> String {
    let each: Vec<String> = failures.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
    each.join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_heading(f)?;
        writeln!(
            f,
            "rate        {:.0} requests/s, {:.2} MB/s of content",
            self.requests_per_second,
            self.content_bytes_per_second / 1e6
        )?;
        if self.latency.count > 0 {
            writeln!(f, "latency     {}", self.latency)?;
        }
        if self.handshake.count > 0 {
            let each_second =
                self.handshakes_per_second.map(|rate| format!(" ({rate:.0}/s)")).unwrap_or_default();
            writeln!(f, "handshakes  {}{each_second}: {}", self.handshake.count, self.handshake)?;
        }
        if let Some(exchange) = self.key_exchange.filter(|_| self.new_connections) {
            writeln!(f, "            key exchange {exchange}")?;
        }
        let HandshakeKinds { full, resumed, early } = self.handshake_kinds;
        if resumed + early > 0 {
            writeln!(f, "            {full} full, {resumed} resumed, {early} resumed with early data")?;
        }
        if self.first_byte.count > 0 {
            writeln!(f, "first byte  {}", self.first_byte)?;
        }
        let statuses: Vec<String> =
            self.statuses.iter().map(|(status, count)| format!("{status} x {count}")).collect();
        writeln!(
            f,
            "statuses    {}",
            if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") }
        )?;
        self.write_failures(f)?;
        let generator = &self.generator;
        writeln!(
            f,
            "generator   {:.2} CPU s, {:.2} µs per request, busiest thread {:.0} % of a core, waited for one {:.0} %",
            generator.cpu_s,
            generator.cpu_us_per_request,
            generator.busiest_thread * 100.0,
            generator.waited_for_core * 100.0
        )?;
        writeln!(f, "network     {}", network(generator))?;
        if let Some(server) = &self.server {
            writeln!(
                f,
                "server      {:.2} CPU s, {:.2} µs per request, busiest thread {:.0} % of a core, waited for one {:.0} %",
                server.cpu_s,
                server.cpu_us_per_request,
                server.busiest_thread * 100.0,
                server.waited_for_core * 100.0
            )?;
        }
        match self.requests {
            0 => f.write_str("limit       nothing was asked, so nothing is known of it"),
            _ => write!(f, "limit       {}", self.limit.words()),
        }
    }
}

fn network(generator: &GeneratorCost) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let bytes = format!(
        "{:.2} MB sent, {:.2} MB received",
        megabytes(generator.sent_bytes),
        megabytes(generator.received_bytes)
    );
    match (generator.sent_datagrams, generator.received_datagrams, generator.calls_per_datagram) {
        (Some(sent), Some(received), Some(calls)) => format!(
            "{bytes} in {sent} and {received} datagrams, {} packets lost, {calls:.3} system calls per datagram",
            generator.lost_packets.unwrap_or(0)
        ),
        _ => format!("{bytes}, {:.3} system calls per request", generator.calls_per_request),
    }
}

impl Report {
    fn write_heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = match self.new_connections {
            true => format!("{} new connections at a time", self.connections),
            false => format!("{} connections x {} streams", self.connections, self.streams),
        };
        let early = if self.interrupted { ", interrupted" } else { "" };
        writeln!(
            f,
            "{} requests over {} in {:.2} s on {connections}, {} threads{early}",
            self.requests, self.protocol, self.seconds, self.threads
        )
    }

    fn write_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.failed > 0 {
            writeln!(f, "failed      {}: {}", self.failed, counts(&self.failures))?;
        }
        if self.warm_up_failures > 0 {
            writeln!(f, "failed      {} more in the warm-up", self.warm_up_failures)?;
        }
        if self.connection_failures.total() > 0 {
            writeln!(
                f,
                "connections {} failed: {}",
                self.connection_failures.total(),
                counts(&self.connection_failures)
            )?;
        }
        if let Some(fault) = &self.first_fault {
            writeln!(f, "fault       {fault}")?;
        }
        if self.not_begun > 0 {
            writeln!(f, "not begun   {}", self.not_begun)?;
        }
        // In a closed loop each place has one outstanding; only old ones are news.
        if self.oldest_unfinished_s > 1.0 {
            let (count, seconds) = (self.unfinished, self.oldest_unfinished_s);
            writeln!(f, "unfinished  {count} at the end, the oldest for {seconds:.1} s")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::report;

    /// Deleted, a server without an answer would be reported with a latency of 0 µs.
    #[test]
    fn what_was_not_measured_is_not_told() {
        let text = report().to_string();
        assert!(!text.contains("latency") && !text.contains("neither side"), "{text}");
        assert!(text.ends_with("nothing was asked, so nothing is known of it"), "{text}");
    }
}
