//! Which methods a path takes: the field `allow` of responses with 405, and of those to OPTIONS. RFC 9110 §10.2.1, §9.3.7.

use super::site::{Action, Route};
use crate::response::{Response, Value};

/// The methods by which routes take `path`, and `own`; sorted, each once. `None` if no route takes it by some methods alone.
pub(super) fn methods(routes: &[Route], path: &[u8], own: &str) -> Option<String> {
    let takes =
        |route: &&Route| !matches!(route.action, Action::Rewrite(_)) && route.prefix.rest(path).is_some();
    let of_path = routes.iter().filter(takes).flat_map(|route| &route.methods);
    let mut methods: Vec<&str> = of_path.map(String::as_str).collect();
    if methods.is_empty() {
        return None;
    }
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.extend(own.split(", "));
    methods.sort_unstable();
    methods.dedup();
    Some(methods.join(", "))
}

/// The response of a route with the methods of `above`, the routes that are asked before it, if it says which ones there are.
pub(super) fn with_methods(mut response: Response, above: &[Route], path: &[u8]) -> Response {
    let own = response.fields.value("allow").and_then(|own| std::str::from_utf8(own).ok());
    if let Some(all) = own.and_then(|own| methods(above, path, own)) {
        response.fields.replace("allow", Value::from(all));
    }
    response
}
