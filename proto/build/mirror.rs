//! Versions that serve resources of another version with the same fields.

use std::collections::BTreeSet;

use crate::model::{Error, Field, Member, Mirror, Package, Resource, Shape, Type};

/// Gives each package that mirrors others their resources, and the types that these need. Fails if a mirrored package
/// does not stand above, or lacks a resource.
pub fn expand(packages: &mut [Package]) -> Result<(), Error> {
    for number in 0..packages.len() {
        let (before, rest) = packages.split_at_mut(number);
        let Some((package, after)) = rest.split_first_mut() else { continue };
        for mirror in std::mem::take(&mut package.mirrors) {
            let none = || mirror.position.error(format!("no package {} stands above", mirror.alias));
            let shown = before.iter().find(|other| other.alias == mirror.alias).ok_or_else(none)?;
            let group = shown.alias.split('/').next();
            let others = before.iter().chain(&*after).filter(|other| other.alias.split('/').next() != group);
            let to = last(&package.openapi).to_owned();
            let names = GoNames { from: last(&shown.openapi), to, imported: imported(others) };
            copy(&mirror, shown, &names, package)?;
            // Discovery lists the resources of these versions by name.
            package.resources.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    Ok(())
}

/// How the Go names of a copied type change.
struct GoNames<'a> {
    /// The version of the package that is mirrored, and that of the one that mirrors it.
    from: &'a str,
    to: String,
    /// Names that other groups have, too: those keep their version.
    imported: BTreeSet<String>,
}

impl GoNames<'_> {
    /// Returns a Go type such as `map[v1.Key]v1.Value` with the names of the new version.
    fn renamed(&self, go: &str) -> String {
        let prefix = format!("{}.", self.from);
        let parts = go.split_inclusive(['[', ']']).map(|part| match part.strip_prefix(&prefix) {
            Some(name) if !self.imported.contains(part.trim_end_matches(['[', ']'])) => format!("{}.{name}", self.to),
            _ => part.to_owned(),
        });
        parts.collect()
    }
}

/// Returns the Go names in the fields of these packages.
fn imported<'a>(packages: impl Iterator<Item = &'a Package>) -> BTreeSet<String> {
    let fields = packages.flat_map(|package| &package.types).flat_map(|of| &of.members).filter_map(field);
    let mut names = BTreeSet::new();
    fields.for_each(|field| gather(&field.shape, &mut names));
    names
}

fn gather(shape: &Shape, names: &mut BTreeSet<String>) {
    let named = match shape {
        Shape::Plain(_) | Shape::Struct(_) => return,
        Shape::String(named) => named,
        Shape::List { named, item: inner, .. } | Shape::Map { named, value: inner } => {
            gather(inner, names);
            named
        }
    };
    names.extend(named.split(['[', ']']).filter(|name| name.contains('.')).map(str::to_owned));
}

fn copy(mirror: &Mirror, shown: &Package, names: &GoNames<'_>, package: &mut Package) -> Result<(), Error> {
    let mut wanted = Vec::new();
    for name in &mirror.resources {
        let none = || mirror.position.error(format!("{} has no resource {name}", shown.alias));
        let resource = shown.resources.iter().find(|of| of.name == *name).ok_or_else(none)?;
        wanted.extend(kinds(resource));
        package.resources.push(resource.clone());
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        // The package's own types differ from those of the mirrored one.
        if let Some(own) = package.types.iter().find(|of| of.name == name) {
            wanted.extend(own.members.iter().filter_map(local));
            continue;
        }
        let none = || mirror.position.error(format!("{} has no type {name}", shown.alias));
        let mut of = shown.types.iter().find(|of| of.name == name).ok_or_else(none)?.clone();
        wanted.extend(of.members.iter().filter_map(local));
        rename(&mut of, &shown.api_version, &package.api_version, names);
        package.types.push(of);
    }
    Ok(())
}

/// Returns the types that a resource's objects, lists and subresources have in its own version.
fn kinds(of: &Resource) -> impl Iterator<Item = String> {
    let parts = of.subresources.iter().filter(|sub| sub.api_version.is_empty()).map(|sub| &sub.kind);
    let lists = Some(&of.list_kind).filter(|list| !list.is_empty());
    [&of.kind].into_iter().chain(lists).chain(parts).cloned()
}

/// Returns the type of the same package that a member has.
fn local(member: &Member) -> Option<String> {
    let name = match member {
        Member::Field(field) => of_struct(&field.shape)?,
        Member::Embedded { target, .. } => target,
    };
    (!name.contains('.')).then(|| name.to_owned())
}

fn of_struct(shape: &Shape) -> Option<&str> {
    match shape {
        Shape::Struct(name) => Some(name),
        Shape::List { item, .. } => of_struct(item),
        Shape::Map { value, .. } => of_struct(value),
        Shape::Plain(_) | Shape::String(_) => None,
    }
}

/// Replaces the version in what a copied type says of itself.
fn rename(of: &mut Type, from: &str, to: &str, names: &GoNames<'_>) {
    of.kinds.iter_mut().filter(|kind| *kind == from).for_each(|kind| to.clone_into(kind));
    for member in &mut of.members {
        if let Member::Field(field) = member {
            rename_shape(&mut field.shape, names);
        }
    }
}

fn rename_shape(shape: &mut Shape, names: &GoNames<'_>) {
    match shape {
        Shape::Plain(_) | Shape::Struct(_) => {}
        Shape::String(named) => *named = names.renamed(named),
        Shape::List { named, item: inner, .. } | Shape::Map { named, value: inner } => {
            *named = names.renamed(named);
            rename_shape(inner, names);
        }
    }
}

fn field(member: &Member) -> Option<&Field> {
    match member {
        Member::Field(field) => Some(field),
        Member::Embedded { .. } => None,
    }
}

/// Returns the last part of a package's published name: its version.
fn last(openapi: &str) -> &str {
    openapi.rsplit('.').next().unwrap_or_default()
}
