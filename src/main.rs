//! The `flotilla` program.

mod cli;

/// A write allocates and frees trees of hundreds of small parts. With the system's allocator this would be a third of
/// its cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    flotilla::large_pages::disable();
    cli::run()
}
