//! The sites of a configuration file, with their certificates loaded.

use config::fault::Fault;
use config::sites::Settings;
use server::Builder;
use server::credentials::Credentials;
use server::sites::Sites;
use std::path::Path;

/// Sites, and what clients are shown.
#[derive(Debug)]
pub(crate) struct ServedSites {
    pub(crate) sites: Sites,
    pub(crate) certificates: Certificates,
}

/// Certificates with the names for which clients get them; `None`: those without a certificate of their own, and none.
#[derive(Debug, Default)]
pub(crate) struct Certificates(Vec<(Vec<Option<String>>, Credentials)>);

impl ServedSites {
    /// Loads the certificates by `load`. `own` is that of the key "cert".
    ///
    /// # Errors
    /// What is wrong with those that cannot be used.
    pub(crate) fn load(
        settings: Settings,
        own: Option<&Path>,
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
                Ok(loaded) => certificates.push((of_site.names, loaded)),
                Err(what) => faults.push(Fault::new(of_site.span, what)),
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
    pub(crate) fn default_one(&self) -> Option<&Credentials> {
        self.of_any().next().or(self.0.first().map(|(_, of)| of))
    }

    /// The builder with all certificates but the default one, which it has.
    pub(crate) fn add_to(&self, builder: Builder) -> Builder {
        let of_any = self.of_any().skip(1).map(|of| of.identity.clone());
        let builder = of_any.fold(builder, Builder::additional_identity);
        let named = self.0.iter().flat_map(|(names, of)| names.iter().flatten().map(move |name| (name, of)));
        named.fold(builder, |builder, (name, of)| builder.identity_for(name, of.identity.clone()))
    }

    fn of_any(&self) -> impl Iterator<Item = &Credentials> {
        self.0.iter().filter(|(names, _)| names.contains(&None)).map(|(_, of)| of)
    }
}
