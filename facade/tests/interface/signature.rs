//! Signatures as text: one form, however the source breaks its lines.

use quote::{ToTokens, quote};
use syn::{Generics, Ident, Item, Signature, TraitItem};

/// Tokens as one line of code.
pub(crate) fn text(tokens: impl ToTokens) -> String {
    let mut line = String::new();
    for word in tokens.to_token_stream().to_string().split_whitespace() {
        if !is_joined(&line, word) {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Whether a word follows without a space.
fn is_joined(line: &str, word: &str) -> bool {
    if line.is_empty() || line.ends_with("::") {
        return true;
    }
    let is_apart = line.ends_with([',', ':', '=']) || line.ends_with("->") || word.starts_with("->");
    !is_apart
        && (line.ends_with(['(', '[', '<', '&', '?']) || word.starts_with([')', ']', '>', ',', ';', ':', '(', '<']))
}

/// The signature of a function or method behind its name.
fn behind_name(of: &Signature) -> String {
    let (constness, asyncness, unsafety, generics) = (&of.constness, &of.asyncness, &of.unsafety, &of.generics);
    let (inputs, output, bounds) = (&of.inputs, &of.output, &of.generics.where_clause);
    let inputs = inputs.iter();
    format!(": {}", text(quote!(#constness #asyncness #unsafety fn #generics (#(#inputs),*) #output #bounds)))
}

/// A method: its name and signature.
pub(crate) fn of_method(of: &Signature) -> String {
    format!("{}{}", of.ident, behind_name(of))
}

/// A constant: its name and type.
pub(crate) fn of_const(name: &Ident, of: impl ToTokens) -> String {
    format!("{name}: {}", text(of))
}

/// A member of a trait.
pub(crate) fn of_trait(item: &TraitItem) -> Option<String> {
    Some(match item {
        TraitItem::Const(item) => of_const(&item.ident, &item.ty),
        TraitItem::Fn(item) if item.default.is_some() => format!("{}, provided", of_method(&item.sig)),
        TraitItem::Fn(item) => of_method(&item.sig),
        TraitItem::Type(item) => format!("{}: type {}", item.ident, text(&item.bounds)).trim_end().to_owned(),
        _ => return None,
    })
}

/// What follows the path of an item.
pub(crate) fn of_item(item: &Item) -> String {
    let kind = |kind: &str, generics: &Generics| {
        let bounds = &generics.where_clause;
        format!(": {kind}{}", text(quote!(#generics #bounds)))
    };
    match item {
        Item::Const(item) => format!(": {}", text(&item.ty)),
        Item::Static(item) => format!(": {}", text(&item.ty)),
        Item::Fn(item) => behind_name(&item.sig),
        Item::Type(item) => format!("{} = {}", kind("type", &item.generics), text(&item.ty)),
        Item::Struct(item) => kind("struct", &item.generics),
        Item::Enum(item) => kind("enum", &item.generics),
        Item::Trait(item) => {
            let bounds = text(&item.supertraits);
            let trait_ = kind("trait", &item.generics);
            if bounds.is_empty() { trait_ } else { format!("{trait_}: {bounds}") }
        }
        _ => String::new(),
    }
}

#[test]
fn a_signature_has_one_form() {
    let code = "fn f<'a, T: Copy + 'a>(\n    &'a self,\n    of: [u8; 4],\n) -> (T, <T as A>::B)\nwhere\n    T: ?Sized";
    let form = ": fn<'a, T: Copy + 'a>(&'a self, of: [u8; 4]) -> (T, <T as A>::B) where T: ?Sized";
    assert_eq!(behind_name(&syn::parse_str(code).unwrap()), form);
}
