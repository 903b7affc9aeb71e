//! The unsafe part on Windows: calls that std does not wrap.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;
use std::os::windows::io::{FromRawHandle, IntoRawHandle};

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};
use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_QUERY, TokenIsAppContainer};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, GetFileType, PIPE_ACCESS_DUPLEX};
use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob,
};
use windows_sys::Win32::System::Pipes::CreateNamedPipeW;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_TERMINATE, TerminateProcess,
};

fn check(answer: i32) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens a process to end it, and does so where it is told to.
pub(crate) fn terminate(process: u32, really: bool) -> io::Result<()> {
    // SAFETY: numbers only; the handle is closed below.
    unsafe {
        let handle = OpenProcess(PROCESS_TERMINATE, 0, process);
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        let done = if really { check(TerminateProcess(handle, 137)) } else { Ok(()) };
        CloseHandle(handle);
        done
    }
}

/// One process, as the system lists them.
#[repr(C)]
struct Listed {
    size: u32,
    usage: u32,
    process: u32,
    heap: usize,
    module: u32,
    threads: u32,
    parent: u32,
    priority: i32,
    flags: u32,
    name: [u16; 260],
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateToolhelp32Snapshot(flags: u32, process: u32) -> HANDLE;
    fn Process32FirstW(snapshot: HANDLE, entry: *mut Listed) -> i32;
    fn Process32NextW(snapshot: HANDLE, entry: *mut Listed) -> i32;
}

/// Every other process of our own parent.
pub(crate) fn siblings() -> io::Result<Vec<u32>> {
    const PROCESSES: u32 = 2;
    let mut all = Vec::new();
    // SAFETY: the entry is a live local that says its own size; the handle is closed below.
    unsafe {
        let snapshot = CreateToolhelp32Snapshot(PROCESSES, 0);
        if snapshot.is_null() || snapshot.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        let mut entry: Listed = std::mem::zeroed();
        entry.size = size_of::<Listed>() as u32;
        let mut more = Process32FirstW(snapshot, &raw mut entry);
        while more != 0 {
            all.push((entry.process, entry.parent));
            more = Process32NextW(snapshot, &raw mut entry);
        }
        CloseHandle(snapshot);
    }
    let own = std::process::id();
    let parent = all.iter().find(|(process, _)| *process == own).map(|(_, parent)| *parent);
    let parent = parent.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let is_sibling = |(process, of): &(u32, u32)| *of == parent && *process != own;
    Ok(all.into_iter().filter(is_sibling).map(|(process, _)| process).collect())
}

/// Pipes of this name, as many as can be opened one after the other. They are there as long as the result is.
pub(crate) fn named_pipes(name: &str) -> io::Result<Vec<File>> {
    const INSTANCES: u32 = 8;
    const SIZE: u32 = 512;
    let name: Vec<u16> = format!(r"\\.\pipe\{name}").encode_utf16().chain([0]).collect();
    let make = |_| {
        // SAFETY: the name ends in NUL and lives through the call; no security of its own.
        let handle = unsafe {
            CreateNamedPipeW(
                name.as_ptr(),
                PIPE_ACCESS_DUPLEX,
                0,
                INSTANCES,
                SIZE,
                SIZE,
                0,
                std::ptr::null(),
            )
        };
        match handle.addr() == usize::MAX {
            true => Err(io::Error::last_os_error()),
            // SAFETY: a new handle that nothing else has.
            false => Ok(unsafe { File::from_raw_handle(handle) }),
        }
    };
    (0..INSTANCES).map(make).collect()
}

/// From now on Ctrl-C and Ctrl-Break are heard and not obeyed.
pub(crate) fn ignore_breaks() -> io::Result<()> {
    unsafe extern "system" fn heard(_: u32) -> i32 {
        1
    }
    // SAFETY: the handler is a function of this program, and stays.
    check(unsafe { SetConsoleCtrlHandler(Some(heard), 1) })
}

pub(crate) fn is_in_job() -> io::Result<bool> {
    let mut is_inside = 0;
    // SAFETY: the pseudo handle of this process, any job, a live local.
    check(unsafe {
        IsProcessInJob(GetCurrentProcess(), std::ptr::null_mut(), &raw mut is_inside)
    })?;
    Ok(is_inside != 0)
}

/// The job lives as long as this process.
pub(crate) fn enter_own_job() -> io::Result<()> {
    // SAFETY: neither attributes nor a name; the handle is kept open on purpose.
    unsafe {
        let job = CreateJobObjectW(std::ptr::null(), std::ptr::null());
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        check(AssignProcessToJobObject(job, GetCurrentProcess()))
    }
}

pub(crate) fn is_in_container() -> io::Result<bool> {
    let mut token: HANDLE = std::ptr::null_mut();
    let (mut answer, mut size) = (0u32, 0u32);
    // SAFETY: the pseudo handle of this process; the results are live locals of the sizes that are said; the
    // token is closed.
    unsafe {
        check(OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token))?;
        let asked = GetTokenInformation(
            token,
            TokenIsAppContainer,
            (&raw mut answer).cast(),
            4,
            &raw mut size,
        );
        CloseHandle(token);
        check(asked)?;
    }
    Ok(answer != 0)
}

/// What a handle of this number reads, where it is a file's.
pub(crate) fn read_handle(number: usize) -> io::Result<String> {
    let handle: HANDLE = std::ptr::without_provenance_mut(number);
    // SAFETY: the call fails on what is no handle.
    if unsafe { GetFileType(handle) } != FILE_TYPE_DISK {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    // SAFETY: only read from, and given back without being closed: whose it is we do not know.
    let file = unsafe { File::from_raw_handle(handle) };
    let mut bytes = [0; 64];
    let read = file.seek_read(&mut bytes, 0);
    let _ = file.into_raw_handle();
    let count = read?;
    Ok(String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned())
}
