//! A certificate authority of ACME for tests (RFC 8555), over TLS at a port of this machine. It does what it is told to do wrong.
//!
//! It proves names as real ones do, but at the port of the test's server, and issues certificates of its own root. It checks nonces,
//! URLs and the account, and no signatures: `tests/acme/run` has Pebble do that.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, PublicKeyData,
    SignatureAlgorithm,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection, SignatureScheme,
};
use serde_json::{Value, json};
use server::date::unix_now;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// What the authority does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It takes connections and ends them.
    Closes,
    /// It takes connections and says nothing.
    Silent,
    /// No nonce is right.
    BadNonce,
    /// It has had enough orders, and says for how many seconds.
    RateLimited(u64),
    /// Its JSON breaks off.
    TornJson,
    /// Its responses never end.
    Endless,
    /// It has other challenges only.
    OtherChallenge,
    /// It wants another name proven.
    OtherIdentifier,
    /// Its tokens are paths.
    BadToken,
    /// It finds no name proven.
    Invalid,
    /// It never comes to a result.
    NeverReady,
    /// It issues certificates for another name.
    OtherName,
    /// It issues certificates for another key.
    OtherKey,
    /// It issues certificates that have expired.
    Expired,
    /// It issues what is no certificate.
    NoCertificate,
    /// It does not know the account.
    NoAccount,
}

/// What it does.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) fault: Option<Fault>,
    /// How long its certificates are valid.
    pub(crate) lifetime: Duration,
    /// When it wants certificates renewed, from now on; `None`: it does not say.
    pub(crate) renewal: Option<Duration>,
    /// Where the server is whose names are proven. Until it is known, the proof waits.
    pub(crate) port: Option<u16>,
}

#[derive(Default)]
struct Order {
    names: Vec<String>,
    /// Of each name.
    is_proven: Vec<Option<bool>>,
    chain: Option<String>,
    replaces: Option<String>,
}

struct State {
    plan: Plan,
    nonces: HashSet<String>,
    count: usize,
    /// The thumbprints of keys, by the URLs of accounts.
    accounts: HashMap<String, String>,
    contacts: Vec<Value>,
    orders: Vec<Order>,
    asked_for_renewal: usize,
}

/// The authority. It ends with the process.
#[derive(Clone)]
pub(crate) struct Authority(Arc<Shared>);

struct Shared {
    port: u16,
    root: String,
    issuer: Issuer<'static, KeyPair>,
    tls: Arc<ServerConfig>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Authority {
    pub(crate) fn start() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let root = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&own, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(own.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan =
            Plan { fault: None, lifetime: Duration::from_secs(90 * 86_400), renewal: None, port: None };
        let state = State {
            plan,
            nonces: HashSet::new(),
            count: 0,
            accounts: HashMap::new(),
            contacts: Vec::new(),
            orders: Vec::new(),
            asked_for_renewal: 0,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let authority =
            Authority(Arc::new(Shared { port, root, issuer, tls: Arc::new(tls), state, changed }));
        let serving = authority.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        authority
    }

    pub(crate) fn directory(&self) -> String {
        self.url("/directory")
    }

    /// Its root certificate, which is that of its own server too, PEM.
    pub(crate) fn root(&self) -> &str {
        &self.0.root
    }

    pub(crate) fn plan(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.state().plan);
        self.0.changed.notify_all();
    }

    /// How many certificates were issued, in orders.
    pub(crate) fn issued(&self) -> usize {
        self.state().orders.iter().filter(|order| order.chain.is_some()).count()
    }

    pub(crate) fn ordered(&self) -> usize {
        self.state().orders.len()
    }

    /// How many orders named the certificate that they replace.
    pub(crate) fn replaced(&self) -> usize {
        self.state().orders.iter().filter(|order| order.replaces.is_some()).count()
    }

    pub(crate) fn contacts(&self) -> Vec<Value> {
        self.state().contacts.clone()
    }

    pub(crate) fn accounts(&self) -> usize {
        self.state().accounts.len()
    }

    pub(crate) fn asked_for_renewal(&self) -> usize {
        self.state().asked_for_renewal
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn fault(&self) -> Option<Fault> {
        self.state().plan.fault
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.0.port)
    }

    fn serve(&self, stream: TcpStream) {
        match self.fault() {
            Some(Fault::Closes) => return,
            Some(Fault::Silent) => return std::thread::sleep(PATIENCE),
            _ => {}
        }
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let session = ServerConnection::new(Arc::clone(&self.0.tls)).unwrap();
        let mut stream = BufReader::new(rustls::StreamOwned::new(session, stream));
        let Ok((method, path, content)) = request(&mut stream) else { return };
        let Reply { status, location, retry_after, content: mut answer } =
            self.answer(&method, &path, &content);
        let mut head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\n");
        for (name, value) in [("location", location), ("retry-after", retry_after)] {
            head += &value.map(|value| format!("{name}: {value}\r\n")).unwrap_or_default();
        }
        if method != "GET" {
            head += &format!("replay-nonce: {}\r\n", self.nonce());
        }
        let fault = self.fault();
        if fault == Some(Fault::TornJson) && method == "POST" {
            answer.truncate(answer.len() / 2);
        }
        let mut stream = stream.into_inner();
        if fault == Some(Fault::Endless) && method == "POST" {
            let _ = stream.write_all(format!("{head}\r\n").as_bytes());
            while stream.write_all(&[b' '; 16_384]).is_ok() {}
            return;
        }
        head += &format!("content-length: {}\r\n\r\n", answer.len());
        let _ = stream.write_all(&[head.as_bytes(), answer.as_bytes()].concat());
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }

    fn nonce(&self) -> String {
        let mut state = self.state();
        state.count += 1;
        let nonce = format!("nonce{}", state.count);
        state.nonces.insert(nonce.clone());
        nonce
    }

    fn answer(&self, method: &str, path: &str, content: &[u8]) -> Reply {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (method, parts.as_slice()) {
            ("GET", ["directory"]) => Reply::json(200, &self.directory_content()),
            ("GET", ["renewal", _]) => self.renewal(),
            ("HEAD", ["nonce"]) => Reply::text(200, ""),
            ("POST", parts) => self.posted(path, parts, content),
            _ => Reply::problem(404, "malformed", "what?"),
        }
    }

    fn directory_content(&self) -> Value {
        let mut all = json!({
            "newNonce": self.url("/nonce"),
            "newAccount": self.url("/account"),
            "newOrder": self.url("/order"),
            "revokeCert": self.url("/revoke"),
            "keyChange": self.url("/key"),
        });
        if self.state().plan.renewal.is_some() {
            all["renewalInfo"] = json!(self.url("/renewal"));
        }
        all
    }

    fn renewal(&self) -> Reply {
        let mut state = self.state();
        state.asked_for_renewal += 1;
        let after = state.plan.renewal.unwrap_or_default();
        let at = |seconds: u64| {
            // Days of this century, well enough.
            let (days, rest) = (seconds / 86_400, seconds % 86_400);
            let (year, month, day) = civil(days);
            format!(
                "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
                rest / 3_600,
                rest / 60 % 60,
                rest % 60
            )
        };
        let start = unix_now() + after.as_secs();
        let window = json!({ "suggestedWindow": { "start": at(start), "end": at(start + 1) } });
        Reply { retry_after: Some("3600".into()), ..Reply::json(200, &window) }
    }

    fn posted(&self, path: &str, parts: &[&str], content: &[u8]) -> Reply {
        let Ok(message) = serde_json::from_slice::<Value>(content) else {
            return Reply::problem(400, "malformed", "this is no JSON");
        };
        let part = |name: &str| {
            let text = URL_SAFE_NO_PAD.decode(message[name].as_str().unwrap_or_default()).unwrap_or_default();
            serde_json::from_slice::<Value>(&text).unwrap_or(Value::Null)
        };
        let (protected, payload) = (part("protected"), part("payload"));
        let nonce = protected["nonce"].as_str().unwrap_or_default();
        let is_known = self.state().nonces.remove(nonce);
        if !is_known || self.fault() == Some(Fault::BadNonce) {
            return Reply::problem(400, "badNonce", "this nonce is not one of ours");
        }
        if protected["url"] != json!(self.url(path)) {
            return Reply::problem(403, "unauthorized", "this is signed for another URL");
        }
        if parts == ["account"] {
            return self.account(&protected["jwk"], &payload);
        }
        let kid = protected["kid"].as_str().unwrap_or_default();
        let thumbprint = self.state().accounts.get(kid).cloned();
        let thumbprint = thumbprint.filter(|_| self.fault() != Some(Fault::NoAccount));
        let Some(thumbprint) = thumbprint else {
            return Reply::problem(400, "accountDoesNotExist", "no such account");
        };
        let number =
            |at: usize| parts.get(at).and_then(|part| part.parse::<usize>().ok()).unwrap_or(usize::MAX);
        match parts {
            ["account", _] => {
                self.state().contacts.push(payload["contact"].clone());
                Reply::json(200, &json!({ "status": "valid" }))
            }
            ["order"] => self.new_order(&payload),
            ["order", _] => self.order(number(1), 200),
            ["authorization", _, _] => self.authorization(number(1), number(2)),
            ["challenge", _, _] => self.prove(number(1), number(2), &thumbprint),
            ["challenge", _, _, "http"] => self.prove_http(number(1), number(2), &thumbprint),
            ["finalize", _] => self.finalize(number(1), &payload),
            ["certificate", _] => {
                let state = self.state();
                Reply::text(200, state.orders[number(1)].chain.as_deref().unwrap_or_default())
            }
            _ => Reply::problem(404, "malformed", "what?"),
        }
    }

    fn account(&self, jwk: &Value, payload: &Value) -> Reply {
        if payload["termsOfServiceAgreed"] != json!(true) {
            return Reply::problem(403, "userActionRequired", "agree to the terms");
        }
        let (x, y) = (jwk["x"].as_str().unwrap_or_default(), jwk["y"].as_str().unwrap_or_default());
        let key = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let mut state = self.state();
        let url = self.url(&format!("/account/{}", state.accounts.len()));
        state.accounts.insert(url.clone(), URL_SAFE_NO_PAD.encode(Sha256::digest(key.as_bytes())));
        state.contacts.push(payload["contact"].clone());
        Reply { location: Some(url), ..Reply::json(201, &json!({ "status": "valid" })) }
    }

    fn new_order(&self, payload: &Value) -> Reply {
        if let Some(Fault::RateLimited(seconds)) = self.fault() {
            let problem = Reply::problem(429, "rateLimited", "too many orders");
            return Reply { retry_after: Some(seconds.to_string()), ..problem };
        }
        let names = payload["identifiers"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> =
            names.iter().filter_map(|name| name["value"].as_str()).map(str::to_owned).collect();
        let number = {
            let mut state = self.state();
            let is_proven = vec![None; names.len()];
            let replaces = payload["replaces"].as_str().map(str::to_owned);
            state.orders.push(Order { names, is_proven, replaces, chain: None });
            state.orders.len() - 1
        };
        Reply { location: Some(self.url(&format!("/order/{number}"))), ..self.order(number, 201) }
    }

    fn order(&self, number: usize, status: u16) -> Reply {
        let state = self.state();
        let order = &state.orders[number];
        let is_ready = order.is_proven.iter().all(|proven| *proven == Some(true));
        let word = match () {
            () if order.is_proven.contains(&Some(false)) => "invalid",
            () if order.chain.is_some() => "valid",
            () if is_ready && state.plan.fault != Some(Fault::NeverReady) => "ready",
            () => "pending",
        };
        let url = |what: &str, place: usize| self.url(&format!("/{what}/{number}/{place}"));
        let identifiers = order.names.iter().map(|name| json!({ "type": "dns", "value": name }));
        let mut content = json!({
            "status": word,
            "identifiers": identifiers.collect::<Vec<_>>(),
            "authorizations": (0..order.names.len()).map(|place| url("authorization", place)).collect::<Vec<_>>(),
            "finalize": self.url(&format!("/finalize/{number}")),
        });
        if order.chain.is_some() {
            content["certificate"] = json!(self.url(&format!("/certificate/{number}")));
        }
        if let Some(replaces) = &order.replaces {
            content["replaces"] = json!(replaces);
        }
        drop(state);
        Reply::json(status, &content)
    }

    fn token(&self, number: usize, place: usize) -> String {
        if self.fault() == Some(Fault::BadToken) {
            "../../x".into()
        } else {
            format!("token{number}-{place}")
        }
    }

    fn challenge(&self, number: usize, place: usize, kind: &str) -> Value {
        let proven = self.state().orders[number].is_proven[place];
        let suffix = if kind == "http-01" { "/http" } else { "" };
        let mut content = json!({
            "type": if self.fault() == Some(Fault::OtherChallenge) { "dns-01" } else { kind },
            "url": self.url(&format!("/challenge/{number}/{place}{suffix}")),
            "token": self.token(number, place),
            "status": proven.map_or("pending", |proven| if proven { "valid" } else { "invalid" }),
        });
        if proven == Some(false) {
            let detail = "what was found is not what was asked for";
            content["error"] = json!({ "type": "urn:ietf:params:acme:error:unauthorized", "detail": detail });
        }
        content
    }

    fn authorization(&self, number: usize, place: usize) -> Reply {
        let (mut name, proven) = {
            let state = self.state();
            (state.orders[number].names[place].clone(), state.orders[number].is_proven[place])
        };
        if self.fault() == Some(Fault::OtherIdentifier) {
            name = "other.example".into();
        }
        Reply::json(
            200,
            &json!({
                "status": proven.map_or("pending", |proven| if proven { "valid" } else { "invalid" }),
                "identifier": { "type": "dns", "value": name },
                "challenges": [
                    self.challenge(number, place, "http-01"),
                    self.challenge(number, place, "tls-alpn-01"),
                ],
            }),
        )
    }

    /// By a handshake.
    fn prove(&self, number: usize, place: usize, thumbprint: &str) -> Reply {
        let (port, name) = self.place_of(number, place);
        let key = format!("{}.{thumbprint}", self.token(number, place));
        self.proven(number, place, handshake(port, &name, &key).is_some());
        Reply::json(200, &self.challenge(number, place, "tls-alpn-01"))
    }

    fn prove_http(&self, number: usize, place: usize, thumbprint: &str) -> Reply {
        let (port, name) = self.place_of(number, place);
        let token = self.token(number, place);
        let found = fetch(port, &name, &format!("/.well-known/acme-challenge/{token}"));
        self.proven(number, place, found == Some(format!("{token}.{thumbprint}")));
        Reply::json(200, &self.challenge(number, place, "http-01"))
    }

    fn proven(&self, number: usize, place: usize, is_proven: bool) {
        let is_proven = is_proven && self.fault() != Some(Fault::Invalid);
        self.state().orders[number].is_proven[place] = Some(is_proven);
    }

    /// Where the server is, once that is known, and the name to prove.
    fn place_of(&self, number: usize, place: usize) -> (u16, String) {
        let state = self.state();
        let (state, _) =
            self.0.changed.wait_timeout_while(state, PATIENCE, |state| state.plan.port.is_none()).unwrap();
        (state.plan.port.unwrap_or_default(), state.orders[number].names[place].clone())
    }

    fn finalize(&self, number: usize, payload: &Value) -> Reply {
        let request = URL_SAFE_NO_PAD.decode(payload["csr"].as_str().unwrap_or_default()).unwrap_or_default();
        let Some(key) = public_key(&request) else {
            return Reply::problem(400, "badCSR", "there is no key of P-256 in it");
        };
        let (names, fault, lifetime) = {
            let state = self.state();
            (state.orders[number].names.clone(), state.plan.fault, state.plan.lifetime)
        };
        let names = if fault == Some(Fault::OtherName) { vec!["other.example".into()] } else { names };
        let mut params = CertificateParams::new(names).unwrap();
        let now = Duration::from_secs(unix_now());
        let begins =
            if fault == Some(Fault::Expired) { now - Duration::from_secs(100) - lifetime } else { now };
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        (params.not_before, params.not_after) = (epoch + begins, epoch + begins + lifetime);
        params.use_authority_key_identifier_extension = true;
        let other = KeyPair::generate().unwrap();
        let key = if fault == Some(Fault::OtherKey) { Key(other.der_bytes().to_vec()) } else { Key(key) };
        let issued = params.signed_by(&key, &self.0.issuer).unwrap().pem();
        let chain = match fault {
            Some(Fault::NoCertificate) => "nothing\n".to_owned(),
            _ => issued + &self.0.root,
        };
        self.state().orders[number].chain = Some(chain);
        self.order(number, 200)
    }
}

struct Reply {
    status: u16,
    location: Option<String>,
    retry_after: Option<String>,
    content: String,
}

impl Reply {
    fn text(status: u16, content: &str) -> Reply {
        Reply { status, location: None, retry_after: None, content: content.to_owned() }
    }

    fn json(status: u16, content: &Value) -> Reply {
        Reply::text(status, &content.to_string())
    }

    fn problem(status: u16, kind: &str, detail: &str) -> Reply {
        Reply::json(
            status,
            &json!({ "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail }),
        )
    }
}

/// A public key of P-256.
struct Key(Vec<u8>);

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

/// Of a certificate signing request.
fn public_key(request: &[u8]) -> Option<Vec<u8>> {
    // The curve, and the head of a bit string of 65 bytes.
    const BEFORE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00];
    let at = request.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    request.get(at..at + 65).map(<[u8]>::to_vec)
}

/// Method, path, content.
fn request(stream: &mut impl io::BufRead) -> io::Result<(String, String, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut content = vec![0; length];
    stream.read_exact(&mut content)?;
    Ok((method, path, content))
}

/// What a server answers in plain text with 200.
pub(crate) fn fetch(port: u16, host: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, content) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| content.to_owned())
}

/// Asks for `acme-tls/1` as RFC 8737 §3 says. `Some` if the digest of `key` is in the certificate.
pub(crate) fn handshake(port: u16, name: &str, key: &str) -> Option<()> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).ok()?;
    let mut session = ClientConnection::new(Arc::new(config), name).ok()?;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    while session.is_handshaking() {
        session.complete_io(&mut stream).ok()?;
    }
    let shown = session.peer_certificates()?.first()?;
    // id-pe-acmeIdentifier, critical, an octet string in an octet string.
    let mut extension = vec![
        0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x1f, 0x01, 0x01, 0xff, 0x04, 0x22, 0x04, 0x20,
    ];
    extension.extend_from_slice(&Sha256::digest(key.as_bytes()));
    let is_there = shown.windows(extension.len()).any(|window| window == extension);
    (session.alpn_protocol() == Some(b"acme-tls/1") && is_there).then_some(())
}

/// Trusts every certificate.
#[derive(Debug)]
struct Any;

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256]
    }
}

/// Year, month and day of a number of days since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let (mut year, mut left) = (1970, days);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    loop {
        let of_year = if is_leap(year) { 366 } else { 365 };
        if left < of_year {
            break;
        }
        (year, left) = (year + 1, left - of_year);
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for of_month in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < of_month {
            break;
        }
        (month, left) = (month + 1, left - of_month);
    }
    (year, month, left + 1)
}
