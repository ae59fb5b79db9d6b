//! The sites of a configuration file, with their certificates loaded.

use acme::{Order, Store, placeholder};
use config::fault::Fault;
use config::sites::Settings;
use server::Builder;
use server::credentials::Credentials;
use server::sites::Sites;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sites, and what clients are shown.
#[derive(Debug)]
pub(crate) struct ServedSites {
    pub(crate) sites: Sites,
    pub(crate) certificates: Certificates,
}

/// Certificates of sites.
#[derive(Debug, Default)]
pub(crate) struct Certificates(Vec<OfSite>);

/// A certificate with the names for which clients get it; `None`: those without a certificate of their own, and none.
#[derive(Debug)]
struct OfSite {
    names: Vec<Option<String>>,
    source: Source,
    credentials: Arc<Credentials>,
}

/// Where a certificate comes from.
#[derive(Clone, Debug)]
enum Source {
    /// The operator's file; the file of its key.
    File(PathBuf),
    /// It is ordered; until there is one, clients are shown a placeholder.
    Ordered(Store, Arc<Order>),
}

/// The certificate that has been ordered, or a placeholder.
fn ordered(store: &Store, order: &Order) -> Result<Credentials, String> {
    let identity = store.load(order).map_or_else(|| placeholder(order), Ok)?;
    Ok(Credentials { identity, certificate: store.certificate(order), development: None, warning: None })
}

impl ServedSites {
    /// Loads the certificates by `load`, those that are ordered from `state`. `own` is that of the key "cert".
    ///
    /// # Errors
    /// What is wrong with those that cannot be used.
    pub(crate) fn load(
        settings: Settings,
        own: Option<&Path>,
        state: Option<&Path>,
        load: impl Fn(&Path, &Path) -> Result<Credentials, String>,
    ) -> Result<ServedSites, Vec<Fault>> {
        let (mut certificates, mut faults) = (Vec::new(), Vec::new());
        for of_site in settings.certificates {
            let loaded = match own {
                Some(_) if of_site.names.contains(&None) => Err(
                    "clients that ask for no other name get the certificate of the key \"cert\": leave one of both out".to_owned()
                ),
                _ => load(&of_site.certificate, &of_site.key),
            };
            let file = of_site.certificate.display();
            let checked = loaded.and_then(|loaded| match unnamed(&of_site.names, &loaded) {
                None => Ok(loaded),
                Some(name) => Err(format!(
                    "the certificate in {file} is not for {name}, so clients refuse it: get one with the names of its site"
                )),
            });
            match checked {
                Ok(loaded) => certificates.push(OfSite {
                    names: of_site.names,
                    source: Source::File(of_site.key),
                    credentials: Arc::new(loaded),
                }),
                Err(what) => faults.push(Fault::new(of_site.span, what)),
            }
        }
        for config::sites::Ordered { names, order, span } in settings.orders {
            let store = state.map(Store::at).ok_or_else(|| {
                "there is no place for certificates that are ordered: name a folder with the key \"state-dir\"".to_owned()
            });
            let loaded = store.and_then(|store| Ok((ordered(&store, &order)?, store)));
            match loaded {
                Ok((loaded, store)) => certificates.push(OfSite {
                    names,
                    source: Source::Ordered(store, Arc::new(order)),
                    credentials: Arc::new(loaded),
                }),
                Err(what) => faults.push(Fault::new(span, what)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(ServedSites { sites: settings.sites, certificates: Certificates(certificates) })
    }
}

/// The first of `names` that clients do not find in the certificate.
fn unnamed<'n>(names: &'n [Option<String>], of: &Credentials) -> Option<&'n str> {
    names.iter().flatten().map(String::as_str).find(|name| !of.identity.is_for(name))
}

impl Certificates {
    /// The certificate of clients without one of their own: that of the first site for any name, else the first.
    pub(crate) fn default_one(&self) -> Option<&Arc<Credentials>> {
        self.of_any().next().or(self.0.first().map(|of| &of.credentials))
    }

    /// The builder with all certificates but the default one, which it has.
    pub(crate) fn add_to(&self, builder: Builder) -> Builder {
        let of_any = self.of_any().skip(1).map(|of| of.identity.clone());
        let builder = of_any.fold(builder, Builder::additional_identity);
        let named =
            self.0.iter().flat_map(|of| of.names.iter().flatten().map(move |name| (name, &of.credentials)));
        named.fold(builder, |builder, (name, of)| builder.identity_for(name, of.identity.clone()))
    }

    /// All of them, loaded from their files again.
    ///
    /// # Errors
    /// One line: one of them cannot be used.
    pub(crate) fn again(
        &self,
        load: impl Fn(&Path, &Path) -> Result<Credentials, String>,
    ) -> Result<Certificates, String> {
        let again = |of: &OfSite| {
            let loaded = match &of.source {
                Source::File(key) => load(&of.credentials.certificate, key)?,
                Source::Ordered(store, order) => ordered(store, order)?,
            };
            if let Some(name) = unnamed(&of.names, &loaded) {
                let file = loaded.certificate.display();
                return Err(format!("the certificate in {file} is not for {name}, so clients refuse it"));
            }
            let (names, source) = (of.names.clone(), of.source.clone());
            Ok(OfSite { names, source, credentials: Arc::new(loaded) })
        };
        self.0.iter().map(again).collect::<Result<_, _>>().map(Certificates)
    }

    /// Their files.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let key = |of: &OfSite| match &of.source {
            Source::File(key) => Some(key.clone()),
            Source::Ordered(..) => None,
        };
        self.0.iter().flat_map(move |of| [Some(of.credentials.certificate.clone()), key(of)]).flatten()
    }

    /// What is ordered.
    pub(crate) fn orders(&self) -> Vec<Order> {
        let order = |of: &OfSite| match &of.source {
            Source::File(_) => None,
            Source::Ordered(_, order) => Some(Order::clone(order)),
        };
        self.0.iter().filter_map(order).collect()
    }

    fn of_any(&self) -> impl Iterator<Item = &Arc<Credentials>> {
        self.0.iter().filter(|of| of.names.contains(&None)).map(|of| &of.credentials)
    }
}
