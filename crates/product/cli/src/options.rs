//! Settings of QUIC that several commands share: their flags, and what they mean to the rooms below.

use crate::help::LABORATORY;
use crate::techniques::{DisabledTechnique, DisabledTechniques};
use clap::{Args, ValueEnum};
use crypto::{KeyExchange, KeyLog, Library, Suite, SuiteChoice, TlsOptions};
use transport::{
    Burst, InitialWindow, MtuConfig, MtuMode, Pacing, SlowStart, Switch, TransportConfig, Without,
};
use wire::Version;

/// Cipher suites to offer or accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cipher {
    /// Every suite, the one that is fastest on this CPU first.
    All,
    /// AES-128-GCM only.
    Aes128,
    /// AES-256-GCM only.
    Aes256,
    /// ChaCha20-Poly1305 only.
    Chacha20,
}

/// Congestion controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Congestion {
    /// CUBIC, RFC 9438.
    Cubic,
    /// NewReno, RFC 9002.
    Newreno,
    /// BBR version 3: a model of the path instead of a window that waits for loss.
    Bbr,
    /// Prague: low delay where queues mark (L4S); asks for ECT(1).
    Prague,
    /// CUBIC at first, BBR where the path loses packets by chance or has a deep queue, and back where that proves wrong.
    Auto,
}

/// Searches for the largest packet that a path carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MtuSearch {
    /// Several sizes at once, a round trip apart.
    Fast,
    /// One size at a time, a second apart: the Ethernet maximum first, or halving what is left if a ceiling is given.
    Classic,
    /// No search: packets of the floor's size.
    Off,
}

/// What encrypts packets by AES-GCM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Aead {
    /// Tercel's own kernel where the CPU has the instructions, a library elsewhere.
    Kernel,
    /// The same, which copies stream data into the packet before it encrypts it.
    Copy,
    /// A library.
    Library,
}

impl Aead {
    fn library(self) -> Library {
        match self {
            Aead::Kernel => Library::Kernel,
            Aead::Copy => Library::CopyingKernel,
            Aead::Library => Library::AwsLc,
        }
    }
}

/// A technique that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// Use it.
    On,
    /// Do without.
    Off,
}

impl OnOff {
    fn switch(self) -> Switch {
        match self {
            OnOff::On => Switch::On,
            OnOff::Off => Switch::Off,
        }
    }
}

/// What a QUIC endpoint may be told on the command line.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "QUIC")]
pub(crate) struct QuicArgs {
    /// Cipher suites.
    #[arg(long, value_enum, default_value = "all", hide_short_help = true)]
    pub(crate) cipher: Cipher,
    /// What encrypts packets by AES-GCM. TERCEL_AEAD=library in the environment says the same as --aead library.
    #[arg(long, value_enum, default_value = "kernel", value_name = "WHICH", hide = true, help_heading = LABORATORY)]
    pub(crate) aead: Aead,
    /// Congestion controller.
    #[arg(long, value_enum, default_value = "auto", value_name = "NAME")]
    pub(crate) congestion: Congestion,
    /// How the largest packet that the path carries is searched for.
    #[arg(long, value_enum, default_value = "fast", value_name = "MODE", hide = true, help_heading = LABORATORY)]
    pub(crate) mtu_search: MtuSearch,
    /// Largest UDP payload that is tried, in bytes.
    ///
    /// Without it, what the interface's MTU and the other end take: 1472 on Ethernet over IPv4, 1452 over IPv6, up to 65507 on
    /// loopback. The classic search then stops at what Ethernet takes.
    #[arg(long, value_name = "BYTES", value_parser = size(), hide_short_help = true)]
    pub(crate) mtu_ceiling: Option<u16>,
    /// UDP payload that every path is assumed to carry, in bytes.
    ///
    /// Without it 1200; with --mtu-search off 1252 over IPv4 and 1232 over IPv6, an IP packet of 1280 bytes.
    #[arg(long, value_name = "BYTES", value_parser = size(), hide = true, help_heading = LABORATORY)]
    pub(crate) mtu_floor: Option<u16>,
    /// Full packets have this UDP payload, in bytes, if the path carries it: both the ceiling, and with --mtu-search off the
    /// floor.
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["mtu_ceiling", "mtu_floor"], value_parser = size(), hide = true, help_heading = LABORATORY)]
    pub(crate) packet_size: Option<u16>,
    /// End a connection after this many seconds of silence.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) idle_timeout: u64,
    /// Spread what is sent over the round trip. Paths with less than a millisecond are not paced in any case.
    #[arg(long, value_enum, default_value = "on", value_name = "on|off", hide_possible_values = true, hide = true, help_heading = LABORATORY)]
    pub(crate) pacing: OnOff,
    /// Pace in bursts of this many packets at most, each handed to the kernel by itself.
    ///
    /// Without this flag and the next, a burst is a millisecond's worth of the rate, up to what the kernel segments in one
    /// call, and 10 packets after a pause; where nothing was lost of late an eighth of a round trip's, up to 10 packets, or a
    /// sixteenth, up to 32. With this flag a burst on a slow path holds no more than 10 ms of the rate.
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u16).range(1..=1_000), hide = true, help_heading = LABORATORY)]
    pub(crate) pacing_burst: Option<u16>,
    /// Pace in bursts of this much of the rate at most; with --pacing-burst, whichever is less.
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000), hide = true, help_heading = LABORATORY)]
    pub(crate) pacing_burst_us: Option<u64>,
    /// Packets that may be under way at first on a path of which nothing is known: 10, as RFC 9002 recommends, to 32.
    ///
    /// Without it ten, and once a round trip is known ten for each 12.5 ms of it, 32 at most: a long path begins no faster than a short one. Over
    /// long paths pages take up to two round trips less by it. Where many clients share a slow link, 10 loses less. Paths that are known begin
    /// with up to 32 in any case (--careful-resume).
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u8).range(10..=32), hide_short_help = true)]
    pub(crate) initial_window: Option<u8>,
    /// Start new connections on paths that are known from earlier ones with up to 32 packets, and go on with half of what those
    /// carried (RFC 9959).
    ///
    /// What a path carries is remembered for ten minutes, by each worker for itself. On, but with --congestion bbr and with --pacing off,
    /// where it cannot be.
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, hide_short_help = true)]
    pub(crate) careful_resume: Option<OnOff>,
    /// Ask the peer for fewer acknowledgements as the window grows, and do as it asks (draft-ietf-quic-ack-frequency), if
    /// it knows how.
    #[arg(long, value_enum, default_value = "on", value_name = "on|off", hide_possible_values = true, hide = true, help_heading = LABORATORY)]
    pub(crate) ack_frequency: OnOff,
    /// Acknowledge every Nth packet on a steady path, unless the peer asks for something else; every second one until it is
    /// steady and after losses, at once on gaps and at the end of a stream.
    #[arg(long, default_value_t = 10, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1_000), hide = true, help_heading = LABORATORY)]
    pub(crate) ack_every: u32,
    /// Update keys after this many packets.
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..), hide = true, help_heading = LABORATORY)]
    pub(crate) key_update_after: Option<u64>,
    /// Use the classic key exchange only, without the post-quantum one.
    #[arg(long, hide_short_help = true)]
    pub(crate) classic_key_exchange: bool,
    /// Leave out techniques that make tercel cheap, to see what each is worth: names separated by commas.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TECHNIQUES",
        hide = true,
        help_heading = LABORATORY
    )]
    pub(crate) without: Vec<DisabledTechnique>,
    /// Tell about the flags for experiments: search for the packet size, pacing, acknowledgements, key updates, techniques left out.
    #[arg(long, help_heading = "Help")]
    // Looked for before anything is parsed, or a URL would have to be given.
    help_lab: bool,
}

/// An ordinary build has no branches for these, so that they cost a packet nothing.
const NOT_BUILT: &str = "--without train-masks, merged-acks, lent-data, shared-buffers and runs need a build with the feature experiments: \
                         cargo build --release --package tercel-cli --features experiments";

/// UDP payloads that QUIC and IP permit.
fn size() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16)
        .range(i64::from(transport::MIN_PACKET_SIZE)..=i64::from(transport::MAX_PACKET_SIZE))
}

impl QuicArgs {
    /// The transport's settings, beginning with `version`.
    pub(crate) fn transport(&self, version: Version) -> Result<TransportConfig, transport::InvalidConfig> {
        let defaults = TransportConfig::default();
        if let (Some(floor), Some(ceiling)) = (self.mtu_floor, self.mtu_ceiling)
            && floor > ceiling
        {
            return Err(transport::InvalidConfig("--mtu-floor is above --mtu-ceiling"));
        }
        let without = self.techniques().transport();
        if without != Without::default() && !Without::IS_BUILT {
            return Err(transport::InvalidConfig(NOT_BUILT));
        }
        TransportConfig {
            version,
            idle_timeout: base::time::Duration::from_secs(self.idle_timeout),
            max_packet_size: self.packet_size.unwrap_or(transport::MAX_PACKET_SIZE),
            mtu: self.mtu(),
            pacing: self.pacing(),
            slow_start: SlowStart {
                begin: self
                    .initial_window
                    .and_then(InitialWindow::of_packets)
                    .unwrap_or(defaults.slow_start.begin),
                ..defaults.slow_start
            },
            careful_resume: self.careful_resume()?,
            ack_frequency: self.ack_frequency.switch(),
            ack_every: self.ack_every,
            without,
            congestion: match self.congestion {
                Congestion::Cubic => recovery::congestion::Algorithm::Cubic,
                Congestion::Newreno => recovery::congestion::Algorithm::NewReno,
                Congestion::Bbr => recovery::congestion::Algorithm::Bbr,
                Congestion::Prague => recovery::congestion::Algorithm::Prague,
                Congestion::Auto => recovery::congestion::Algorithm::Auto,
            },
            key_update_after: self.key_update_after.unwrap_or(defaults.key_update_after),
            ..defaults
        }
        .build()
    }

    /// What is left out.
    pub(crate) fn techniques(&self) -> DisabledTechniques<'_> {
        DisabledTechniques(&self.without)
    }

    /// Asked for where it cannot be it is a mistake; not asked for it is on where it can be.
    fn careful_resume(&self) -> Result<Switch, transport::InvalidConfig> {
        let obstacle = if self.congestion == Congestion::Bbr {
            "--careful-resume on has no use with --congestion bbr, which measures each path anew: leave one of them out"
        } else if self.pacing == OnOff::Off {
            "--careful-resume on has no use with --pacing off, since what it sends at once is paced: leave one of them out"
        } else {
            return Ok(self.careful_resume.unwrap_or(OnOff::On).switch());
        };
        match self.careful_resume {
            Some(OnOff::On) => Err(transport::InvalidConfig(obstacle)),
            Some(OnOff::Off) | None => Ok(Switch::Off),
        }
    }

    fn pacing(&self) -> Pacing {
        let span = self.pacing_burst_us.map(base::time::Duration::from_micros);
        match self.pacing {
            OnOff::On => Pacing::On(Burst { packets: self.pacing_burst, span }),
            OnOff::Off => Pacing::Off,
        }
    }

    fn mtu(&self) -> MtuConfig {
        let mode = match self.mtu_search {
            MtuSearch::Fast => MtuMode::Fast,
            MtuSearch::Classic => MtuMode::Classic,
            MtuSearch::Off => MtuMode::Off,
        };
        let fixed = self.packet_size.filter(|_| mode == MtuMode::Off);
        MtuConfig { mode, floor: self.mtu_floor.or(fixed), ceiling: self.mtu_ceiling }
    }

    /// The UDP payload, in bytes, that a data path must be able to send: what was asked for, else what Ethernet takes. A ceiling
    /// demands nothing.
    pub(crate) fn demanded_payload(&self) -> u16 {
        const ETHERNET: u16 = 1_472;
        self.packet_size.unwrap_or(ETHERNET)
    }

    /// The TLS settings. Secrets are logged where SSLKEYLOGFILE says. What encrypts packets holds for the whole process from now on.
    pub(crate) fn tls(&self) -> TlsOptions {
        crypto::prefer(self.aead.library());
        TlsOptions {
            suites: match self.cipher {
                Cipher::All => SuiteChoice::All,
                Cipher::Aes128 => SuiteChoice::Only(Suite::Aes128Gcm),
                Cipher::Aes256 => SuiteChoice::Only(Suite::Aes256Gcm),
                Cipher::Chacha20 => SuiteChoice::Only(Suite::ChaCha20Poly1305),
            },
            key_exchange: if self.classic_key_exchange {
                KeyExchange::X25519
            } else {
                KeyExchange::PostQuantum
            },
            key_log: KeyLog::Environment,
            ..TlsOptions::default()
        }
    }
}

/// The version that a flag names: 1 or 2.
pub(crate) fn quic_version(number: u8) -> Version {
    if number == 2 { Version::V2 } else { Version::V1 }
}
