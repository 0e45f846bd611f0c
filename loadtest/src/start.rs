//! Measures how long a server takes to become ready.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::{Call, Connector, Error};
use crate::limits;
use crate::process::Processes;
use crate::report::Figures;

/// Starts `command`, requests `/readyz` until it answers 200, and stops the process, with SIGKILL if `kills` is set.
pub async fn run(command: &[String], kills: bool, connector: &Arc<Connector>) -> Result<Figures, Error> {
    let (program, arguments) = command.split_first().ok_or(Error::Start("no command".into()))?;
    if connector.open().await.is_ok() {
        return Err(Error::Start("another server answers at this address already".into()));
    }
    let start = Instant::now();
    let mut child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let ready = wait(connector, start, &mut child).await;
    let processes = Processes { pids: vec![child.id()] };
    let usage = processes.cpu_seconds().ok().zip(processes.resident_kib().ok());
    if kills {
        child.kill()?;
    }
    stop(&mut child)?;
    let seconds = ready?.as_secs_f64();
    Ok(Figures {
        row: "start".into(),
        clients: 1,
        operations: 1,
        seconds,
        per_second: 1.0 / seconds,
        cpu_us: usage.map(|(cpu, _)| cpu * 1e6),
        resident_kib: usage.map(|(_, resident)| resident),
        ..Figures::default()
    })
}

async fn wait(connector: &Arc<Connector>, start: Instant, child: &mut std::process::Child) -> Result<Duration, Error> {
    while start.elapsed() < limits::START_WAIT {
        if let Some(status) = child.try_wait()? {
            return Err(Error::Start(format!("the server ended: {status}")));
        }
        if let Ok(mut client) = connector.open().await
            && let Ok(answer) = client.call(&Call::get("/readyz")).await
            && answer.status.is_success()
        {
            return Ok(start.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err(Error::Timeout)
}

/// Sends SIGTERM, and SIGKILL if the process has not ended after ten seconds.
fn stop(child: &mut std::process::Child) -> std::io::Result<()> {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    for _ in 0..100 {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill()?;
    child.wait().map(drop)
}
