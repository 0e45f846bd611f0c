# What one types every day. `just` lists it; the recipes are plain commands, to be typed without `just` as well.
# Always --workspace: otherwise cargo unifies the features of dependencies differently, and builds them again.

_list:
    @just --list --unsorted

# Runs a server on 127.0.0.1:6443, with flags as given.
serve *flags:
    cargo run --release -- serve {{flags}}

# Checks types, of tests as well.
check:
    cargo check --workspace --all-targets

# Formats everything.
format:
    cargo fmt --all

# What clippy has to say.
lint:
    cargo clippy --workspace --all-targets --quiet -- -D warnings

# Unit tests whose path contains NAME.
unit name="":
    cargo test --workspace --lib -- {{name}}

# Tests of the program from outside whose path contains NAME.
black-box name="":
    cargo test --workspace --test black_box -- {{name}}

# Compares with recorded answers of Kubernetes: areas or names of scenarios, all without any.
agree *names:
    AGREEMENT_ONLY="{{names}}" cargo test --workspace --test agreement

# Ten seconds of each fault under traffic.
faults:
    cargo test --workspace --test faults

# Simulates the store under faults, for some seeds.
simulate seeds="1..101":
    .ci/simulate {{seeds}}

# The style that can be checked.
tidy:
    cargo test --workspace --test tidy

# Licences, bans and sources of dependencies.
deny:
    cargo deny --offline check licenses bans sources

# Everything that a change must pass.
ci:
    .ci/run
