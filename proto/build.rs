//! Turns the text of the catalogue into static tables.

#[path = "build/emit.rs"]
mod emit;
#[path = "build/mirror.rs"]
mod mirror;
#[path = "build/model.rs"]
mod model;
#[path = "build/parse.rs"]
mod parse;
#[path = "build/resolve.rs"]
mod resolve;

use std::path::{Path, PathBuf};

use model::{Error, SourcePosition};

fn main() {
    println!("cargo::rerun-if-changed=catalogue");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=build.rs");
    match tables(Path::new("catalogue")) {
        Ok(source) => {
            let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
            std::fs::write(folder.join("catalogue.rs"), source).expect("OUT_DIR can be written");
        }
        Err(error) => {
            println!("cargo::error={error}");
            std::process::exit(1);
        }
    }
}

fn tables(folder: &Path) -> Result<String, Error> {
    let none = |error: std::io::Error| {
        SourcePosition { file: folder.display().to_string(), line: 0 }.error(format!("cannot read: {error}"))
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).map_err(none)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let mut packages = Vec::new();
    let mut groups = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(none)?;
        let name = format!("proto/{}", file.display());
        if file.ends_with("groups.txt") {
            groups = parse::groups(&name, &text)?;
        } else {
            packages.extend(parse::packages(&name, &text)?);
        }
    }
    mirror::expand(&mut packages)?;
    emit::tables(&packages, &groups)
}
