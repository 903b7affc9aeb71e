//! The command's three standard handles: the caller's own, or pipes with a copy of ours behind them.

use std::io;
use std::time::Instant;

use crate::core::request::Stdio;
use crate::windows::stdio_copy::{DRAIN, Input, Output};
use crate::windows::sys::handles::{self, Inheritable};

pub struct Streams {
    pub inside: [Inheritable; 3],
    input: Option<io::PipeWriter>,
    outputs: Vec<(usize, io::PipeReader)>,
}

impl Streams {
    /// Where there is a timeout, the input is one that can be closed.
    pub fn prepare(stdio: &[Stdio; 3], has_timeout: bool) -> io::Result<Streams> {
        let (mut input, mut outputs) = (None, Vec::new());
        let mut inside = Vec::new();
        for (number, kind) in stdio.iter().enumerate() {
            let is_direct = *kind == Stdio::Direct && !(number == 0 && has_timeout);
            if is_direct {
                inside.push(Inheritable::of(&handles::duplicate(number)?)?);
                continue;
            }
            let (reader, writer) = io::pipe()?;
            if number == 0 {
                inside.push(Inheritable::of(&reader)?);
                input = Some(writer);
            } else {
                inside.push(Inheritable::of(&writer)?);
                outputs.push((number, reader));
            }
        }
        let inside = inside.try_into().map_err(|_| io::Error::other("three handles"))?;
        Ok(Streams { inside, input, outputs })
    }

    /// The command has a console instead.
    pub fn forget(self) -> (Option<Input>, Outputs) {
        (None, Outputs(Vec::new()))
    }

    /// Begins to copy, once the command has its ends.
    pub fn relay(self) -> (Option<Input>, Outputs) {
        drop(self.inside);
        let outputs = self.outputs.into_iter();
        let outputs = outputs.map(|(number, from)| Output::start(number, from)).collect();
        (self.input.map(Input::start), Outputs(outputs))
    }
}

pub struct Outputs(Vec<Output>);

impl Outputs {
    /// Passes on what was written before the end.
    pub fn finish(&self) {
        let until = Instant::now() + DRAIN;
        self.0.iter().for_each(|output| output.finish(until));
    }
}
