//! Methods inside a crate: a call of an inherent method is an arrow to the module of the `impl` block that defines it.
//!
//! What is read is words, not types. A value's type is known where it is `self` (`this` counts as `self`), a parameter of a
//! function or closure with a type, a `let` of such a value, a field of a struct, or what a method of the crate returns;
//! references, `Box`, `Arc`, `Rc`, `Option` and `Result` are looked through. Not seen: methods of traits, values whose type
//! is inferred otherwise (most parameters of closures, what a pattern binds, elements of collections), and what macros make.

use crate::graph::{Arrow, Module};
use crate::names::{Names, Type};
use crate::sources::is_word;
use crate::tokens::{behind, split, tokens, type_path};
use std::collections::BTreeMap;

/// An inherent method.
struct Method {
    module: Module,
    returns: Option<Type>,
}

/// What is known of a crate.
struct Facts {
    names: Names,
    fields: BTreeMap<(Type, String), Type>,
    methods: BTreeMap<(Type, String), Method>,
}

/// The local names of a function whose types are known.
type Locals<'a> = BTreeMap<&'a str, Type>;

/// A function or an associated function, as it stands in the code.
struct Function<'t, 'a> {
    name: &'a str,
    /// The type whose `impl` block it is in, and whether that is a trait's.
    owner: Option<(Type, Impl)>,
    parameters: &'t [&'a str],
    returns: &'t [&'a str],
    body: &'t [&'a str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Impl {
    Inherent,
    OfTrait,
}

/// An arrow for each module whose methods a module calls.
pub(crate) fn arrows(modules: &BTreeMap<Module, String>) -> Vec<Arrow> {
    let modules: BTreeMap<Module, Vec<&str>> =
        modules.iter().map(|(module, code)| (module.clone(), tokens(code))).collect();
    let names = Names::new(&modules);
    let mut facts = Facts { names, fields: BTreeMap::new(), methods: BTreeMap::new() };
    for (module, tokens) in &modules {
        facts.note_fields(module, tokens);
        facts.note_methods(module, tokens);
    }
    let mut arrows = Vec::new();
    for (module, tokens) in &modules {
        for function in facts.functions(module, tokens) {
            let locals = facts.parameters(module, &function);
            facts.calls(module, &function, locals, &mut |(ty, name), to| {
                let reason = format!("{}::{name}", ty.1);
                arrows.push(Arrow { from: module.clone(), to: to.clone(), reason });
            });
        }
    }
    arrows
}

impl Facts {
    fn note_fields(&mut self, module: &Module, tokens: &[&str]) {
        for at in (0..tokens.len()).filter(|&at| tokens[at] == "struct") {
            let Some(name) = tokens.get(at + 1) else { continue };
            let end = end_of_head(tokens, at);
            let owner = (module.clone(), (*name).to_owned());
            let Some(inner) = tokens.get(end + 1..behind(tokens, end).saturating_sub(1)) else { continue };
            for field in split(inner) {
                let Some(colon) = field.iter().position(|token| *token == ":").filter(|at| *at > 0) else {
                    continue;
                };
                if let Some(ty) = self.names.find(module, &type_path(&field[colon + 1..])) {
                    self.fields.insert((owner.clone(), field[colon - 1].to_owned()), ty);
                }
            }
        }
    }

    fn note_methods(&mut self, module: &Module, tokens: &[&str]) {
        let mut found = Vec::new();
        for function in self.functions(module, tokens) {
            if let Some((owner, Impl::Inherent)) = &function.owner {
                let returns = match type_path(function.returns).as_slice() {
                    ["Self"] => Some(owner.clone()),
                    path => self.names.find(module, path),
                };
                let method = Method { module: module.clone(), returns };
                found.push(((owner.clone(), function.name.to_owned()), method));
            }
        }
        self.methods.extend(found);
    }

    /// All functions of a module; those within another one's body are parts of it.
    fn functions<'t, 'a>(&self, module: &Module, tokens: &'t [&'a str]) -> Vec<Function<'t, 'a>> {
        let mut functions = Vec::new();
        let (mut at, mut block, mut block_end) = (0, None, 0);
        while at < tokens.len() {
            if at >= block_end {
                block = None;
            }
            let is_item = at == 0 || matches!(tokens[at - 1], "}" | ";" | "{" | "]" | "unsafe");
            match tokens[at] {
                "macro_rules" => {
                    at = behind(tokens, at + 3).max(at + 1);
                    continue;
                }
                "impl" if is_item => {
                    let open = tokens[at..]
                        .iter()
                        .position(|token| *token == "{")
                        .map_or(tokens.len(), |open| at + open);
                    block = self.block(module, tokens.get(at + 1..open).unwrap_or(&[]));
                    block_end = behind(tokens, open).max(open);
                    at = open;
                }
                "fn" => {
                    let (function, end) = function(&tokens[at..], block.clone());
                    functions.extend(function);
                    at += end.max(1);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        functions
    }

    /// The type of an `impl` block, from what stands before its brace.
    fn block(&self, module: &Module, head: &[&str]) -> Option<(Type, Impl)> {
        let head = &head[behind(head, 0)..];
        let of_trait = (0..head.len()).find(|&at| head[at] == "for" && head.get(at + 1) != Some(&"<"));
        let ty = of_trait.map_or(head, |at| &head[at + 1..]);
        let kind = if of_trait.is_some() { Impl::OfTrait } else { Impl::Inherent };
        Some((self.names.find(module, &type_path(ty))?, kind))
    }

    fn parameters<'a>(&self, module: &Module, function: &Function<'_, 'a>) -> Locals<'a> {
        let mut locals = Locals::new();
        if let Some((owner, _)) = &function.owner {
            locals.insert("self", owner.clone());
            locals.insert("this", owner.clone());
        }
        for parameter in split(function.parameters) {
            self.note_typed(module, parameter, &mut locals);
        }
        locals
    }

    /// Notes a name with its type, where both stand there.
    fn note_typed<'a>(&self, module: &Module, parameter: &[&'a str], locals: &mut Locals<'a>) {
        let Some(colon) = parameter.iter().position(|token| *token == ":").filter(|at| *at > 0) else {
            return;
        };
        match self.names.find(module, &type_path(&parameter[colon + 1..])) {
            Some(ty) => locals.insert(parameter[colon - 1], ty),
            None => locals.remove(parameter[colon - 1]),
        };
    }

    /// Visits each call of a method in a function's body that can be told.
    fn calls<'a>(
        &self,
        module: &Module,
        function: &Function<'_, 'a>,
        mut locals: Locals<'a>,
        visit: &mut impl FnMut((&Type, &str), &Module),
    ) {
        let owner = function.owner.as_ref().map(|(owner, _)| owner);
        let body = function.body;
        for at in 0..body.len() {
            let is_begin = at == 0 || !matches!(body[at - 1], "." | "::");
            match body[at] {
                "let" => self.bind(module, owner, &body[at + 1..], &mut locals),
                "|" if at > 0 && matches!(body[at - 1], "(" | "," | "=" | "move" | "{" | "=>") => {
                    let end = body[at + 1..].iter().position(|token| *token == "|").unwrap_or(0);
                    for parameter in split(&body[at + 1..at + 1 + end]) {
                        self.note_typed(module, parameter, &mut locals);
                    }
                }
                word if is_begin && word.starts_with(is_word) => {
                    self.value(module, owner, &body[at..], &locals, visit);
                }
                _ => {}
            }
        }
    }

    /// A `let`, or a pattern such as `let Some(name) =`: the name has the type of what stands behind, if that can be told.
    fn bind<'a>(&self, module: &Module, owner: Option<&Type>, tokens: &[&'a str], locals: &mut Locals<'a>) {
        let is_part = |token: &&&str| matches!(**token, "mut" | "Some" | "Ok" | "(" | "&");
        let begin = tokens.iter().take_while(is_part).count();
        let Some(name) = tokens.get(begin).filter(|name| name.starts_with(is_word)) else { return };
        let behind_name = tokens[begin + 1..].iter().take_while(|token| **token == ")").count() + begin + 1;
        let ty = match tokens.get(behind_name) {
            Some(&":") => self.names.find(module, &type_path(&tokens[behind_name + 1..])),
            Some(&"=") => {
                let value = &tokens[behind_name + 1..];
                let skipped = value.iter().take_while(|token| matches!(**token, "&" | "mut")).count();
                self.value(module, owner, &value[skipped..], locals, &mut |_, _| ())
            }
            _ => return,
        };
        match ty {
            Some(ty) => locals.insert(name, ty),
            None => locals.remove(name),
        };
    }

    /// Follows a value through its fields and methods, which are visited. Returns its type.
    fn value(
        &self,
        module: &Module,
        owner: Option<&Type>,
        tokens: &[&str],
        locals: &Locals<'_>,
        visit: &mut impl FnMut((&Type, &str), &Module),
    ) -> Option<Type> {
        let (mut ty, mut at) = match locals.get(tokens[0]).filter(|_| tokens.get(1) != Some(&"::")) {
            Some(ty) => (ty.clone(), 1),
            None => self.associated(module, owner, tokens, visit)?,
        };
        loop {
            match (tokens.get(at), tokens.get(at + 1)) {
                (Some(&"?"), _) => at += 1,
                (Some(&"."), Some(name)) => {
                    let name = *name;
                    let open =
                        if tokens.get(at + 2) == Some(&"::") { behind(tokens, at + 3) } else { at + 2 };
                    if tokens.get(open) != Some(&"(") {
                        ty = self.fields.get(&(ty, name.to_owned()))?.clone();
                        at += 2;
                        continue;
                    }
                    at = behind(tokens, open);
                    if let Some(method) = self.methods.get(&(ty.clone(), name.to_owned())) {
                        visit((&ty, name), &method.module);
                        ty = method.returns.clone()?;
                    } else if !LOOKED_THROUGH.contains(&name) {
                        return None;
                    }
                }
                _ => return Some(ty),
            }
        }
    }

    /// A path to an associated function, `Type::function`. Returns the type of the call's value, and where that ends.
    fn associated(
        &self,
        module: &Module,
        owner: Option<&Type>,
        tokens: &[&str],
        visit: &mut impl FnMut((&Type, &str), &Module),
    ) -> Option<(Type, usize)> {
        let len = tokens.iter().take_while(|token| **token == "::" || token.starts_with(is_word)).count();
        let path: Vec<&str> = tokens[..len].iter().filter(|token| **token != "::").copied().collect();
        let (name, path) = path.split_last().filter(|(_, path)| !path.is_empty())?;
        let ty = if path == ["Self"] { owner?.clone() } else { self.names.find(module, path)? };
        let method = self.methods.get(&(ty.clone(), (*name).to_owned()))?;
        visit((&ty, name), &method.module);
        (tokens.get(len) == Some(&"(")).then_some(())?;
        Some((method.returns.clone()?, behind(tokens, len)))
    }
}

/// Methods of the standard library whose value is of the type that they are called on, or of what it holds.
const LOOKED_THROUGH: &[&str] = &[
    "as_ref",
    "as_mut",
    "as_deref",
    "as_deref_mut",
    "take",
    "unwrap",
    "expect",
    "clone",
    "borrow",
    "borrow_mut",
];

/// The function whose `fn` is the first token, and where it ends.
fn function<'t, 'a>(tokens: &'t [&'a str], owner: Option<(Type, Impl)>) -> (Option<Function<'t, 'a>>, usize) {
    let open = if tokens.get(2) == Some(&"<") { behind(tokens, 2) } else { 2 };
    let close = behind(tokens, open);
    if tokens.get(open) != Some(&"(") || tokens.len() < 3 {
        return (None, 1);
    }
    let end = end_of_head(tokens, close);
    let returns = if tokens.get(close) == Some(&"->") { &tokens[close + 1..end] } else { &[] };
    let body_end = behind(tokens, end);
    let body = tokens.get(end + 1..body_end).unwrap_or(&[]);
    let parameters = &tokens[open + 1..close - 1];
    (Some(Function { name: tokens[1], owner, parameters, returns, body }), body_end.max(end))
}

/// Where the body of an item begins, or the item ends without one.
fn end_of_head(tokens: &[&str], begin: usize) -> usize {
    let mut at = begin;
    while at < tokens.len() && !matches!(tokens[at], "{" | ";") {
        at = if matches!(tokens[at], "(" | "[") { behind(tokens, at) } else { at + 1 };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph;
    use crate::sources::code;

    /// The arrows between modules of these names, as text.
    fn seen(modules: &[(&str, &str)]) -> Vec<String> {
        let module = |(name, text): &(&str, &str)| {
            (name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(), code(text))
        };
        let arrow =
            |arrow: Arrow| format!("{} -> {}: {}", arrow.from.join("::"), arrow.to.join("::"), arrow.reason);
        arrows(&modules.iter().map(module).collect()).into_iter().map(arrow).collect()
    }

    const HUB: (&str, &str) = ("hub", "mod a; mod b; pub struct Hub { part: Box<Part>, n: u8 } struct Part;");

    #[test]
    fn files_of_one_type_that_call_each_other_are_a_cycle() {
        let a = ("hub::a", "use super::Hub; impl Hub { fn one(&self) { self.two(); } fn three(&self) {} }");
        let b = ("hub::b", "use super::Hub; impl Hub { pub(super) fn two(&self) { if x { self.three() } } }");
        assert_eq!(seen(&[HUB, a, b]), ["hub::a -> hub::b: Hub::two", "hub::b -> hub::a: Hub::three"]);
        let modules =
            [HUB, a, b].map(|(name, text)| (name.split("::").map(str::to_owned).collect(), code(text)));
        assert_eq!(graph::cycles(arrows(&modules.into_iter().collect())).len(), 1);
    }

    #[test]
    fn a_value_is_followed_from_where_its_type_stands() {
        let part = (
            "hub::part",
            "use super::{Hub, Part}; impl Part { pub fn act(&self) -> [u8; 2] { x } }
            impl Hub { fn part(&mut self) -> &mut Part { x } fn new() -> Self { x } }",
        );
        for call in [
            "fn f(hub: &mut Hub) { hub.part.act(); }",
            "fn f<T>(t: T, hub: &mut Hub) { hub.part().act(); }",
            "fn f() { let hub = Hub::new(); hub.part(); }",
            "fn f(x: X) { let part = &mut x.y; g(|part: &Part| part.act()) }",
            "fn f(hub: &Hub) { let Some(part) = hub.part.as_ref() else { return }; part.act() }",
            "impl Drop for Hub { fn drop(&mut self) { self.part.act() } }",
        ] {
            let text = format!("use crate::hub::{{Hub, Part}}; {call}");
            let found = seen(&[HUB, part, ("other", &text)]);
            assert!(
                !found.is_empty() && found.iter().all(|arrow| arrow.starts_with("other -> hub::part: ")),
                "{call}"
            );
        }
    }

    #[test]
    fn types_of_other_crates_and_methods_of_traits_are_no_arrows() {
        let part = (
            "hub::part",
            "use super::Hub; impl Hub { fn act(&self) {} } impl Clone for Hub { fn clone(&self) {} }",
        );
        for text in [
            "use elsewhere::Hub; fn f(hub: &Hub) { hub.act() }",
            "use crate::hub::Hub; fn f(hub: &Hub) { hub.clone() }",
            "use crate::hub::Hub; fn f(hub: &Hub) { let hub = 1; hub.act() }",
            "fn f(hub: &elsewhere::Hub) { hub.act() } // hub: &crate::hub::Hub",
        ] {
            assert_eq!(seen(&[HUB, part, ("other", text)]), [""; 0], "{text}");
        }
    }
}
