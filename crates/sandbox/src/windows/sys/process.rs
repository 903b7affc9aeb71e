//! Processes: started suspended, with nothing but what is listed.

use std::ffi::{OsStr, OsString, c_void};
use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, OwnedHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::Security::SECURITY_CAPABILITIES;
use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED,
    CREATE_UNICODE_ENVIRONMENT, CreateProcessAsUserW, CreateProcessW, DETACHED_PROCESS,
    DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess,
    InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST, OpenProcess,
    PROC_THREAD_ATTRIBUTE_CHILD_PROCESS_POLICY, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_JOB_LIST, PROC_THREAD_ATTRIBUTE_MITIGATION_POLICY,
    PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, PROC_THREAD_ATTRIBUTE_SECURITY_CAPABILITIES,
    PROCESS_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_TERMINATE, PROCESS_VM_READ,
    ResumeThread, STARTF_USESTDHANDLES, STARTUPINFOEXW, STARTUPINFOW, TerminateProcess,
    UpdateProcThreadAttribute, WaitForSingleObject,
};

use super::container::Container;
use super::desktop::Desktop;
use super::handles::Inheritable;
use super::job::Job;
use super::pty::PseudoConsole;
use super::token::Token;
use super::{check, own, wide};

const MITIGATIONS: u64 = {
    const HEAP_TERMINATE: u64 = 1 << 12;
    const BOTTOM_UP_ASLR: u64 = 1 << 16;
    const EXTENSION_POINTS_OFF: u64 = 1 << 32;
    const SYSTEM_FONTS_ONLY: u64 = 1 << 48;
    const NO_REMOTE_IMAGES: u64 = 1 << 52;
    HEAP_TERMINATE | BOTTOM_UP_ASLR | EXTENSION_POINTS_OFF | SYSTEM_FONTS_ONLY | NO_REMOTE_IMAGES
};
/// PROCESS_CREATION_CHILD_PROCESS_RESTRICTED.
const NO_CHILDREN: u32 = 1;

/// Everything about a process that is to be started.
pub struct Start<'a> {
    pub program: &'a OsStr,
    pub command_line: &'a OsStr,
    /// `NAME=value`, sorted.
    pub environment: &'a [OsString],
    pub directory: &'a OsStr,
    pub stdio: &'a [Inheritable; 3],
    pub job: &'a Job,
    pub token: Option<&'a Token>,
    pub container: Option<&'a Container>,
    /// None: the launcher's.
    pub desktop: Option<&'a Desktop>,
    pub children: Children,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    Allowed,
    Refused,
}

/// Whether the settings that every program stands were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mitigated {
    Yes,
    NotHere,
}

#[derive(Debug)]
pub struct Process {
    handle: OwnedHandle,
    pub id: u32,
}

/// In its job, and not one instruction of it done. Dropping it ends it.
#[derive(Debug)]
pub struct Suspended {
    process: Process,
    thread: OwnedHandle,
    is_let_go: bool,
    pub mitigated: Mitigated,
}

impl Start<'_> {
    /// Makes the process, puts it into its job and leaves it there, suspended.
    pub fn suspended(&self) -> io::Result<Suspended> {
        self.begin(None)
    }

    /// The same, with a console for its standard handles: it inherits none.
    pub fn suspended_in(&self, console: &PseudoConsole) -> io::Result<Suspended> {
        self.begin(Some(console))
    }

    fn begin(&self, console: Option<&PseudoConsole>) -> io::Result<Suspended> {
        let handles: Vec<HANDLE> = unique(self.stdio.iter().map(Inheritable::raw).collect());
        let jobs = [self.job.raw()];
        let policy = NO_CHILDREN;
        let mitigations = MITIGATIONS;
        let capabilities = self.container.map(Container::security);
        let mut attributes = Attributes::new(5)?;
        match console.map(PseudoConsole::attribute) {
            None => attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &handles[..])?,
            Some((value, size)) => {
                attributes.update(PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, value, size)?;
            }
        }
        // Where it is not accepted, assigning the suspended process does the same.
        let _ = attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, &jobs[..]);
        let mitigated =
            match attributes.set_one(PROC_THREAD_ATTRIBUTE_MITIGATION_POLICY, &mitigations) {
                Ok(()) => Mitigated::Yes,
                Err(_) => Mitigated::NotHere,
            };
        if self.children == Children::Refused {
            attributes.set_one(PROC_THREAD_ATTRIBUTE_CHILD_PROCESS_POLICY, &policy)?;
        }
        if let Some(capabilities) = &capabilities {
            let value: &SECURITY_CAPABILITIES = capabilities.value();
            attributes.set_one(PROC_THREAD_ATTRIBUTE_SECURITY_CAPABILITIES, value)?;
        }
        let (process, thread) = self.create(&attributes, console)?;
        drop(attributes);
        let suspended = Suspended { process, thread, is_let_go: false, mitigated };
        if !self.job.holds(&suspended.process)? {
            self.job.assign(&suspended.process)?;
        }
        match self.job.holds(&suspended.process)? {
            true => Ok(suspended),
            false => Err(io::Error::other("the process is not in its job")),
        }
    }

    fn create(
        &self,
        attributes: &Attributes,
        console: Option<&PseudoConsole>,
    ) -> io::Result<(Process, OwnedHandle)> {
        let program = wide(self.program);
        let mut line = wide(self.command_line);
        let directory = wide(self.directory);
        let mut environment: Vec<u16> = self.environment.iter().flat_map(wide).collect();
        environment.push(0);
        // With a console all three are null, otherwise the process would get the launcher's.
        let raw = |handle: &Inheritable| match console {
            None => handle.raw(),
            Some(_) => std::ptr::null_mut(),
        };
        let [input, output, error] = self.stdio.each_ref().map(raw);
        let startup = STARTUPINFOEXW {
            StartupInfo: STARTUPINFOW {
                cb: size_of::<STARTUPINFOEXW>() as u32,
                dwFlags: STARTF_USESTDHANDLES,
                // Only read; the type of the field does not say so.
                lpDesktop: self.desktop.map_or(std::ptr::null_mut(), |own| own.name().cast_mut()),
                hStdInput: input,
                hStdOutput: output,
                hStdError: error,
                ..STARTUPINFOW::default()
            },
            lpAttributeList: attributes.raw(),
        };
        // A hidden console of its own: in ours it could type. A program that may not make processes
        // gets none, since a console is one.
        let kind = match (console, self.children) {
            // Not a group of its own, which would not hear Ctrl-C.
            (Some(_), _) => 0,
            (None, Children::Allowed) => CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP,
            (None, Children::Refused) => DETACHED_PROCESS,
        };
        let inherits = i32::from(console.is_none());
        let flags =
            CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT | kind;
        let mut made = PROCESS_INFORMATION::default();
        let block = environment.as_ptr().cast::<c_void>();
        // SAFETY: all strings end in NUL and, with the environment, the startup structure and the attribute list
        // (whose values the caller keeps), live until the call returns; the command line is ours to be written
        // to; `made` is a live local.
        let answer = unsafe {
            match self.token {
                Some(token) => CreateProcessAsUserW(
                    token.raw(),
                    program.as_ptr(),
                    line.as_mut_ptr(),
                    std::ptr::null(),
                    std::ptr::null(),
                    inherits,
                    flags,
                    block,
                    directory.as_ptr(),
                    &raw const startup.StartupInfo,
                    &raw mut made,
                ),
                None => CreateProcessW(
                    program.as_ptr(),
                    line.as_mut_ptr(),
                    std::ptr::null(),
                    std::ptr::null(),
                    inherits,
                    flags,
                    block,
                    directory.as_ptr(),
                    &raw const startup.StartupInfo,
                    &raw mut made,
                ),
            }
        };
        check(answer)?;
        let (handle, thread) = (own(made.hProcess)?, own(made.hThread)?);
        Ok((Process { handle, id: made.dwProcessId }, thread))
    }
}

fn unique(mut handles: Vec<HANDLE>) -> Vec<HANDLE> {
    handles.sort();
    handles.dedup();
    handles
}

impl Suspended {
    pub fn resume(mut self) -> io::Result<Process> {
        let process = Process { handle: self.process.handle.try_clone()?, id: self.process.id };
        // SAFETY: the thread's handle is owned by `self`.
        match unsafe { ResumeThread(self.thread.as_raw_handle()) } {
            u32::MAX => Err(io::Error::last_os_error()),
            1 => {
                self.is_let_go = true;
                Ok(process)
            }
            count => Err(io::Error::other(format!("the process was suspended {count} times"))),
        }
    }

    /// Whether another process ended it before it ran.
    pub fn is_ended(&self, patience: Duration) -> io::Result<bool> {
        Ok(self.process.ended(patience)?.is_some())
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if !self.is_let_go {
            self.process.kill(1);
        }
    }
}

impl Process {
    pub(super) fn raw(&self) -> HANDLE {
        self.handle.as_raw_handle()
    }

    pub fn kill(&self, code: u32) {
        // SAFETY: the handle is owned by `self`. One that has ended refuses, which is as good.
        unsafe { TerminateProcess(self.raw(), code) };
    }

    /// Its exit code; waits at most this long for its end.
    pub fn ended(&self, patience: Duration) -> io::Result<Option<u32>> {
        let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX - 1);
        // SAFETY: the handle is owned by `self`.
        match unsafe { WaitForSingleObject(self.raw(), millis) } {
            WAIT_OBJECT_0 => {}
            WAIT_TIMEOUT => return Ok(None),
            _ => return Err(io::Error::last_os_error()),
        }
        let mut code = 0;
        // SAFETY: the handle is owned by `self`, the code is a live local.
        check(unsafe { GetExitCodeProcess(self.raw(), &raw mut code) })?;
        Ok(Some(code))
    }
}

/// The extra arguments of a process's creation. It keeps pointers to values that outlive it.
struct Attributes<'a> {
    list: Vec<u64>,
    values: std::marker::PhantomData<&'a ()>,
}

impl<'a> Attributes<'a> {
    fn new(count: u32) -> io::Result<Attributes<'a>> {
        let mut size = 0usize;
        // SAFETY: without a list the call only tells the size.
        unsafe { InitializeProcThreadAttributeList(std::ptr::null_mut(), count, 0, &raw mut size) };
        let mut list = vec![0u64; size.div_ceil(size_of::<u64>())];
        // SAFETY: the list has the size that was asked for, and the alignment of a pointer.
        check(unsafe {
            InitializeProcThreadAttributeList(list.as_mut_ptr().cast(), count, 0, &raw mut size)
        })?;
        Ok(Attributes { list, values: std::marker::PhantomData })
    }

    fn raw(&self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.list.as_ptr().cast_mut().cast()
    }

    fn set<T>(&mut self, attribute: u32, values: &'a [T]) -> io::Result<()> {
        self.update(attribute, values.as_ptr().cast(), size_of_val(values))
    }

    fn set_one<T>(&mut self, attribute: u32, value: &'a T) -> io::Result<()> {
        let at: *const T = value;
        self.update(attribute, at.cast(), size_of::<T>())
    }

    fn update(&mut self, attribute: u32, value: *const c_void, size: usize) -> io::Result<()> {
        // SAFETY: the list was initialised; the value has this size, and its lifetime is the list's.
        check(unsafe {
            UpdateProcThreadAttribute(
                self.raw(),
                0,
                attribute as usize,
                value,
                size,
                std::ptr::null_mut(),
                std::ptr::null(),
            )
        })
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        // SAFETY: it was initialised, and is not used afterwards.
        unsafe { DeleteProcThreadAttributeList(self.raw()) };
    }
}

/// Ends a process. One that has ended is as good.
pub fn terminate(process: BorrowedHandle<'_>, code: u32) -> io::Result<()> {
    // SAFETY: the handle is borrowed for the call.
    match check(unsafe { TerminateProcess(process.as_raw_handle(), code) }) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// PROCESS_MEMORY_COUNTERS.
#[repr(C)]
#[derive(Default)]
struct Memory {
    size: u32,
    faults: u32,
    peak_working_set: usize,
    working_set: usize,
    quotas: [usize; 4],
    committed: usize,
    peak_committed: usize,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn K32GetProcessMemoryInfo(process: HANDLE, memory: *mut Memory, size: u32) -> i32;
}

/// The memory that a process has committed, which is what limits count.
pub fn committed(id: u32) -> io::Result<u64> {
    // SAFETY: numbers only; the result is a new handle.
    let process = own(unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, id) })?;
    let size = size_of::<Memory>() as u32;
    let mut memory = Memory { size, ..Memory::default() };
    // SAFETY: the handle is owned by `process`; one structure of the size that is said, a live local.
    check(unsafe { K32GetProcessMemoryInfo(process.as_raw_handle(), &raw mut memory, size) })?;
    Ok(memory.committed as u64)
}

/// Tries to open a process, to end it and to read its memory.
pub fn open_other(id: u32) -> io::Result<()> {
    // SAFETY: numbers only; the result is a new handle.
    let handle = unsafe { OpenProcess(PROCESS_TERMINATE | PROCESS_VM_READ, 0, id) };
    own(handle).map(drop)
}

/// Tries to start this program outside of its job. Nothing of it ever runs.
pub fn break_away() -> io::Result<()> {
    start_self(CREATE_BREAKAWAY_FROM_JOB)
}

/// Tries to start this program once more. Nothing of it ever runs.
pub fn spawn() -> io::Result<()> {
    start_self(0)
}

fn start_self(flags: u32) -> io::Result<()> {
    let program = wide(std::env::current_exe()?);
    let startup = STARTUPINFOW { cb: size_of::<STARTUPINFOW>() as u32, ..STARTUPINFOW::default() };
    let mut made = PROCESS_INFORMATION::default();
    // SAFETY: the name ends in NUL and lives through the call, as do the two structures.
    check(unsafe {
        CreateProcessW(
            program.as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null(),
            std::ptr::null(),
            0,
            CREATE_SUSPENDED | DETACHED_PROCESS | flags,
            std::ptr::null(),
            std::ptr::null(),
            &raw const startup,
            &raw mut made,
        )
    })?;
    let (handle, thread) = (own(made.hProcess)?, own(made.hThread)?);
    drop(Suspended {
        process: Process { handle, id: made.dwProcessId },
        thread,
        is_let_go: false,
        mitigated: Mitigated::NotHere,
    });
    Ok(())
}
