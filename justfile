# Everyday commands. `just` lists them. Each recipe is a plain command that also works without `just`.
# Use --workspace except in `kind` and `store`: otherwise cargo unifies the features of dependencies differently, and
# builds them again.

_list:
    @just --list --unsorted

# Runs a server on 127.0.0.1:6443 with these flags.
serve *flags:
    cargo run --release -- serve {{flags}}

# Checks types, also in tests.
check:
    cargo check --workspace --all-targets

# Formats all Rust files.
format:
    cargo fmt --all

# Runs clippy; every warning is an error.
lint:
    cargo clippy --workspace --all-targets --quiet -- -D warnings

# Runs unit tests of kinds, fields, patches and printing whose path contains NAME, without building the server.
kind name="":
    cargo test -p flotilla-objects -- {{name}}

# Runs unit tests of the store whose path contains NAME, without building the server.
store name="":
    cargo test -p flotilla-cluster --lib -- {{name}}

# Runs unit tests of all crates whose path contains NAME.
unit name="":
    cargo test --workspace --lib -- {{name}}

# Runs black-box tests whose path contains NAME.
black-box name="":
    cargo test --workspace --test black_box -- {{name}}

# Compares answers with those of Kubernetes, for these areas or scenarios, or for all.
agree *names:
    AGREEMENT_ONLY="{{names}}" cargo test --workspace --test agreement

# Runs the fault tests: faults under traffic, and a checker.
faults:
    cargo test --workspace --test faults

# Simulates the store under faults, for a range of seeds.
simulate seeds="1..101":
    .ci/simulate {{seeds}}

# Checks rules for the tree, without building a crate: style of sources, order of modules, links and lists in documents.
tree:
    .ci/tree

# Checks licences, bans and sources of dependencies.
deny:
    cargo deny --offline check licenses bans sources

# Runs copies of unit tests whose path contains NAME side by side, to find tests that fail on a busy machine.
stress name="":
    .ci/stress -- {{name}}

# Runs everything that a change must pass.
ci:
    .ci/run
