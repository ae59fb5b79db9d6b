//! Orders of certificates from an authority that keeps the rules, and from one that does not.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[path = "../authority/mod.rs"]
mod authority;

use acme::{Again, Challenge, Hooks, KeyKind, Manager, Order, Pace, Status, Store};
use authority::{Authority, Fault, fetch, handshake};
use server::challenges::Challenges;
use server::handler::FileOptions;
use server::{Running, Server, Versions};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(40);
const STEP: Duration = Duration::from_millis(20);

/// Attempts follow each other quickly.
const QUICK: Pace = Pace {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(1),
    attempt: Duration::from_secs(10),
    poll: Duration::from_millis(50),
    ask: Duration::from_secs(3_600),
};

/// A server of names, and its orders.
struct Site {
    manager: Manager,
    /// What was told, and how often a certificate has come.
    said: Arc<Mutex<Vec<String>>>,
    port: u16,
    store: Store,
    _running: Running,
}

impl Site {
    fn start(state: &Path, pace: Pace) -> Site {
        let challenges = Challenges::default();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = made.signing_key.serialize_pem();
        let identity = crypto::Identity::from_pem(made.cert.pem().as_bytes(), key.as_bytes()).unwrap();
        let running = Server::builder()
            .listen(([127, 0, 0, 1], 0).into())
            .versions(Versions::HTTP1 | Versions::HTTP2)
            .identity(identity)
            .challenges(challenges.clone())
            .bind()
            .unwrap()
            .serve_files(FileOptions::default())
            .unwrap();
        let (said, store) = (Arc::<Mutex<Vec<String>>>::default(), Store::at(state));
        let manager = Manager::new(store.clone(), challenges, pace);
        let say = || {
            let said = Arc::clone(&said);
            move |text: &str| said.lock().unwrap().push(text.to_owned())
        };
        let renewed = say();
        manager.hook(Hooks {
            note: Box::new(say()),
            warn: Box::new(say()),
            renewed: Box::new(move || renewed("renewed")),
            is_ending: Box::new(|| false),
        });
        Site { manager, said, port: running.local_addr().port(), store, _running: running }
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Waits until an order is as `is_so` says.
    fn wait(&self, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
        let mut waited = Duration::ZERO;
        loop {
            let status = self.manager.status();
            if let Some(found) = status.first().filter(|status| is_so(status)) {
                return found.clone();
            }
            assert!(waited < PATIENCE, "{what}: {status:?}, {:?}", self.said().last());
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }
}

fn order(authority: &Authority, place: &Path, names: &[&str], challenge: Challenge) -> Order {
    let roots = place.join("root.pem");
    std::fs::write(&roots, authority.root()).unwrap();
    let authority = acme::Authority {
        directory: authority.directory(),
        contact: vec!["a@example.org".into()],
        roots: Some(roots),
        external: None,
    };
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Order { names, authority, challenge, key: KeyKind::default(), profile: None }
}

/// Deleted, a server could have no certificate, or go on answering for an order that has ended.
#[test]
fn names_are_proven_by_either_challenge_and_a_certificate_is_kept() {
    for challenge in [Challenge::Http01, Challenge::TlsAlpn01] {
        let (authority, place) = (Authority::start(), TempDir::new().unwrap());
        let site = Site::start(place.path(), QUICK);
        let wanted = order(&authority, place.path(), &["a.example", "b.example"], challenge);
        site.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
        // The proof waits until the authority knows where the server is.
        std::thread::sleep(Duration::from_millis(300));
        assert!(site.store.load(&wanted).is_none(), "{challenge}");
        authority.plan(|plan| plan.port = Some(site.port));
        let status = site.wait("no certificate", |status| status.expires_s.is_some());
        assert_eq!((status.failures, status.error), (0, None), "{challenge}: {:?}", site.said());
        let identity = site.store.load(&wanted).unwrap();
        assert!(
            identity.is_for("a.example")
                && identity.is_for("b.example")
                && identity.certificates().count() == 2
        );
        assert_eq!((authority.issued(), site.manager.totals().issued), (1, 1));
        let said = site.said();
        assert!(
            said[0].starts_with("a certificate for a.example and b.example by localhost was issued, until "),
            "{said:?}"
        );
        assert_eq!(said[1..], ["renewed"]);
        assert_eq!(authority.contacts(), [serde_json::json!(["mailto:a@example.org"])]);
        // The order is over.
        assert_eq!(fetch(site.port, "a.example", "/.well-known/acme-challenge/token0-0"), None);
        assert_eq!(handshake(site.port, "a.example", "token0-0"), None);
        // The same orders again change nothing, and a new contact is told with the next order.
        site.manager.order(vec![wanted.clone()], Again::AtOnce).unwrap();
        let mut other = order(&authority, place.path(), &["c.example"], challenge);
        other.authority.contact = vec!["b@example.org".into()];
        site.manager.order(vec![other, wanted], Again::AtOnce).unwrap();
        site.wait("no other certificate", |status| {
            status.names == ["c.example"] && status.expires_s.is_some()
        });
        assert_eq!((authority.issued(), authority.accounts()), (2, 1));
        assert_eq!(authority.contacts()[1], serde_json::json!(["mailto:b@example.org"]));
    }
}

/// Deleted, an authority that is broken or hostile could leave a server with a certificate that clients refuse, stop its orders for
/// ever, or fill its memory.
#[test]
fn what_an_authority_does_wrong_is_told_and_tried_again() {
    let rows = [
        (Fault::Closes, Challenge::TlsAlpn01, "there is no account: "),
        (
            Fault::BadNonce,
            Challenge::TlsAlpn01,
            "there is no account: this nonce is not one of ours (badNonce)",
        ),
        (Fault::TornJson, Challenge::TlsAlpn01, "the authority's answer is no JSON as it should be"),
        (Fault::Endless, Challenge::TlsAlpn01, "there is no account: "),
        (Fault::NoAccount, Challenge::TlsAlpn01, "no such account (accountDoesNotExist)"),
        (
            Fault::OtherChallenge,
            Challenge::TlsAlpn01,
            "the authority has no challenge tls-alpn-01 for its names",
        ),
        (
            Fault::OtherIdentifier,
            Challenge::TlsAlpn01,
            "the authority wants other.example proven, which was not ordered",
        ),
        (Fault::BadToken, Challenge::Http01, "the authority's token is none"),
        (
            Fault::Invalid,
            Challenge::Http01,
            "a.example is not proven by http-01: what was found is not what was asked for (unauthorized)",
        ),
        (Fault::Invalid, Challenge::TlsAlpn01, "a.example is not proven by tls-alpn-01: what was found"),
        (
            Fault::OtherName,
            Challenge::TlsAlpn01,
            "the authority's certificate is of no use: it is not for a.example",
        ),
        (Fault::OtherKey, Challenge::TlsAlpn01, "the authority's certificate is of no use: "),
        (
            Fault::Expired,
            Challenge::TlsAlpn01,
            "the authority's certificate is of no use: it has expired, on ",
        ),
        (Fault::NoCertificate, Challenge::TlsAlpn01, "the authority's certificate is of no use: "),
    ];
    for (fault, challenge, why) in rows {
        let (authority, place) = (Authority::start(), TempDir::new().unwrap());
        let site = Site::start(place.path(), QUICK);
        authority.plan(|plan| (plan.fault, plan.port) = (Some(fault), Some(site.port)));
        let wanted = order(&authority, place.path(), &["a.example"], challenge);
        site.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
        let status = site.wait("no failure", |status| status.failures > 0);
        let error = status.error.unwrap();
        assert!(error.contains(why), "{fault:?}: {error}");
        assert!(
            site.said()[0]
                .starts_with(&format!("no certificate for a.example: {error}; the next attempt is in ")),
            "{:?}",
            site.said()
        );
        assert!(site.store.load(&wanted).is_none(), "{fault:?}");
        assert!(status.next_s > 0);
        authority.plan(|plan| plan.fault = None);
        let status = site.wait("no certificate", |status| status.expires_s.is_some());
        assert_eq!((status.failures, status.error), (0, None), "{fault:?}");
        assert!(site.manager.totals().failed >= 1);
    }
}

/// Deleted, one order of an authority that never answers could keep all others from being carried out.
#[test]
fn an_authority_that_never_comes_to_an_end_is_given_up() {
    let pace = Pace { attempt: Duration::from_secs(2), ..QUICK };
    for (fault, why) in
        [(Fault::Silent, "the authority was not done in time"), (Fault::NeverReady, "not done in time")]
    {
        let (authority, place) = (Authority::start(), TempDir::new().unwrap());
        let site = Site::start(place.path(), pace);
        authority.plan(|plan| (plan.fault, plan.port) = (Some(fault), Some(site.port)));
        let wanted = order(&authority, place.path(), &["a.example"], Challenge::TlsAlpn01);
        site.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
        let status = site.wait("no failure", |status| status.failures > 0);
        assert!(status.error.as_deref().is_some_and(|error| error.contains(why)), "{status:?}");
        authority.plan(|plan| plan.fault = None);
        site.wait("no certificate", |status| status.expires_s.is_some());
    }
}

/// Deleted, a server could ask an authority that has had enough, or that has just refused it, with each start.
#[test]
fn an_authority_says_when_to_ask_again_and_a_restart_does_not_change_that() {
    let (authority, place) = (Authority::start(), TempDir::new().unwrap());
    let site = Site::start(place.path(), QUICK);
    authority.plan(|plan| (plan.fault, plan.port) = (Some(Fault::RateLimited(5_000)), Some(site.port)));
    let wanted = order(&authority, place.path(), &["a.example"], Challenge::TlsAlpn01);
    site.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
    let status = site.wait("no failure", |status| status.failures > 0);
    let now = server::date::unix_now();
    assert!((now + 4_900..now + 5_001).contains(&status.next_s), "{status:?} at {now}");
    assert_eq!(status.error.as_deref(), Some("the order is refused: too many orders (rateLimited)"));
    authority.plan(|plan| plan.fault = None);
    // Without an end to what is kept, a wrong clock would end orders for ever.
    let patient = Pace { longest: Duration::from_secs(100_000), ..QUICK };
    let again = Site::start(place.path(), patient);
    again.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
    let known = again.wait("no status", |_| true);
    assert_eq!((known.failures, known.next_s), (1, status.next_s));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(authority.ordered(), 0);
    // An operator who reloads has mended something.
    authority.plan(|plan| plan.port = Some(again.port));
    again.manager.order(vec![wanted], Again::AtOnce).unwrap();
    again.wait("no certificate", |status| status.expires_s.is_some());
}

/// Deleted, servers that share a folder could each order, which authorities limit, and overwrite each other's certificates.
#[test]
fn servers_that_share_a_folder_order_once() {
    let (authority, place) = (Authority::start(), TempDir::new().unwrap());
    let sites = [(); 3].map(|()| Site::start(place.path(), QUICK));
    let wanted = order(&authority, place.path(), &["a.example"], Challenge::Http01);
    sites[0].manager.order(vec![wanted.clone()], Again::InTime).unwrap();
    let mut waited = Duration::ZERO;
    while authority.ordered() == 0 {
        assert!(waited < PATIENCE, "{:?}", sites[0].said());
        std::thread::sleep(STEP);
        waited += STEP;
    }
    sites[1..].iter().for_each(|site| site.manager.order(vec![wanted.clone()], Again::InTime).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    authority.plan(|plan| plan.port = Some(sites[0].port));
    for site in &sites {
        let status = site.wait("no certificate", |status| status.expires_s.is_some());
        assert_eq!(status.failures, 0);
        assert!(site.said().contains(&"renewed".to_owned()), "{:?}", site.said());
    }
    assert_eq!(authority.ordered(), 1);
    // One that starts later finds it.
    let later = Site::start(place.path(), QUICK);
    later.manager.order(vec![wanted], Again::InTime).unwrap();
    assert!(later.wait("no certificate", |_| true).expires_s.is_some());
    assert_eq!(authority.ordered(), 1);
}

/// Deleted, a certificate could expire.
#[test]
fn certificates_are_renewed_after_two_thirds_of_their_time() {
    let (authority, place) = (Authority::start(), TempDir::new().unwrap());
    let site = Site::start(place.path(), QUICK);
    authority.plan(|plan| (plan.lifetime, plan.port) = (Duration::from_secs(9), Some(site.port)));
    let wanted = order(&authority, place.path(), &["a.example"], Challenge::TlsAlpn01);
    site.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
    let first = site.wait("no certificate", |status| status.expires_s.is_some());
    let ends = first.expires_s.unwrap();
    assert!((ends - 4..ends - 2).contains(&first.next_s), "{first:?}");
    // The certificate in use stays while the authority is down.
    authority.plan(|plan| plan.fault = Some(Fault::Closes));
    site.wait("no failure", |status| status.failures > 0);
    assert!(site.store.load(&wanted).is_some());
    authority.plan(|plan| plan.fault = None);
    let second = site.wait("no renewal", |status| status.expires_s > first.expires_s);
    assert!(second.failures == 0 && authority.issued() == 2, "{second:?}");
    assert_eq!(site.said().iter().filter(|text| *text == "renewed").count(), 2);
}

/// Deleted, certificates that an authority must revoke would be served until they are due. RFC 9773.
#[test]
fn an_authority_may_want_a_certificate_renewed_early() {
    let (authority, place) = (Authority::start(), TempDir::new().unwrap());
    let site = Site::start(place.path(), Pace { ask: Duration::from_secs(1), ..QUICK });
    authority.plan(|plan| plan.port = Some(site.port));
    let wanted = order(&authority, place.path(), &["a.example"], Challenge::TlsAlpn01);
    site.manager.order(vec![wanted.clone()], Again::InTime).unwrap();
    let first = site.wait("no certificate", |status| status.expires_s.is_some());
    // It is due in two months, until the authority says otherwise: to one that starts anew, since it did not know the wish before.
    site.manager.order(Vec::new(), Again::InTime).unwrap();
    authority.plan(|plan| plan.renewal = Some(Duration::from_secs(1)));
    let again = Site::start(place.path(), Pace { ask: Duration::from_secs(1), ..QUICK });
    authority.plan(|plan| plan.port = Some(again.port));
    again.manager.order(vec![wanted], Again::InTime).unwrap();
    again.wait("no renewal", |status| status.expires_s > first.expires_s);
    assert!(authority.asked_for_renewal() > 0 && authority.replaced() == 1, "{:?}", again.said());
}
