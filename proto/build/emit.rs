//! Writes the tables as Rust source.

use std::fmt::Write;

use crate::model::{Column, Error, Field, Group, Package, Resource, Shape, SourcePosition, Subresource, Type};
use crate::resolve::{Kind, Names, Wire, split};

/// Returns the source of all tables.
pub fn tables(packages: &[Package], groups: &[Group]) -> Result<String, Error> {
    let names = Names::new(packages)?;
    let kinds = names.kinds()?;
    let mut out = GeneratedCode::default();
    for (number, (package, of)) in names.all.iter().enumerate() {
        out.table(&names, number, package, of)?;
    }
    out.kinds(&kinds);
    out.groups(&names, &kinds, groups)?;
    out.index("TYPES", "Type", {
        let mut order: Vec<usize> = (0..names.all.len()).collect();
        order.sort_by_cached_key(|&number| openapi(names.all[number].0, names.all[number].1));
        order.into_iter().map(|number| format!("&T{number}")).collect()
    });
    Ok(out.text)
}

fn openapi(package: &Package, of: &Type) -> String {
    format!("{}.{}", package.openapi, of.name)
}

/// Returns the name of a type's protobuf message: its OpenAPI name with the parts of the host in reverse order. Returns
/// an empty text for a type that exists in JSON only.
fn message(package: &Package, of: &Type) -> String {
    let name = openapi(package, of);
    let rest = name.strip_prefix("io.k8s.").unwrap_or(&name);
    if of.json_only { String::new() } else { format!("k8s.io.{}", rest.replace('-', "_")) }
}

#[derive(Default)]
struct GeneratedCode {
    text: String,
    statics: usize,
}

impl GeneratedCode {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("writing to a string succeeds");
        self.text.push('\n');
    }

    /// Adds a static of this type and value. Returns its name.
    fn fresh(&mut self, of: &str, value: &str) -> String {
        self.statics += 1;
        let name = format!("S{}", self.statics);
        self.line(format_args!("static {name}: {of} = {value};"));
        name
    }

    /// Returns a slice as source: an empty one, or a reference to a new static.
    fn slice(&mut self, of: &str, items: &[String]) -> String {
        if items.is_empty() {
            return "&[]".to_owned();
        }
        let name = self.fresh(&format!("[{of}; {}]", items.len()), &format!("[{}]", items.join(", ")));
        format!("&{name}")
    }

    fn texts(&mut self, items: &[String]) -> String {
        let items: Vec<String> = items.iter().map(|item| format!("B({item:?})")).collect();
        format!("B({})", self.slice("Text", &items))
    }

    fn table(&mut self, names: &Names<'_>, number: usize, package: &Package, of: &Type) -> Result<(), Error> {
        let (fields, wire) = names.flatten(package, of)?;
        let mut sources = Vec::new();
        for (package, field) in &fields {
            sources.push(self.field(names, package, field)?);
        }
        let fields = self.slice("Field", &sources);
        let wire = self.wire(&wire);
        let mut unions = Vec::new();
        for union in &of.unions {
            let members: Vec<String> = union.members.iter().map(|(f, v)| format!("(B({f:?}), B({v:?}))")).collect();
            let members = self.slice("(Text, Text)", &members);
            unions.push(format!("Union {{ discriminator: B({:?}), members: B({members}) }}", union.discriminator));
        }
        let unions = self.slice("Union", &unions);
        let last = package.openapi.rsplit('.').next().unwrap_or_default();
        self.line(format_args!(
            "static T{number}: Type = Type {{ name: B({:?}), package: B({last:?}), openapi: B({:?}), message: B({:?}), \
             description: B({:?}), fields: B({fields}), atomic: {}, open: false, \
             unions: B({unions}), wire: {wire} }};",
            of.name,
            openapi(package, of),
            message(package, of),
            of.description,
            of.atomic
        ));
        Ok(())
    }

    fn wire(&mut self, parts: &[Wire]) -> String {
        let mut items = Vec::new();
        for part in parts {
            let of = match part {
                Wire::Field { index, .. } => format!("WirePart::Field({index})"),
                Wire::Embedded { name, parts, .. } => format!("WirePart::Embedded({name:?}, {})", self.wire(parts)),
            };
            items.push(format!("Wire {{ number: {}, part: {of} }}", part.number()));
        }
        self.slice("Wire", &items)
    }

    fn field(&mut self, names: &Names<'_>, package: &Package, field: &Field) -> Result<String, Error> {
        let shape = self.shape(names, package, &field.shape, Some(field), &field.position)?;
        let enumeration = self.texts(&field.enumeration);
        let presence = match (field.pointer, field.always) {
            (false, false) => "OmitEmpty",
            (false, true) => "Always",
            (true, false) => "Pointer",
            (true, true) => "AlwaysPointer",
        };
        let default = field.default.as_ref().map_or("None".to_owned(), |json| format!("Some(B({json:?}))"));
        Ok(format!(
            "Field {{ name: B({:?}), number: {}, shape: {shape}, presence: Presence::{presence}, required: {}, \
             default: {default}, enumeration: {enumeration}, patch: Patch {{ merge: {}, retain_keys: {}, replace: {}, \
             merge_key: {:?} }}, granular: {}, description: B({:?}) }}",
            field.name,
            field.number,
            field.required,
            field.merge,
            field.retain_keys,
            field.replace,
            field.merge_key,
            field.granular,
            field.description
        ))
    }

    /// Returns a shape as source. A field states the topology of its list or map. The items and values in it have no
    /// `field`, and so no topology.
    fn shape(
        &mut self,
        names: &Names<'_>,
        package: &Package,
        shape: &Shape,
        field: Option<&Field>,
        position: &SourcePosition,
    ) -> Result<String, Error> {
        Ok(match shape {
            Shape::Plain(source) => (*source).to_owned(),
            Shape::String(named) => format!("Shape::String {{ named: B({named:?}) }}"),
            Shape::Struct(name) => format!("Shape::Struct(Ref::Static(&T{}))", names.find(package, name, position)?),
            Shape::List { named, boxed, pointers, item } => {
                let item = self.shape(names, package, item, None, position)?;
                let topology = match field {
                    Some(field) if field.set => "Topology::Set".to_owned(),
                    Some(field) if !field.keys.is_empty() => format!("Topology::Map({})", self.texts(&field.keys)),
                    _ => "Topology::Atomic".to_owned(),
                };
                let stated = field.is_some_and(|field| field.set || field.atomic || !field.keys.is_empty());
                let list = self.fresh(
                    "List",
                    &format!(
                        "List {{ item: {item}, pointer_items: {pointers}, named: B({named:?}), boxed: {boxed}, \
                         topology: {topology}, stated: {stated} }}"
                    ),
                );
                format!("Shape::List(Ref::Static(&{list}))")
            }
            Shape::Map { named, value } => {
                let value = self.shape(names, package, value, None, position)?;
                let atomic = field.is_some_and(|field| field.atomic);
                let map =
                    self.fresh("Map", &format!("Map {{ value: {value}, named: B({named:?}), atomic: {atomic} }}"));
                format!("Shape::Map(Ref::Static(&{map}))")
            }
        })
    }

    fn kinds(&mut self, kinds: &[Kind]) {
        self.line(format_args!("pub(super) static KINDS: [Kind; {}] = [", kinds.len()));
        for Kind { group, version, name, of } in kinds {
            self.line(format_args!(
                "Kind {{ group: B({group:?}), version: B({version:?}), name: B({name:?}), of: Ref::Static(&T{of}) }},"
            ));
        }
        self.line(format_args!("];"));
    }

    fn groups(&mut self, names: &Names<'_>, kinds: &[Kind], groups: &[Group]) -> Result<(), Error> {
        let mut index = Vec::new();
        let mut sources = Vec::new();
        for group in groups {
            let mut versions = Vec::new();
            for version in &group.versions {
                let none = || SourcePosition { file: "groups.txt".to_owned(), line: 0 };
                let package = names
                    .served(&group.name, version)
                    .ok_or_else(|| none().error(format!("no file has the package {}/{version}", group.name)))?;
                let mut resources = Vec::new();
                for resource in &package.resources {
                    resources.push(self.resource(kinds, &group.name, version, resource)?);
                }
                let table = self.slice("Resource", &resources);
                let keys = package.resources.iter().enumerate().map(|(number, resource)| {
                    ((group.name.clone(), version.clone(), resource.name.clone()), format!("{table}[{number}]"))
                });
                index.extend(keys);
                versions.push(format!("Version {{ name: {version:?}, resources: {table} }}"));
            }
            let versions = self.slice("Version", &versions);
            sources.push(format!("Group {{ name: {:?}, versions: {versions} }}", group.name));
        }
        self.line(format_args!("pub(super) static GROUPS: [Group; {}] = [{}];", sources.len(), sources.join(", ")));
        index.sort();
        self.index("RESOURCES", "Resource", index.into_iter().map(|(_, source)| source).collect());
        Ok(())
    }

    fn index(&mut self, name: &str, of: &str, items: Vec<String>) {
        self.line(format_args!("pub(super) static {name}: [&{of}; {}] = [{}];", items.len(), items.join(", ")));
    }

    fn resource(&mut self, kinds: &[Kind], group: &str, version: &str, of: &Resource) -> Result<String, Error> {
        let find = |group: &str, version: &str, name: &str| {
            let found = kinds.iter().position(|k| k.group == group && k.version == version && k.name == name);
            found.ok_or_else(|| of.position.error(format!("there is no kind {name} in {group}/{version}")))
        };
        let kind = find(group, version, &of.kind)?;
        if !of.list_kind.is_empty() {
            find(group, version, &of.list_kind)?;
        }
        let verbs = self.texts(&of.verbs);
        let short_names = self.texts(&of.short_names);
        let categories = self.texts(&of.categories);
        let mut subresources = Vec::new();
        for Subresource { name, api_version, kind, verbs, tables } in &of.subresources {
            let (group, version) =
                if api_version.is_empty() { (group.to_owned(), version.to_owned()) } else { split(api_version) };
            find(&group, &version, kind)?;
            let verbs = self.texts(verbs);
            subresources.push(format!(
                "Subresource {{ name: B({name:?}), response_kind: (B({group:?}), B({version:?}), B({kind:?})), verbs: {verbs}, tables: {tables} }}"
            ));
        }
        let subresources = self.slice("Subresource", &subresources);
        let columns: Vec<String> = of.columns.iter().map(column).collect();
        let columns = self.slice("Column", &columns);
        Ok(format!(
            "Resource {{ group: B({group:?}), version: B({version:?}), name: B({:?}), singular: B({:?}), \
             kind: Ref::Static(&KINDS[{kind}]), list_kind: B({:?}), namespaced: {}, verbs: {verbs}, \
             short_names: {short_names}, categories: {categories}, storage_hash: B({:?}), \
             subresources: B({subresources}), columns: B({columns}) }}",
            of.name, of.singular, of.list_kind, of.namespaced, of.hash
        ))
    }
}

fn column(column: &Column) -> String {
    format!(
        "Column {{ name: B({:?}), kind: B({:?}), format: B({:?}), priority: {}, description: B({:?}) }}",
        column.name, column.kind, column.format, column.priority, column.description
    )
}
