//! Parts of a document that are made by a program, between two marks.

use crate::Result;

pub struct Marks {
    pub begin: &'static str,
    pub end: &'static str,
}

impl Marks {
    fn split<'a>(&self, document: &'a str) -> Result<(&'a str, &'a str, &'a str)> {
        let missing = |mark: &str| format!("the document has no {mark}");
        let (before, rest) = document.split_once(self.begin).ok_or_else(|| missing(self.begin))?;
        let (inside, after) = rest.split_once(self.end).ok_or_else(|| missing(self.end))?;
        Ok((before, inside, after))
    }

    pub fn between<'a>(&self, document: &'a str) -> Result<&'a str> {
        Ok(self.split(document)?.1)
    }

    pub fn replaced(&self, document: &str, table: &str) -> Result<String> {
        let (before, _, after) = self.split(document)?;
        Ok(format!("{before}{}\n{table}{}{after}", self.begin, self.end))
    }
}
