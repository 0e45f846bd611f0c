//! Gives every type and kind a number, inlines embedded types, and resolves the names of types.

use std::collections::BTreeMap;

use crate::model::{Error, Field, Member, Package, SourcePosition, Type};

/// How deep types may embed each other.
const EMBEDDING_DEPTH_MAX: usize = 8;

/// All packages with the numbers of their types.
pub struct Names<'a> {
    packages: &'a [Package],
    types: BTreeMap<(&'a str, &'a str), usize>,
    /// Every type with its package, by number.
    pub all: Vec<(&'a Package, &'a Type)>,
}

/// All fields of a type, each with the package in which the type names in it are looked up, and the layout of its
/// message.
type Flat<'a> = (Vec<(&'a Package, Field)>, Vec<Wire>);

/// A part of a protobuf message.
#[derive(Debug)]
pub enum Wire {
    Field { number: u32, index: usize },
    Embedded { number: u32, name: String, parts: Vec<Wire> },
}

impl Wire {
    /// Returns the field number of the part.
    pub fn number(&self) -> u32 {
        match self {
            Wire::Field { number, .. } | Wire::Embedded { number, .. } => *number,
        }
    }
}

/// A kind, and the number of its type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub name: String,
    pub of: usize,
}

impl<'a> Names<'a> {
    /// Numbers all types. Fails if a package has two types with the same name.
    pub fn new(packages: &'a [Package]) -> Result<Self, Error> {
        let mut types = BTreeMap::new();
        let mut all = Vec::new();
        for package in packages {
            for of in &package.types {
                if types.insert((package.alias.as_str(), of.name.as_str()), all.len()).is_some() {
                    return Err(of.position.error(format!("type {}.{} is defined twice", package.alias, of.name)));
                }
                all.push((package, of));
            }
        }
        Ok(Self { packages, types, all })
    }

    /// Returns the number of the type that `name` means within `package`.
    pub fn find(&self, package: &Package, name: &str, position: &SourcePosition) -> Result<usize, Error> {
        let key = name.rsplit_once('.').unwrap_or((package.alias.as_str(), name));
        self.types.get(&key).copied().ok_or_else(|| position.error(format!("there is no type {name}")))
    }

    /// Returns all fields of a type, embedded ones in place, and the layout of its protobuf message.
    pub fn flatten(&self, package: &'a Package, of: &'a Type) -> Result<Flat<'a>, Error> {
        let mut fields = Vec::new();
        let wire = self.inline(package, of, &mut fields, EMBEDDING_DEPTH_MAX)?;
        for (index, (_, field)) in fields.iter().enumerate() {
            if fields[..index].iter().any(|(_, other)| other.name == field.name) {
                return Err(field.position.error(format!("{} has two fields {}", of.name, field.name)));
            }
        }
        Ok((fields, if of.json_only { Vec::new() } else { wire }))
    }

    fn inline(
        &self,
        package: &'a Package,
        of: &'a Type,
        fields: &mut Vec<(&'a Package, Field)>,
        depth: usize,
    ) -> Result<Vec<Wire>, Error> {
        if depth == 0 {
            return Err(of.position.error(format!("types embed each other too deep at {}", of.name)));
        }
        let mut wire = Vec::new();
        for member in &of.members {
            match member {
                Member::Field(field) => {
                    wire.push(Wire::Field { number: field.number, index: fields.len() });
                    fields.push((package, field.clone()));
                }
                Member::Embedded { number, target, position } => {
                    let (package, of) = self.all[self.find(package, target, position)?];
                    let first = fields.len();
                    let parts = self.inline(package, of, fields, depth - 1)?;
                    if *number == 0 {
                        fields[first..].iter_mut().for_each(|(_, field)| field.number = 0);
                    }
                    wire.push(Wire::Embedded { number: *number, name: of.name.clone(), parts });
                }
            }
        }
        wire.retain(|part| part.number() != 0);
        wire.sort_by_key(Wire::number);
        if let Some(pair) = wire.windows(2).find(|pair| pair[0].number() == pair[1].number()) {
            return Err(of.position.error(format!("{} has number {} twice", of.name, pair[0].number())));
        }
        Ok(wire)
    }

    /// Returns all kinds by group, version and name.
    pub fn kinds(&self) -> Result<Vec<Kind>, Error> {
        let mut kinds: Vec<Kind> = Vec::new();
        for (of, (_, found)) in self.all.iter().enumerate() {
            for api_version in &found.kinds {
                let (group, version) = split(api_version);
                kinds.push(Kind { group, version, name: found.name.clone(), of });
            }
        }
        kinds.sort();
        let same = |pair: &&[Kind]| {
            (&pair[0].group, &pair[0].version, &pair[0].name) == (&pair[1].group, &pair[1].version, &pair[1].name)
        };
        match kinds.windows(2).find(same) {
            Some(pair) => Err(self.all[pair[1].of].1.position.error(format!("kind {} is defined twice", pair[1].name))),
            None => Ok(kinds),
        }
    }

    /// Returns the package served under this group and version.
    pub fn served(&self, group: &str, version: &str) -> Option<&'a Package> {
        self.packages.iter().find(|package| split(&package.api_version) == (group.to_owned(), version.to_owned()))
    }
}

/// Returns the group and the version of an API version.
pub fn split(api_version: &str) -> (String, String) {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    (group.to_owned(), version.to_owned())
}
