//! Yes, no, or not to be known from the text.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tri {
    No,
    Maybe,
    Yes,
}

impl Tri {
    pub fn and(self, other: Tri) -> Tri {
        self.min(other)
    }

    pub fn or(self, other: Tri) -> Tri {
        self.max(other)
    }

    pub fn any(all: impl IntoIterator<Item = Tri>) -> Tri {
        all.into_iter().max().unwrap_or(Tri::No)
    }
}

impl From<bool> for Tri {
    fn from(known: bool) -> Tri {
        if known { Tri::Yes } else { Tri::No }
    }
}
