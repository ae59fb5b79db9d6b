//! What the two ends begin with.

use crate::ends::End;
use crate::tls::{self, Certificate, SERVER_NAME};
use crate::world::World;
use crypto::{Roots, TlsOptions};
use std::sync::Arc;
use transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};

/// Where a server takes the steps of handshakes that take long.
#[derive(Clone, Copy)]
pub(crate) enum SlowSteps {
    Inline,
    Apart,
}

/// What an end begins with.
pub(crate) struct Setup {
    pub(crate) client: TransportConfig,
    pub(crate) server: TransportConfig,
    pub(crate) endpoint: EndpointConfig,
    pub(crate) client_tls: TlsOptions,
    pub(crate) server_tls: TlsOptions,
    pub(crate) roots: Roots,
    /// The server's certificate, and whether it gives slow steps of handshakes away.
    pub(crate) certificate: &'static Certificate,
    pub(crate) slow_steps: SlowSteps,
    /// How often the server's certificate is in its chain.
    pub(crate) chain: usize,
    /// The name that the client asks for.
    pub(crate) name: &'static str,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            endpoint: EndpointConfig::default(),
            client_tls: TlsOptions::default(),
            server_tls: TlsOptions::default(),
            roots: tls::servers().roots(),
            certificate: tls::servers(),
            slow_steps: SlowSteps::Inline,
            chain: 1,
            name: SERVER_NAME,
        }
    }
}

impl Setup {
    /// Both ends behave like this.
    pub(crate) fn both(transport: &TransportConfig) -> Setup {
        Setup { client: transport.clone(), server: transport.clone(), ..Setup::default() }
    }

    /// A client that has begun to connect; nothing has been sent.
    pub(crate) fn begin(self) -> World {
        let valid = |transport: TransportConfig| Arc::new(transport.build().expect("settings that can work"));
        let tls = tls::server(self.certificate, &self.server_tls, self.chain);
        let tls = match self.slow_steps {
            SlowSteps::Inline => tls,
            SlowSteps::Apart => tls.with_slow_steps_apart(),
        };
        let server = ServerConfig { tls, transport: valid(self.server) };
        let client = ClientConfig {
            tls: tls::client(&self.roots, &self.client_tls),
            transport: valid(self.client),
            token: Vec::new(),
        };
        let endpoint = Endpoint::new(self.endpoint, [2; 32]);
        let mut world = World::new(client, End::new(endpoint, Some(server)), self.name);
        world.connect();
        world
    }

    /// A client and a server whose handshake is confirmed at both ends.
    pub(crate) fn connected(self) -> World {
        let mut world = self.begin();
        world.run_until("the handshake", |world| {
            let ends = [&mut world.client, &mut world.server];
            ends.into_iter().all(|end| !end.peers.is_empty() && end.peer().connection.is_confirmed())
        });
        world
    }
}
