//! The `flotilla` program.

mod cli;

/// A write allocates and frees trees of hundreds of small parts, a third of its cost with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    flotilla::large_pages::disable();
    cli::run()
}
