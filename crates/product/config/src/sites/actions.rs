//! The actions of routes.

use super::folders::folder;
use super::proxies::proxy;
use super::uploads::upload;
use super::{Builder, OfSite};
use crate::fault::Span;
use crate::read::{Table, Value};
use server::sites::{Action, Edit, Fixed, Template};

/// The keys of actions. A route has one of them.
const ACTIONS: [&str; 6] = ["files", "redirect", "rewrite", "respond", "proxy", "upload"];

/// Statuses by which a client goes elsewhere.
const REDIRECTS: [i64; 5] = [301, 302, 303, 307, 308];

/// What the route does; `None` if that cannot be said.
pub(super) fn action(builder: &mut Builder<'_>, table: &Table, of_site: &OfSite<'_>) -> Option<Action> {
    let mut given = table.entries.iter().filter(|entry| {
        ACTIONS.contains(&entry.name.as_str()) && !matches!(entry.item.value, Value::Switch(false))
    });
    let Some(first) = given.next() else {
        builder.note(
            table.span.clone(),
            "a route has an action: files, redirect, rewrite, respond, proxy or upload",
        );
        return None;
    };
    if let Some(second) = given.next() {
        let what =
            format!("a route has one action, and this one has \"{}\" already: write two routes", first.name);
        builder.note(second.span.clone(), what);
    }
    match first.name.as_str() {
        "files" => files(builder, table, of_site),
        "redirect" => redirect(builder, table.table("redirect")?),
        "rewrite" => {
            let (text, span) = table.text("rewrite")?;
            foreign(builder, text, &span);
            let template =
                Template::path(text).map_err(|error| builder.note(span, format!("\"{text}\": {error}")));
            Some(Action::Rewrite(template.ok()?))
        }
        "proxy" => proxy(builder, table.table("proxy")?),
        "upload" => upload(builder, table, of_site),
        _ => respond(builder, table),
    }
}

fn files(builder: &mut Builder<'_>, table: &Table, of_site: &OfSite<'_>) -> Option<Action> {
    let none = Table::default();
    let own = table.table("files").unwrap_or(&none);
    if own.get("root").is_none() && of_site.table.get("root").is_none() {
        let span = table.place("files").unwrap_or_default();
        builder.note(
            span,
            "files of which folder? Give the site a root, or the route: files = { root = \"FOLDER\" }",
        );
        return None;
    }
    if own.entries.is_empty() {
        return Some(Action::Files(of_site.folder.as_ref()?.files.clone()));
    }
    Some(Action::Files(folder(builder, own, Some(of_site.table))?.files))
}

fn redirect(builder: &mut Builder<'_>, table: &Table) -> Option<Action> {
    let (status, span) = table.integer("status", 307);
    if !REDIRECTS.contains(&status) {
        builder
            .note(span, format!("{status} leads nowhere: give 301 or 308 for good, 302, 303 or 307 for now"));
    }
    let (text, span) = table.text("to")?;
    foreign(builder, text, &span);
    let to = Template::url(text).map_err(|error| builder.note(span, format!("\"{text}\": {error}"))).ok()?;
    Some(Action::Redirect { status: u16::try_from(status).ok()?, to })
}

/// Notes variables of nginx, which would go out as they are.
fn foreign(builder: &mut Builder<'_>, text: &str, span: &Span) {
    const VARIABLES: [&str; 8] =
        ["$host", "$http_host", "$server_name", "$request_uri", "$uri", "$args", "$is_args", "$1"];
    if let Some(name) = VARIABLES.iter().find(|name| text.contains(**name)) {
        let what = format!(
            "\"{text}\": {name} is a variable of nginx: use {{host}}, {{path}}, {{rest}} or {{query}}"
        );
        builder.note(span.clone(), what);
    }
}

fn respond(builder: &mut Builder<'_>, route: &Table) -> Option<Action> {
    let table = route.table("respond")?;
    let (status, span) = table.integer("status", 200);
    if REDIRECTS.contains(&status) && route.get("headers").is_none() {
        let what = format!(
            "a client that gets {status} is told where to go: write redirect = {{ to = \"/PATH\", status = {status} }}"
        );
        builder.note(span, what);
    }
    let (body, span) = table.text("body").unwrap_or_default();
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        builder.note(span, format!("a response with status {status} has no content: leave \"body\" out"));
    }
    let (content_type, span) = table.text("content-type").unwrap_or(("text/plain; charset=utf-8", 0..0));
    if let Err(error) = Edit::default().set("content-type", content_type) {
        builder.note(span, error.to_string());
    } else if !content_type.contains('/') {
        builder.note(span, format!("\"{content_type}\" is no media type: write one such as \"text/html\""));
    }
    let content = body.as_bytes().to_vec().into();
    Some(Action::Fixed(Fixed {
        status: u16::try_from(status).ok()?,
        content_type: content_type.to_owned(),
        content,
    }))
}
