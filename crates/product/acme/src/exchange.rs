//! One order: an account, the names proven, a certificate. RFC 8555 §7.

use crate::failure::Failure;
use crate::http::Http;
use crate::schedule::Pace;
use crate::settings::{Authority, Challenge, KeyKind, Order};
use crate::store::Store;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType,
    ExternalAccountKey, Identifier, KeyAuthorization, NewAccount, NewOrder, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use server::certificate::{Identity, Validity};
use server::challenges::{Challenges, Told};
use server::date::unix_now;

/// A token is longer than any of an authority's, in bytes.
const LONGEST_TOKEN: usize = 512;

/// What an order needs.
pub(crate) struct Exchange<'a> {
    pub(crate) order: &'a Order,
    pub(crate) store: &'a Store,
    pub(crate) challenges: &'a Challenges,
    pub(crate) pace: &'a Pace,
    pub(crate) http: &'a Http,
}

impl Exchange<'_> {
    /// Orders a certificate, in place of the one that `replaces` names, and keeps it.
    ///
    /// # Errors
    /// There is none. What is kept of before stays.
    pub(crate) async fn run(&self, replaces: Option<CertificateIdentifier<'static>>) -> Result<(), Failure> {
        let ran = match account(&self.order.authority, self.store, self.http).await {
            Ok(account) => self.with(&account, replaces).await,
            Err(failure) => Err(failure),
        };
        if ran.as_ref().is_err_and(Failure::is_of_account) {
            // The next attempt makes a new one.
            let _ = self.store.forget_account(&self.order.authority);
        }
        ran
    }

    async fn with(
        &self,
        account: &Account,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<(), Failure> {
        let identifiers: Vec<Identifier> = self.order.names.iter().cloned().map(Identifier::Dns).collect();
        let mut wanted = NewOrder::new(&identifiers);
        if let Some(profile) = &self.order.profile {
            wanted = wanted.profile(profile);
        }
        if let Some(replaces) = replaces {
            wanted = wanted.replaces(replaces);
        }
        let mut order =
            account.new_order(&wanted).await.map_err(|error| Failure::of("the order is refused", &error))?;
        let patience =
            RetryPolicy::new().initial_delay(self.pace.poll).backoff(1.5).timeout(self.pace.attempt);
        if order.state().status == OrderStatus::Pending {
            let told = self.prove(&mut order).await?;
            let ready = order.poll_ready(&patience).await;
            drop(told);
            match ready {
                Ok(OrderStatus::Ready | OrderStatus::Valid) => {}
                Ok(_) => return Err(self.why(&mut order).await),
                Err(error) => return Err(Failure::of("the names are not proven", &error)),
            }
        }
        let key = key(self.order.key)?;
        let request = self.request(&key)?;
        let refused = |error| Failure::of("no certificate is issued", &error);
        order.finalize_csr(&request).await.map_err(refused)?;
        let chain = order.poll_certificate(&patience).await.map_err(refused)?;
        let pem = key.serialize_pem() + &chain;
        self.judge(&pem)?;
        self.store.keep(self.order, &pem).map_err(|error| {
            let path = self.store.certificate(self.order);
            Failure::new(format!("cannot keep the certificate in {}: {error}", path.display()))
        })
    }

    /// Tells the server what to answer, and the authority to ask. What is answered ends with the result.
    async fn prove(&self, order: &mut instant_acme::Order) -> Result<Vec<Told>, Failure> {
        let of = |error: instant_acme::Error| Failure::of("the names cannot be proven", &error);
        let wanted = match self.order.challenge {
            Challenge::Http01 => ChallengeType::Http01,
            Challenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        };
        let (mut told, mut authorizations) = (Vec::new(), order.authorizations());
        while let Some(next) = authorizations.next().await {
            let mut authorization = next.map_err(of)?;
            match authorization.status {
                AuthorizationStatus::Pending => {}
                AuthorizationStatus::Valid => continue,
                status => return Err(Failure::new(format!("the authority says that a name is {status:?}"))),
            }
            let Some(mut challenge) = authorization.challenge(wanted.clone()) else {
                let name = self.order.challenge;
                return Err(Failure::new(format!("the authority has no challenge {name} for its names")));
            };
            let name = challenge.identifier().to_string();
            if !self.order.names.contains(&name) {
                return Err(Failure::new(format!(
                    "the authority wants {name} proven, which was not ordered"
                )));
            }
            told.push(self.tell(&name, &challenge)?);
            challenge.set_ready().await.map_err(|error| self.unproven(&name, &error))?;
        }
        Ok(told)
    }

    fn tell(&self, name: &str, challenge: &ChallengeHandle<'_>) -> Result<Told, Failure> {
        let authorization = challenge.key_authorization();
        match self.order.challenge {
            Challenge::TlsAlpn01 => {
                let (certificate, key) = validation_certificate(name, &authorization)?;
                let told = self.challenges.tell_certificate(name, certificate, key);
                told.map_err(|error| Failure::new(error.to_string()))
            }
            Challenge::Http01 => {
                let token = &challenge.token;
                let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                // RFC 8555 §8.3.
                if token.is_empty() || token.len() > LONGEST_TOKEN || !token.bytes().all(is_token) {
                    return Err(Failure::new("the authority's token is none"));
                }
                Ok(self.challenges.tell_text(token, authorization.as_str().to_owned()))
            }
        }
    }

    fn unproven(&self, name: &str, error: &instant_acme::Error) -> Failure {
        Failure::of(&format!("{name} is not proven by {}", self.order.challenge), error)
    }

    /// Why names are not proven, in the authority's words.
    async fn why(&self, order: &mut instant_acme::Order) -> Failure {
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let name = authorization.identifier().to_string();
            let Ok(state) = authorization.refresh().await else { continue };
            let problem = state.challenges.iter().find_map(|challenge| challenge.error.clone());
            if let Some(problem) = problem {
                return self.unproven(&name, &instant_acme::Error::Api(problem));
            }
        }
        Failure::new("the names are not proven, and the authority does not say why")
    }

    /// A certificate signing request with all names, DER.
    fn request(&self, key: &KeyPair) -> Result<Vec<u8>, Failure> {
        let mut params = CertificateParams::new(self.order.names.clone()).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(key).map_err(failed)?.der().to_vec())
    }

    /// Whether clients of the names will take what has come.
    fn judge(&self, pem: &str) -> Result<(), Failure> {
        let no_use = |why: String| Failure::new(format!("the authority's certificate is of no use: {why}"));
        let pem = pem.as_bytes();
        let checked = crypto::Identity::from_pem(pem, pem).map_err(|error| no_use(error.to_string()))?;
        if let Some(other) = self.order.names.iter().find(|name| !checked.is_for(name)) {
            return Err(no_use(format!("it is not for {other}")));
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let (Ok(chain), Ok(key)) = (chain, PrivateKeyDer::from_pem_slice(pem)) else {
            return Err(no_use("it is no PEM".to_owned()));
        };
        let identity = Identity { chain, key };
        match identity.validity(unix_now()) {
            validity @ (Validity::Expired { .. } | Validity::NotYet { .. }) => {
                Err(no_use(format!("it {validity}; is the clock of this machine right?")))
            }
            Validity::Good | Validity::Soon { .. } if identity.span_s().is_none() => {
                Err(no_use("it cannot be parsed".to_owned()))
            }
            Validity::Good | Validity::Soon { .. } => Ok(()),
        }
    }
}

fn failed(error: rcgen::Error) -> Failure {
    Failure::new(format!("cannot make a key or a request: {error}"))
}

fn key(kind: KeyKind) -> Result<KeyPair, Failure> {
    let made = match kind {
        KeyKind::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        KeyKind::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        KeyKind::Rsa2048 => KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256),
    };
    made.map_err(failed)
}

/// RFC 8737 §3: self-signed, for the name alone, with the digest in a critical extension.
fn validation_certificate(
    name: &str,
    authorization: &KeyAuthorization,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Failure> {
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new([name.to_owned()]).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(authorization.digest().as_ref())];
    let made = params.self_signed(&key).map_err(failed)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(Failure::new)?;
    Ok((made.der().clone(), key))
}

/// The account at an authority, made if need be.
pub(crate) async fn account(authority: &Authority, store: &Store, http: &Http) -> Result<Account, Failure> {
    let contact: Vec<String> = authority.contact.iter().map(|address| format!("mailto:{address}")).collect();
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let unkept = |error: std::io::Error| Failure::new(format!("cannot keep the account: {error}"));
    let builder = || Account::builder_with_http(Box::new(http.clone()));
    let kept = store.account(authority).and_then(|(credentials, contact)| {
        let read = serde_json::from_value::<AccountCredentials>(credentials.clone()).ok()?;
        Some((read, credentials, contact))
    });
    if let Some((credentials, again, told)) = kept {
        let step = "the account cannot be used";
        let account = builder().from_credentials(credentials).await;
        let account = account.map_err(|error| Failure::of(step, &error))?;
        if told != authority.contact {
            account.update_contacts(&contact).await.map_err(|error| Failure::of(step, &error))?;
            store.keep_account(authority, &again).map_err(unkept)?;
        }
        return Ok(account);
    }
    let external = authority.external.as_ref();
    let external = external.map(|external| ExternalAccountKey::new(external.id.clone(), &external.key));
    let wanted = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let made = builder().create(&wanted, authority.directory.clone(), external.as_ref()).await;
    let (account, credentials) = made.map_err(|error| Failure::of("there is no account", &error))?;
    let credentials = serde_json::to_value(&credentials).map_err(|error| unkept(error.into()))?;
    store.keep_account(authority, &credentials).map_err(unkept)?;
    Ok(account)
}
