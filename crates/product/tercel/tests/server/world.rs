//! A server of a service, and clients that trust it.

use http::Response;
use std::time::Duration;
use tercel::client::{Family, HttpChoice};
use tercel::tls::{Identity, Roots};
use tercel::{Body, Builder, Client, HttpService, Running, Server};

/// The machine may be busy; nothing here takes a second on an idle one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// All versions.
pub(crate) const VERSIONS: [HttpChoice; 3] = [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3];

/// A server and who trusts it.
pub(crate) struct World {
    pub(crate) server: Running,
    certificate: Vec<u8>,
}

impl World {
    pub(crate) fn new(service: impl HttpService + Send) -> World {
        World::by(|builder| builder.serve(service).unwrap())
    }

    /// With settings of the test's own.
    pub(crate) fn by(serve: impl FnOnce(Builder) -> Running) -> World {
        let names = ["localhost", "127.0.0.1", "127.0.0.2", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = made.cert.pem().into_bytes();
        let identity = Identity::from_pem(&certificate, made.signing_key.serialize_pem().as_bytes());
        let builder = Server::builder().listen("127.0.0.1:0".parse().unwrap()).identity(identity.unwrap());
        World { server: serve(builder), certificate }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.local_addr().port())
    }

    /// A client with settings of the test's own.
    pub(crate) fn builder(&self, http: HttpChoice) -> tercel::client::Builder {
        let builder = Client::builder().roots(Roots::Pem(self.certificate.clone()));
        builder.http(http).family(Family::Any)
    }

    pub(crate) fn client(&self, http: HttpChoice) -> Client {
        self.builder(http).build().unwrap()
    }
}

/// The whole content of a response.
pub(crate) async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect(1 << 20).await.unwrap().to_vec()).unwrap()
}
