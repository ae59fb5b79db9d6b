//! How datagrams travel: the flags that `serve` and `get` share, and what they mean to the room of paths.

#[cfg(feature = "lab")]
use crate::help::LABORATORY;
use base::time::Duration;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use ports::{AnyPort, DataPathChoice};
#[cfg(feature = "lab")]
use server::listen::{Listen, ListenAddress};
use xdp::{BusyPoll, Mode};

/// How an AF_XDP socket shares packets with the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum XdpMode {
    /// The best of the others that the interface takes.
    Auto,
    /// The card reads and writes our memory.
    ZeroCopy,
    /// The driver copies.
    Driver,
    /// The kernel copies, before its network stack; every interface has it.
    Generic,
}

/// What may be told about the way of datagrams.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Data path")]
pub(crate) struct PathArgs {
    /// How datagrams reach the interface.
    ///
    /// gso is the cheapest almost everywhere and is what you get without this flag. auto measures: it sends some hundred
    /// datagrams to an empty multicast group, and says what it picked and why; xdp takes part where an interface is
    /// named. xdp goes past the kernel's network stack and reaches that one interface only; `tercel doctor` says whether this
    /// machine allows it.
    #[arg(long, value_parser = data_path(), default_value = "gso", value_name = "PATH")]
    pub(crate) datapath: DataPathChoice,
    /// The interface, for xdp and auto: as `ip link` names it.
    ///
    /// Without it, the one that has the address or the default route.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) interface: Option<String>,
    /// How an AF_XDP socket shares packets with the driver.
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE", hide_short_help = true)]
    pub(crate) xdp_mode: XdpMode,
    /// Let the kernel poll the interface's queue for this many microseconds, on this program's own CPU time. For xdp.
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(1..=100_000), hide_short_help = true)]
    pub(crate) busy_poll: Option<u32>,
    /// Look for packets this many microseconds before sleeping: less delay for more CPU. always never sleeps.
    #[arg(long, default_value = "0", value_name = "MICROSECONDS|always", value_parser = spin, hide_short_help = true)]
    pub(crate) spin: Duration,
    /// Ask for a socket receive buffer of this many bytes; without this flag, 8 MiB.
    ///
    /// The kernel grants twice the number, because it counts its own bookkeeping in: a datagram of 1,472 bytes takes about 2,304.
    /// So 106496 gives 212,992 bytes, which is what a socket has that asks for nothing (net.core.rmem_default), and holds about
    /// 90 full datagrams. Without privileges net.core.rmem_max is the limit. For kernel UDP; AF_XDP has no such buffer.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(4_096..=1 << 28))]
    pub(crate) receive_buffer: Option<u32>,
    /// Hold every datagram that arrives for this many microseconds: a longer path on a machine without spare cores for a lab.
    ///
    /// At most 64 MiB are held; more is dropped and counted as overflowed. With kernel UDP only; tercel lab emulates more.
    #[cfg(feature = "lab")]
    #[arg(long, default_value_t = 0, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(0..=1_000_000), hide = true, help_heading = LABORATORY)]
    pub(crate) hold_received: u32,
}

impl PathArgs {
    /// The addresses of `listen` that this data path can take.
    #[cfg(feature = "lab")]
    pub(crate) fn addresses(&self, listen: Listen) -> Vec<ListenAddress> {
        let mut addresses = listen.addresses();
        if self.datapath == DataPathChoice::Xdp {
            // AF_XDP has an interface already.
            addresses.retain(|address| address.device.is_none());
        }
        addresses
    }

    /// Ports of a server, which knows the address.
    pub(crate) fn server_options(&self, packet_size: u16) -> ports::OpenOptions {
        const UNBOUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        self.options(UNBOUND, packet_size)
    }

    /// One port at `address` as these flags say, for datagrams of `packet_size` bytes.
    pub(crate) fn options(&self, address: SocketAddr, packet_size: u16) -> ports::OpenOptions {
        ports::OpenOptions {
            interface: self.interface.clone(),
            xdp_mode: match self.xdp_mode {
                XdpMode::Auto => Mode::Auto,
                XdpMode::ZeroCopy => Mode::ZeroCopy,
                XdpMode::Driver => Mode::Driver,
                XdpMode::Generic => Mode::Generic,
            },
            busy_poll: self.busy_poll.map(|microseconds| BusyPoll { microseconds, ..BusyPoll::default() }),
            largest_payload: packet_size.into(),
            receive_buffer: self.receive_buffer.and_then(|bytes| usize::try_from(bytes).ok()),
            ..ports::OpenOptions::new(self.datapath, address)
        }
    }

    /// For how long what arrives is held back, if at all.
    #[cfg(feature = "lab")]
    pub(crate) fn hold(&self) -> Option<Duration> {
        (self.hold_received > 0).then(|| Duration::from_micros(self.hold_received.into()))
    }

    /// `port`, which holds back what arrives where these flags say so. That takes the feature `lab`.
    pub(crate) fn held(&self, port: AnyPort) -> AnyPort {
        #[cfg(feature = "lab")]
        if let Some(delay) = self.hold() {
            return AnyPort::other(link::Hold::new(port, delay));
        }
        port
    }

    /// Turns down flags that would have no effect.
    pub(crate) fn check(&self) -> Result<(), String> {
        #[cfg(feature = "lab")]
        if self.hold().is_some() && matches!(self.datapath, DataPathChoice::Auto | DataPathChoice::Xdp) {
            return Err("--hold-received goes with --datapath gso, mmsg or plain".to_owned());
        }
        if self.receive_buffer.is_some() && self.datapath == DataPathChoice::Xdp {
            return Err("--receive-buffer goes with --datapath gso, mmsg or plain".to_owned());
        }
        if matches!(self.datapath, DataPathChoice::Auto | DataPathChoice::Xdp) {
            return Ok(());
        }
        let idle = [
            ("--interface", self.interface.is_some()),
            ("--xdp-mode", self.xdp_mode != XdpMode::Auto),
            ("--busy-poll", self.busy_poll.is_some()),
        ];
        match idle.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!(
                "{flag} means nothing to --datapath {}: add --datapath xdp, or leave it out",
                self.datapath
            )),
            None => Ok(()),
        }
    }
}

/// The names of data paths.
fn data_path() -> impl TypedValueParser<Value = DataPathChoice> {
    let names = DataPathChoice::ALL.map(|choice| PossibleValue::new(choice.name()).help(choice.about()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<DataPathChoice>())
}

/// Microseconds, or `always`.
fn spin(text: &str) -> Result<Duration, String> {
    match text {
        "always" => Ok(Duration::MAX),
        _ => text
            .parse()
            .map(Duration::from_micros)
            .map_err(|_| "a number of microseconds, or always".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_is_a_span_or_for_ever() {
        assert_eq!(spin("always"), Ok(Duration::MAX));
        assert_eq!(spin("50"), Ok(Duration::from_micros(50)));
        assert!(spin("-1").is_err() && spin("often").is_err());
    }
}
