//! The records of running sandboxes: one file each, in a directory of this user's.
//!
//! The launcher holds its file open, and the system removes it with the launcher, whatever that ends by. A record
//! says a name only: what is measured and ended is the job of that name, never a process by its number.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::core::error::Error;
use crate::core::run_record::{NetworkTotals, Record, RunId, Stats};
use crate::windows::sys::job::Job;
use crate::windows::undo_log;
use crate::windows::win32::{DELETE, ERROR_SHARING_VIOLATION};
use mcp_net::broker::Meter;

/// A larger file is none of ours.
const LARGEST: u64 = 1 << 20;
const ATTEMPTS: usize = 8;
/// How long a launcher may take to clean up after its sandbox was killed.
const LEAVING: Duration = Duration::from_secs(10);
/// As a shell would say it of one that was killed.
const KILLED: u32 = 137;
/// What is written down later is not longer than this.
const PADDING: usize = 16;

const FILE_SHARE_READ: u32 = 1;
/// FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE.
const SHARE_ALL: u32 = 7;
const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
const GENERIC_READ: u32 = 0x8000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;

/// A new job, and the name by which others of this user find it.
pub fn new_job() -> io::Result<(RunId, Job)> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let id = RunId::random();
        match Job::named(&job_name(&id)) {
            Ok(job) => return Ok((id, job)),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn job_name(id: &RunId) -> String {
    format!(r"Local\mcp-run-{id}")
}

/// A record as long as it is there: gone when dropped.
pub struct HeldRecord {
    file: File,
    record: Record,
    /// The record always has this length; the counters of the network follow it.
    length: usize,
}

impl HeldRecord {
    /// Lists a run whose command is about to start. A machine without a place for records has a run that is not
    /// listed, and nothing else.
    pub fn begin(id: &RunId, command: Vec<String>) -> Option<HeldRecord> {
        let directory = undo_log::directory();
        fs::create_dir_all(&directory).ok()?;
        let record = Record {
            id: id.clone(),
            command,
            since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            launcher: std::process::id(),
            init: 0,
            init_started: 0,
            cgroup: None,
        };
        let file = OpenOptions::new()
            .access_mode(GENERIC_READ | GENERIC_WRITE | DELETE)
            .create_new(true)
            .write(true)
            .share_mode(FILE_SHARE_READ)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
            .open(directory.join(format!("{id}.json")))
            .ok()?;
        let length = serde_json::to_vec(&record).ok()?.len() + PADDING;
        let listed = HeldRecord { file, record, length };
        listed.write().ok()?;
        Some(listed)
    }

    fn write(&self) -> io::Result<()> {
        let mut line = serde_json::to_vec(&self.record)?;
        line.resize(self.length, b' ');
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&line)
    }

    /// The command is this process.
    pub fn started(&mut self, process: u32) {
        self.record.init = process;
        // A reader refuses half a record.
        let _ = self.write();
    }

    /// Writes the counters of the network behind the record, always as long as before.
    pub fn meter(&self) -> Option<Meter> {
        use std::os::windows::fs::FileExt;
        let (file, at) = (self.file.try_clone().ok()?, self.length as u64);
        Some(Box::new(move |totals| {
            let NetworkTotals { connections, bytes_out, bytes_in } = totals;
            let line = format!("\n{connections:20} {bytes_out:20} {bytes_in:20}\n");
            // A meter that stands still is no reason to stop anything.
            let _ = file.seek_write(line.as_bytes(), at);
        }))
    }
}

pub fn list() -> Result<Vec<(Record, RunHandle)>, Error> {
    let Ok(entries) = fs::read_dir(undo_log::directory()) else { return Ok(Vec::new()) };
    Ok(entries.flatten().filter_map(|entry| open(entry.path())).collect())
}

/// A record whose launcher lives. One that is stale is removed.
fn open(path: PathBuf) -> Option<(Record, RunHandle)> {
    let name = path.file_name()?.to_str()?;
    let id = RunId::parse(name.strip_suffix(".json")?)?;
    if !is_held(&path) {
        let _ = fs::remove_file(&path);
        return None;
    }
    let text = text(&path)?;
    let record: Record = serde_json::from_slice(text.split(|b| *b == b'\n').next()?).ok()?;
    (record.id == id).then_some((record, RunHandle { path }))
}

fn text(path: &PathBuf) -> Option<Vec<u8>> {
    let file = OpenOptions::new().read(true).share_mode(SHARE_ALL).open(path).ok()?;
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Whether a launcher has it open: then no other process can open it for writing.
fn is_held(path: &PathBuf) -> bool {
    let opened = OpenOptions::new().write(true).share_mode(SHARE_ALL).open(path);
    opened.is_err_and(|e| e.raw_os_error() == Some(ERROR_SHARING_VIOLATION))
}

/// The line behind the record, where the run has a meter.
fn counters(text: &[u8]) -> Option<NetworkTotals> {
    let line = std::str::from_utf8(text.split(|b| *b == b'\n').nth(1)?).ok()?;
    let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [connections, bytes_out, bytes_in] = numbers[..] else {
        return None;
    };
    Some(NetworkTotals { connections, bytes_out, bytes_in })
}

pub struct RunHandle {
    path: PathBuf,
}

impl RunHandle {
    pub fn stats(&self, record: &Record) -> Stats {
        let network = text(&self.path).as_deref().and_then(counters);
        let Ok(job) = Job::open(&job_name(&record.id)) else {
            return Stats { network, ..Stats::default() };
        };
        let counted = job.counted().unwrap_or_default();
        let (_, limits) = job.limits().unwrap_or_default();
        Stats {
            memory_bytes: job.committed().ok().filter(|bytes| *bytes > 0),
            max_memory_bytes: Some(counted.peak_memory).filter(|bytes| *bytes > 0),
            memory_limit_bytes: limits.memory,
            cpu_seconds: Some(counted.time as f64 / 1e7),
            processes: Some(counted.active.into()),
            process_limit: limits.processes.map(u64::from),
            network,
            ..Stats::default()
        }
    }

    /// Ends everything in the job; its launcher sees that and cleans up.
    pub fn kill(&self, record: &Record) -> io::Result<()> {
        if !is_held(&self.path) {
            return Ok(());
        }
        let job = match Job::open(&job_name(&record.id)) {
            Ok(job) => job,
            // Gone in this moment.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return self.wait_for_end(),
            Err(e) => return Err(e),
        };
        job.terminate(KILLED)?;
        self.wait_for_end()
    }

    fn wait_for_end(&self) -> io::Result<()> {
        let until = Instant::now() + LEAVING;
        while is_held(&self.path) {
            if Instant::now() > until {
                return Err(io::Error::other("it was killed, but its launcher does not end"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}
