//! Reads the text of the catalogue; `catalogue/README.md` describes it.

use crate::model::{
    Column, Error, Field, Group, Member, Mirror, Package, Resource, Shape, SourcePosition, Subresource, Type, Union,
};

/// Reads `groups.txt`.
pub fn groups(file: &str, text: &str) -> Result<Vec<Group>, Error> {
    let mut groups = Vec::new();
    for line in Line::all(file, text) {
        let Some((name, versions)) = line.words.split_first() else { continue };
        if versions.is_empty() {
            return Err(line.position.error(format!("group {name} has no versions")));
        }
        let name = if *name == "\"\"" { String::new() } else { (*name).to_owned() };
        groups.push(Group { name, versions: owned(versions) });
    }
    Ok(groups)
}

/// Reads the file of one group.
pub fn packages(file: &str, text: &str) -> Result<Vec<Package>, Error> {
    let mut packages: Vec<Package> = Vec::new();
    let mut within = Within::Nothing;
    for line in Line::all(file, text) {
        let position = &line.position;
        if line.indented {
            let package = packages.last_mut();
            match within {
                Within::Resource => {
                    let last = package.and_then(|package| package.resources.last_mut());
                    resource_line(last.ok_or_else(|| position.error("no resource is open"))?, &line)?;
                }
                Within::Type => {
                    let last = package.and_then(|package| package.types.last_mut());
                    type_line(last.ok_or_else(|| position.error("no type is open"))?, &line)?;
                }
                Within::Nothing => return Err(position.error("an indented line needs a resource or type above it")),
            }
            continue;
        }
        within = match (line.words.as_slice(), packages.last_mut()) {
            (["package", alias, openapi, api_version], _) => {
                packages.push(Package {
                    alias: (*alias).to_owned(),
                    openapi: (*openapi).to_owned(),
                    api_version: dash(api_version),
                    resources: Vec::new(),
                    types: Vec::new(),
                    mirrors: Vec::new(),
                });
                Within::Nothing
            }
            (["resource", name, singular, kind, scope], Some(package)) => {
                package.resources.push(resource([name, singular, kind, scope], position)?);
                Within::Resource
            }
            (["type", name, markers @ ..], Some(package)) => {
                let open = type_head(name, markers, &line, &package.api_version)?;
                package.types.push(open);
                Within::Type
            }
            (["same", alias, resources @ ..], Some(package)) if !resources.is_empty() => {
                let (alias, resources) = ((*alias).to_owned(), owned(resources));
                package.mirrors.push(Mirror { alias, resources, position: position.clone() });
                Within::Nothing
            }
            (["resource" | "same" | "type", ..], None) => return Err(position.error("no package is open")),
            (words, _) => return Err(position.error(format!("cannot read {words:?}"))),
        };
    }
    Ok(packages)
}

#[derive(Clone, Copy)]
enum Within {
    Nothing,
    Resource,
    Type,
}

/// A line that is not empty.
struct Line<'a> {
    position: SourcePosition,
    indented: bool,
    words: Vec<&'a str>,
    /// The text before the description, trimmed.
    body: &'a str,
    description: String,
}

impl<'a> Line<'a> {
    fn all(file: &'a str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
        let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        filled.map(move |(index, line)| {
            let (body, description) = line.split_once(" -- ").unwrap_or((line, ""));
            Line {
                position: SourcePosition { file: file.to_owned(), line: index + 1 },
                indented: line.starts_with(' '),
                words: words(body),
                body: body.trim(),
                description: description.trim().replace("\\n", "\n").replace("\\t", "\t"),
            }
        })
    }
}

/// Splits at spaces outside double quotes.
fn words(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '"';
        c == ' ' && !quoted
    })
    .filter(|word| !word.is_empty())
    .collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn dash(word: &str) -> String {
    if word == "-" { String::new() } else { word.to_owned() }
}

fn resource([name, singular, kind, scope]: [&str; 4], position: &SourcePosition) -> Result<Resource, Error> {
    let namespaced = match scope {
        "namespaced" => true,
        "cluster" => false,
        _ => return Err(position.error(format!("scope {scope} is neither namespaced nor cluster"))),
    };
    Ok(Resource {
        name: name.to_owned(),
        singular: singular.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        hash: String::new(),
        list_kind: String::new(),
        subresources: Vec::new(),
        columns: Vec::new(),
        position: position.clone(),
    })
}

fn resource_line(resource: &mut Resource, line: &Line<'_>) -> Result<(), Error> {
    match line.words.as_slice() {
        ["verbs", verbs @ ..] => resource.verbs = owned(verbs),
        ["short", names @ ..] => resource.short_names = owned(names),
        ["categories", names @ ..] => resource.categories = owned(names),
        ["hash", hash] => resource.hash = (*hash).to_owned(),
        ["list", kind] => resource.list_kind = (*kind).to_owned(),
        ["subresource", name, kind, verbs @ ..] => {
            let (api_version, kind) = kind.rsplit_once('.').unwrap_or(("", kind));
            let (verbs, tables) = match verbs {
                [verbs @ .., "untabled"] => (verbs, false),
                verbs => (verbs, true),
            };
            resource.subresources.push(Subresource {
                name: (*name).to_owned(),
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                verbs: owned(verbs),
                tables,
            });
        }
        ["column", priority, kind, format, _, ..] => {
            let name = line.body.splitn(5, ' ').nth(4).unwrap_or_default();
            resource.columns.push(Column {
                priority: number(priority, &line.position)?,
                kind: (*kind).to_owned(),
                format: dash(format),
                name: name.to_owned(),
                description: line.description.clone(),
            });
        }
        words => return Err(line.position.error(format!("a resource has no line {words:?}"))),
    }
    Ok(())
}

fn number<N: std::str::FromStr>(word: &str, position: &SourcePosition) -> Result<N, Error> {
    word.parse().map_err(|_| position.error(format!("{word} is not a number")))
}

fn type_head(name: &str, markers: &[&str], line: &Line<'_>, api_version: &str) -> Result<Type, Error> {
    let mut open = Type {
        name: name.to_owned(),
        kinds: Vec::new(),
        atomic: false,
        json_only: false,
        unions: Vec::new(),
        members: Vec::new(),
        description: line.description.clone(),
        position: line.position.clone(),
    };
    for marker in markers {
        match marker.split_once('=') {
            None if *marker == "kind" => open.kinds.push(api_version.to_owned()),
            None if *marker == "atomic" => open.atomic = true,
            None if *marker == "json-only" => open.json_only = true,
            Some(("kind", versions)) => open.kinds.extend(versions.split(',').map(str::to_owned)),
            _ => return Err(line.position.error(format!("a type has no marker {marker}"))),
        }
    }
    Ok(open)
}

fn type_line(open: &mut Type, line: &Line<'_>) -> Result<(), Error> {
    let position = &line.position;
    match line.words.as_slice() {
        ["union", discriminator, members @ ..] => {
            let pair = |word: &&str| {
                let (field, value) = word.split_once('=').ok_or_else(|| position.error("a union needs FIELD=VALUE"))?;
                Ok((field.to_owned(), value.to_owned()))
            };
            let members = members.iter().map(pair).collect::<Result<_, Error>>()?;
            open.unions.push(Union { discriminator: dash(discriminator), members });
        }
        [number, target] if target.starts_with('@') => open.members.push(Member::Embedded {
            number: field_number(number, position)?,
            target: target[1..].to_owned(),
            position: position.clone(),
        }),
        [number, name, shape, markers @ ..] => {
            open.members.push(Member::Field(field(field_number(number, position)?, name, shape, markers, line)?));
        }
        words => return Err(position.error(format!("a type has no line {words:?}"))),
    }
    Ok(())
}

fn field_number(word: &str, position: &SourcePosition) -> Result<u32, Error> {
    if word == "-" { Ok(0) } else { number(word, position) }
}

fn field(number: u32, name: &str, text: &str, markers: &[&str], line: &Line<'_>) -> Result<Field, Error> {
    let mut field = Field {
        number,
        name: name.to_owned(),
        shape: shape(text, &line.position)?,
        always: false,
        pointer: false,
        required: false,
        atomic: false,
        granular: false,
        set: false,
        keys: Vec::new(),
        merge: false,
        merge_key: None,
        retain_keys: false,
        replace: false,
        enumeration: Vec::new(),
        default: None,
        description: line.description.clone(),
        position: line.position.clone(),
    };
    for marker in markers {
        match marker.split_once('=') {
            Some(("keys", keys)) => field.keys = keys.split(',').map(str::to_owned).collect(),
            Some(("merge", key)) => (field.merge, field.merge_key) = (true, Some(key.to_owned())),
            Some(("merge-key", key)) => field.merge_key = Some(key.to_owned()),
            Some(("enum", values)) => {
                field.enumeration = values.trim_matches('"').split('|').map(str::to_owned).collect();
            }
            Some(("default", json)) => field.default = Some(json.to_owned()),
            Some(_) => return Err(line.position.error(format!("a field has no marker {marker}"))),
            None => *flag(&mut field, marker, &line.position)? = true,
        }
    }
    let list = matches!(field.shape, Shape::List { .. });
    if (field.set || !field.keys.is_empty()) && !list {
        return Err(line.position.error("only a list can be a set or have keys"));
    }
    Ok(field)
}

fn flag<'a>(field: &'a mut Field, marker: &str, position: &SourcePosition) -> Result<&'a mut bool, Error> {
    Ok(match marker {
        "always" => &mut field.always,
        "ptr" => &mut field.pointer,
        "required" => &mut field.required,
        "atomic" => &mut field.atomic,
        "granular" => &mut field.granular,
        "set" => &mut field.set,
        "merge" => &mut field.merge,
        "retain-keys" => &mut field.retain_keys,
        "replace" => &mut field.replace,
        _ => return Err(position.error(format!("a field has no marker {marker}"))),
    })
}

fn shape(text: &str, position: &SourcePosition) -> Result<Shape, Error> {
    let (boxed, list) = match text.strip_prefix("boxed[]") {
        Some(rest) => (true, Some(rest)),
        None => (false, text.strip_prefix("[]")),
    };
    if let Some(rest) = list {
        let (named, rest) = named(rest, position)?;
        let (pointers, rest) = rest.strip_prefix('*').map_or((false, rest), |rest| (true, rest));
        return Ok(Shape::List { named, boxed, pointers, item: Box::new(shape(rest, position)?) });
    }
    if text.starts_with("map(") || text.starts_with("map[") {
        let (named, rest) = named(&text[3..], position)?;
        let value = rest.strip_prefix("[string]").ok_or_else(|| position.error("a map's keys are [string]"))?;
        return Ok(Shape::Map { named, value: Box::new(shape(value, position)?) });
    }
    if let Some(rest) = text.strip_prefix("string(") {
        let name = rest.strip_suffix(')').ok_or_else(|| position.error(format!("{text} lacks a )")))?;
        return Ok(Shape::String(name.to_owned()));
    }
    Ok(match text {
        "string" => Shape::String(String::new()),
        "bool" => Shape::Plain("Shape::Bool"),
        "int32" => Shape::Plain("Shape::Int32"),
        "int64" => Shape::Plain("Shape::Int64"),
        "double" => Shape::Plain("Shape::Double"),
        "bytes" => Shape::Plain("Shape::Bytes"),
        "quantity" => Shape::Plain("Shape::Quantity"),
        "int-or-string" => Shape::Plain("Shape::IntOrString"),
        "time" => Shape::Plain("Shape::Time"),
        "micro-time" => Shape::Plain("Shape::MicroTime"),
        "duration" => Shape::Plain("Shape::Duration"),
        "raw-extension" => Shape::Plain("Shape::Any(AnyKind::RawExtension)"),
        "fields-v1" => Shape::Plain("Shape::Any(AnyKind::FieldsV1)"),
        "json" => Shape::Plain("Shape::Any(AnyKind::Json)"),
        "schema-or-bool" => Shape::Plain("Shape::Any(AnyKind::SchemaOrBool)"),
        "schema-or-array" => Shape::Plain("Shape::Any(AnyKind::SchemaOrArray)"),
        "schema-or-strings" => Shape::Plain("Shape::Any(AnyKind::SchemaOrStrings)"),
        name if name.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase)) => {
            Shape::Struct(name.to_owned())
        }
        _ => return Err(position.error(format!("{text} is not a type"))),
    })
}

/// Takes a leading `(v1.Name)`. Returns the name, which is empty if there is none, and the rest.
fn named<'a>(text: &'a str, position: &SourcePosition) -> Result<(String, &'a str), Error> {
    let Some(rest) = text.strip_prefix('(') else { return Ok((String::new(), text)) };
    let (name, rest) = rest.split_once(')').ok_or_else(|| position.error(format!("{text} lacks a )")))?;
    Ok((name.to_owned(), rest))
}
