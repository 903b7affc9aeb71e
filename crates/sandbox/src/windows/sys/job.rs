//! Job objects.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, HANDLE, SetLastError};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_CPU_RATE_CONTROL_ENABLE,
    JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP, JOB_OBJECT_POST_AT_END_OF_JOB,
    JOBOBJECT_ASSOCIATE_COMPLETION_PORT, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_BASIC_UI_RESTRICTIONS, JOBOBJECT_CPU_RATE_CONTROL_INFORMATION,
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION_0, JOBOBJECT_END_OF_JOB_TIME_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS,
    JobObjectAssociateCompletionPortInformation, JobObjectBasicAccountingInformation,
    JobObjectBasicProcessIdList, JobObjectBasicUIRestrictions, JobObjectCpuRateControlInformation,
    JobObjectEndOfJobTimeInformation, JobObjectExtendedLimitInformation, OpenJobObjectW,
    QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::port::{JOB, Port};
use super::process::Process;
use super::sid::SddlDescriptor;
use super::{check, own, wide};
use crate::windows::job::{CpuRate, JobLimits};
use crate::windows::win32::{
    JOB_OBJECT_LIMIT_ACTIVE_PROCESS, JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_JOB_TIME,
};

/// Its processes die when this is dropped, or the process that holds it.
#[derive(Debug)]
pub struct Job(OwnedHandle);

/// More processes than the default limit.
const MOST_LISTED: usize = 1024;

/// What a job has counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    /// User and system, in units of 100 ns.
    pub time: u64,
    pub active: u32,
    pub peak_memory: u64,
    pub peak_process_memory: u64,
}

impl Job {
    /// Without a name: no other process can open it.
    pub fn new() -> io::Result<Job> {
        // SAFETY: neither attributes nor a name; the result is a new handle.
        let handle = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        Ok(Job(own(handle)?))
    }

    /// One that others of this user can measure and end by its name, and nothing more: not its own processes
    /// either, where no container keeps them from it.
    pub fn named(name: &str) -> io::Result<Job> {
        // QUERY, TERMINATE and SYNCHRONIZE for the user; the second entry is in place of what owners have by
        // themselves.
        let user = super::token::user()?;
        let security =
            SddlDescriptor::parse(&format!("D:P(A;;0x10000c;;;{user})(A;;0x10000c;;;S-1-3-4)"))?;
        let attributes = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: security.raw(),
            bInheritHandle: 0,
        };
        let name = wide(name);
        // SAFETY: the name ends in NUL; it, the attributes and their descriptor live through the call.
        let handle = unsafe {
            // A call that works need not touch it.
            SetLastError(0);
            CreateJobObjectW(&raw const attributes, name.as_ptr())
        };
        let is_others =
            io::Error::last_os_error().raw_os_error() == Some(ERROR_ALREADY_EXISTS.cast_signed());
        let job = Job(own(handle)?);
        match is_others {
            true => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            false => Ok(job),
        }
    }

    /// Opens the job of another launcher, to measure and to end it.
    pub fn open(name: &str) -> io::Result<Job> {
        const QUERY_AND_TERMINATE: u32 = 0x4 | 0x8;
        let name = wide(name);
        // SAFETY: the name ends in NUL; the result is a new handle.
        Ok(Job(own(unsafe { OpenJobObjectW(QUERY_AND_TERMINATE, 0, name.as_ptr()) })?))
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    fn set<T>(&self, class: JOBOBJECTINFOCLASS, value: &T) -> io::Result<()> {
        let at: *const T = value;
        // SAFETY: the pointer and the size are those of one live value of the class's structure.
        check(unsafe {
            SetInformationJobObject(self.raw(), class, at.cast::<c_void>(), size_of::<T>() as u32)
        })
    }

    fn get<T: Default>(&self, class: JOBOBJECTINFOCLASS) -> io::Result<T> {
        let mut value = T::default();
        let at: *mut T = &raw mut value;
        // SAFETY: the pointer and the size are those of one live value of the class's structure.
        check(unsafe {
            QueryInformationJobObject(
                self.raw(),
                class,
                at.cast::<c_void>(),
                size_of::<T>() as u32,
                std::ptr::null_mut(),
            )
        })?;
        Ok(value)
    }

    pub fn set_limits(&self, limits: JobLimits) -> io::Result<()> {
        let mut info = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        info.BasicLimitInformation.LimitFlags = limits.flags();
        info.BasicLimitInformation.ActiveProcessLimit = limits.processes.unwrap_or_default();
        info.BasicLimitInformation.PerJobUserTimeLimit = limits.user_time.unwrap_or_default();
        info.JobMemoryLimit =
            usize::try_from(limits.memory.unwrap_or_default()).unwrap_or(usize::MAX);
        self.set(JobObjectExtendedLimitInformation, &info)?;
        if limits.user_time.is_some() {
            // Otherwise the system ends the processes itself, each with ERROR_NOT_ENOUGH_QUOTA, and says nothing.
            let at_end = JOBOBJECT_END_OF_JOB_TIME_INFORMATION {
                EndOfJobTimeAction: JOB_OBJECT_POST_AT_END_OF_JOB,
            };
            // Systems without it end the processes; the supervisor knows their exit code.
            let _ = self.set(JobObjectEndOfJobTimeInformation, &at_end);
        }
        Ok(())
    }

    /// What the job says it has: its flags and limits.
    pub fn limits(&self) -> io::Result<(u32, JobLimits)> {
        let info: JOBOBJECT_EXTENDED_LIMIT_INFORMATION =
            self.get(JobObjectExtendedLimitInformation)?;
        let flags = info.BasicLimitInformation.LimitFlags;
        let limits = JobLimits {
            memory: (flags & JOB_OBJECT_LIMIT_JOB_MEMORY != 0)
                .then_some(info.JobMemoryLimit as u64),
            processes: (flags & JOB_OBJECT_LIMIT_ACTIVE_PROCESS != 0)
                .then_some(info.BasicLimitInformation.ActiveProcessLimit),
            user_time: (flags & JOB_OBJECT_LIMIT_JOB_TIME != 0)
                .then_some(info.BasicLimitInformation.PerJobUserTimeLimit),
        };
        Ok((flags, limits))
    }

    /// Sets the cap, and gives what was read back.
    pub fn cap_cpu(&self, CpuRate(rate): CpuRate) -> io::Result<u32> {
        let info = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION {
            ControlFlags: JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
            Anonymous: JOBOBJECT_CPU_RATE_CONTROL_INFORMATION_0 { CpuRate: rate },
        };
        self.set(JobObjectCpuRateControlInformation, &info)?;
        self.cpu_rate()
    }

    /// The cap it says it has.
    pub fn cpu_rate(&self) -> io::Result<u32> {
        let seen: JOBOBJECT_CPU_RATE_CONTROL_INFORMATION =
            self.get(JobObjectCpuRateControlInformation)?;
        // SAFETY: all members of the union are plain numbers of the same storage.
        Ok(unsafe { seen.Anonymous.CpuRate })
    }

    /// Sets the restrictions, and gives what was read back.
    pub fn restrict_ui(&self, restrictions: u32) -> io::Result<u32> {
        let info = JOBOBJECT_BASIC_UI_RESTRICTIONS { UIRestrictionsClass: restrictions };
        self.set(JobObjectBasicUIRestrictions, &info)?;
        self.ui()
    }

    /// The restrictions it says it has.
    pub fn ui(&self) -> io::Result<u32> {
        let seen: JOBOBJECT_BASIC_UI_RESTRICTIONS = self.get(JobObjectBasicUIRestrictions)?;
        Ok(seen.UIRestrictionsClass)
    }

    /// Has the job tell what happens in it.
    pub fn report_to(&self, port: &Port) -> io::Result<()> {
        let info = JOBOBJECT_ASSOCIATE_COMPLETION_PORT {
            CompletionKey: std::ptr::without_provenance_mut(JOB),
            CompletionPort: port.raw(),
        };
        self.set(JobObjectAssociateCompletionPortInformation, &info)
    }

    pub fn assign(&self, process: &Process) -> io::Result<()> {
        // SAFETY: both handles are owned by live values.
        check(unsafe { AssignProcessToJobObject(self.raw(), process.raw()) })
    }

    pub fn holds(&self, process: &Process) -> io::Result<bool> {
        let mut is_inside = 0;
        // SAFETY: both handles are owned by live values, the result is a live local.
        check(unsafe { IsProcessInJob(process.raw(), self.raw(), &raw mut is_inside) })?;
        Ok(is_inside != 0)
    }

    /// Ends everything in it, at once.
    pub fn terminate(&self, code: u32) -> io::Result<()> {
        // SAFETY: the handle is owned by `self`.
        check(unsafe { TerminateJobObject(self.raw(), code) })
    }

    /// What its processes have committed now, all together. One that ends meanwhile has none.
    pub fn committed(&self) -> io::Result<u64> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Processes {
            assigned: u32,
            listed: u32,
            ids: [usize; MOST_LISTED],
        }
        impl Default for Processes {
            fn default() -> Processes {
                Processes { assigned: 0, listed: 0, ids: [0; MOST_LISTED] }
            }
        }
        let list: Processes = self.get(JobObjectBasicProcessIdList)?;
        let ids = list.ids.iter().take(list.listed as usize);
        Ok(ids.filter_map(|id| super::process::committed(*id as u32).ok()).sum())
    }

    pub fn counted(&self) -> io::Result<Counted> {
        let basic: JOBOBJECT_BASIC_ACCOUNTING_INFORMATION =
            self.get(JobObjectBasicAccountingInformation)?;
        let extended: JOBOBJECT_EXTENDED_LIMIT_INFORMATION =
            self.get(JobObjectExtendedLimitInformation)?;
        Ok(Counted {
            time: (basic.TotalUserTime + basic.TotalKernelTime).cast_unsigned(),
            active: basic.ActiveProcesses,
            peak_memory: extended.PeakJobMemoryUsed as u64,
            peak_process_memory: extended.PeakProcessMemoryUsed as u64,
        })
    }
}

/// Whether this process is in a job already.
pub fn is_in_job() -> io::Result<bool> {
    let mut is_inside = 0;
    // SAFETY: the pseudo handle of this process is always valid, any job is meant, the result is a live local.
    check(unsafe {
        IsProcessInJob(GetCurrentProcess(), std::ptr::null_mut(), &raw mut is_inside)
    })?;
    Ok(is_inside != 0)
}
