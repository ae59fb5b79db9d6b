//! Sites: several hosts of one server, and what each of them answers, by path and method.
//!
//! ```text
//! host ──▶ names.rs ──▶ a site ──▶ the first of its routes that takes path and method ──▶ its action ──▶ its error pages, its edits
//! ```
//!
//! | file | holds |
//! |---|---|
//! | site.rs | the settings: sites, routes, actions |
//! | live.rs | sites that are replaced while the server runs |
//! | names.rs | from a host to its site |
//! | prefix.rs | which paths begin with a prefix |
//! | template.rs | targets with parts of the request in them |
//! | allow.rs | which methods a path takes |
//! | cache_control.rs | cache-control by the name of what is asked for |
//! | edit.rs | what is changed of a response's fields |
//! | field.rs | names and values of fields |
//! | slots.rs | the numbers by which responses of sites are counted |
//! | head.rs | what is kept of a request |
//! | service.rs | routes that are answered by a service |
//! | served.rs | a request that a service answers |
//! | router.rs | the handler |
//!
//! Everything is compiled once, before it serves; threads share it. Each thread has a handler of files for each folder. A request
//! that waits for the disk keeps how far it has come, so that no step is taken twice.

mod allow;
mod cache_control;
mod edit;
mod field;
mod head;
mod live;
mod names;
mod prefix;
mod router;
mod served;
mod service;
mod site;
mod slots;
mod template;
#[cfg(test)]
mod tests;

pub use cache_control::{NamePattern, NamePatternError};
pub use edit::{Edit, EditedFields};
pub use field::{FieldError, field_name, field_value};
pub use live::LiveSites;
pub use names::{HostName, HostNameError};
pub use prefix::{Prefix, PrefixError};
pub(crate) use router::Router;
pub use service::{OfferedBy, Permit, RouteError, RouteFuture, RouteService, ServiceOf, UpgradeOffer};
pub use site::{Action, FilesOf, Fixed, Pages, Route, Site, Sites};
pub use template::{Template, TemplateError};
