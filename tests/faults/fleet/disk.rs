//! A disk for one member, which tests can fill and freeze: a file system in a file, mounted so that only the member
//! sees it.
//!
//! Mounting and freezing file systems requires root. A frozen file system blocks every write and fsync until it thaws.
//! Freezing it again and again makes a slow disk.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Space for the segments that the log always keeps, and some more.
const DISK_BYTES: u64 = 160 << 20;
/// The size of one write that fills the disk.
const FILLING_BYTES: usize = 1 << 20;
/// The largest free space of a full disk.
const CRUMB_BYTES: usize = 4 << 10;

/// Mounts a disk of `$3` bytes, kept in the file `$2`, at `$1`. Each line of input is a number of seconds for which the
/// script freezes the disk.
const SCRIPT: &str = r#"
mkdir -p "$1" && truncate -s "$3" "$2" && mke2fs -q -F -m 0 -t ext4 "$2" && mount -o loop "$2" "$1" || exit 99
echo mounted
while read -r seconds; do
    fsfreeze --freeze "$1" && sleep "$seconds"
    fsfreeze --unfreeze "$1"
    echo passed
done
"#;

/// A mounted disk. It is unmounted once this value is dropped and every process that was started on it has ended.
pub struct Disk {
    holder: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    mount_point: PathBuf,
}

impl Disk {
    /// Makes a disk in a directory.
    ///
    /// # Errors
    /// States why this machine cannot make one.
    pub fn make(directory: &Path, name: &str) -> Result<Disk, String> {
        let (mount_point, image) = (directory.join(name), directory.join(format!("{name}.image")));
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", SCRIPT, "sh"]).arg(&mount_point).arg(&image).arg(DISK_BYTES.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|error| error.to_string())?;
        let (orders, answers) = (holder.stdin.take(), holder.stdout.take().expect("a pipe"));
        let mut disk = Disk { holder, orders, answers: BufReader::new(answers), mount_point };
        match disk.answer().as_str() {
            "mounted" => Ok(disk),
            _ => {
                let mut why = String::new();
                let messages = disk.holder.stderr.take().expect("a pipe");
                BufReader::new(messages).lines().map_while(Result::ok).for_each(|line| why.push_str(&line));
                Err(why)
            }
        }
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        let _ = self.answers.read_line(&mut line); // the line stays empty if the script has ended
        line.trim_end().to_owned()
    }

    /// Returns the path of the mount point, as processes on the disk see it.
    pub fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// Returns the path of a file on the disk, as other processes see it.
    pub fn outside(&self, inside: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(inside.strip_prefix("/").expect("an absolute path"))
    }

    /// Returns a command that runs a program where the disk is mounted.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id())).arg("--").arg(program);
        command
    }

    fn filling(&self) -> PathBuf {
        self.outside(&self.mount_point.join("filling"))
    }

    /// Fills the disk.
    pub fn fill(&self) {
        let mut file = File::create(self.filling()).expect("a file");
        let mut length = FILLING_BYTES;
        while length >= CRUMB_BYTES {
            if file.write_all(&vec![1; length]).is_err() {
                length /= 2;
            }
        }
        file.sync_all().expect("a disk");
    }

    /// Frees the space that `fill` took.
    pub fn empty(&self) {
        fs::remove_file(self.filling()).expect("a full disk");
    }

    /// Freezes the disk for some time.
    pub fn hold_up(&mut self, time: Duration) {
        let orders = self.orders.as_mut().expect("the script runs");
        writeln!(orders, "{}", time.as_secs_f64()).expect("a disk");
        assert_eq!(self.answer(), "passed");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.orders.take(); // lets the script finish its current line and end
        let _ = self.holder.wait();
    }
}
