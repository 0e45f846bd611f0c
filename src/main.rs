//! The `flotilla` program.

mod cli;

/// A write makes and drops trees of hundreds of small parts: with the system's allocator that is a third of its cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    flotilla::large_pages::refuse();
    cli::run()
}
