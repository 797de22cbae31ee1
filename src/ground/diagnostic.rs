//! Diagnostics: mistakes in a recipe or a launch, in the user's own terms, with stable codes.

use core::fmt;

/// `Debug` of an error is its `Display`: `fn main() -> Result<(), _>` and `unwrap` show a message and not a struct.
macro_rules! debug_as_display {
    ($name:ident) => {
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use debug_as_display;

macro_rules! codes {
    ($($variant:ident = $code:literal, $title:literal;)*) => {
        /// The subject of a diagnostic. The text form (`CT007`) is stable: a code is never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable text form.
            pub fn code(self) -> &'static str {
                match self { $(Code::$variant => $code,)* }
            }

            /// The mistake, in one line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }
        }
    };
}

codes! {
    UnknownSetting = "CT001", "the recipe has no such setting";
    BadValue = "CT002", "the value of a setting cannot be read";
    ThreadLayout = "CT003", "the thread layout does not number the threads once each";
    ValueLayout = "CT004", "the value layout does not number the values once each";
    VectorWidth = "CT005", "the vector is not a load or store that the GPU has";
    VectorContiguity = "CT006", "a thread's values are not contiguous for a whole vector";
    VectorAlignment = "CT007", "a vector can start at an address that is not aligned to it";
    ThreadCount = "CT008", "the thread count is outside what a block can have";
    Registers = "CT009", "the values of one thread do not fit in its registers";
    SharedMemory = "CT010", "shared memory of one block is exceeded";
    CoversOnce = "CT011", "the tile is not covered exactly once";
    InBounds = "CT012", "a thread's value lies outside the tile";
    TileType = "CT013", "the tile does not fit the element type";
    Unroll = "CT014", "the vectors in flight do not divide the vectors of a thread";
    TileSize = "CT015", "the tile is empty or too large";
    Name = "CT016", "the kernel's name is not an identifier";
    TensorCount = "CT017", "the tensors are not those of the function";
    TensorRank = "CT018", "the tensors have different ranks";
    TensorStride = "CT019", "a tensor cannot have these strides";
    MixedTypes = "CT020", "integers and floats meet without a compute type";
    Expression = "CT021", "the kernel cannot have this function";
    Variant = "CT022", "the variant cannot have these tensors or tiles";
    BankConflict = "CT023", "threads of a warp meet in a bank of shared memory";
    TileDivides = "CT024", "a tile does not divide evenly over its threads";
    BadSwizzle = "CT025", "the swizzle does not fit the tile";
    Stages = "CT026", "the stages do not make a pipeline";
    SplitK = "CT027", "K cannot be split so";
    Instruction = "CT028", "an architecture lacks the kernel's instructions";
    Family = "CT029", "the recipe is none of its family";
    Declaration = "CT030", "the declaration of an entry cannot be read";
    ViewCount = "CT101", "the number of views is wrong";
    ViewType = "CT102", "a view has another element type than the kernel";
    ViewAccess = "CT103", "a view has another access than the kernel needs";
    ViewExtent = "CT104", "an extent is negative";
    ViewLeadingDimension = "CT105", "a stride is too small, so that elements share memory";
    ViewAlignment = "CT106", "a view is not aligned to its element";
    ViewMemory = "CT107", "a view reaches past its memory";
    ViewOverlap = "CT108", "an output overlaps another tensor";
    ViewShape = "CT109", "views of one problem have different shapes";
    ProblemTooLarge = "CT110", "the problem is too large for the kernel's index types or the grid";
    ViewStride = "CT111", "a view has other strides than the kernel was generated for";
    ScalarCount = "CT112", "the number of run-time scalars is wrong";
    Demand = "CT113", "a launch does not meet what the kernel was declared with";
    SeveralTexts = "CT114", "a launch is of one text, and the plan has several";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

/// Whether there is a kernel all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// There is none.
    #[default]
    Error,
    /// There is, and it is slower than it could be.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// A field of a message; further lines are indented under the first.
pub(crate) fn field(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    for (i, line) in text.trim_end().lines().enumerate() {
        let name = if i == 0 { name } else { "" };
        write!(f, "\n  {name:<9} {line}")?;
    }
    Ok(())
}

/// One thing that is wrong, with what would be right.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// Whether there is a kernel all the same.
    pub severity: Severity,
    /// Which check failed.
    pub code: Code,
    /// The kernel, where one is to be launched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The recipe in its `Debug` form, and the architecture where that matters.
    pub recipe: String,
    /// The actual value. A second line may mark a place in it by `^`, with a remark behind.
    #[serde(serialize_with = "without_mark")]
    pub found: String,
    /// The required value.
    pub required: String,
    /// Why it has to.
    pub because: String,
    /// What to do.
    pub help: String,
}

/// The text on one line: a mark is for who sees the text above it, a remark is for all.
fn flat(text: &str) -> String {
    let mut flat = String::new();
    for line in text.lines() {
        let part = line.trim_start().trim_start_matches('^').trim_start();
        if !flat.is_empty() && !part.is_empty() {
            flat.push_str(if part.len() < line.trim_start().len() { ": " } else { " " });
        }
        flat.push_str(part);
    }
    flat
}

fn without_mark<S: serde::Serializer>(found: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&flat(found))
}

impl Diagnostic {
    /// On one line, for where a message is a line.
    pub fn one_line(&self) -> String {
        let Self { severity, code, kernel, found, required, because, help, .. } = self;
        let title = code.title();
        let found = flat(found);
        let of = kernel.as_ref().map_or_else(String::new, |kernel| format!("kernel `{kernel}`: "));
        let text = format!(
            "{severity}[{code}]: {of}{title}: found {found}; required {required}, because {because}; help: {help}"
        );
        text.replace('\n', " ")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.code, self.code.title())?;
        if let Some(kernel) = &self.kernel {
            field(f, "kernel:", kernel)?;
        }
        field(f, "recipe:", &self.recipe)?;
        field(f, "found:", &self.found)?;
        field(f, "required:", &self.required)?;
        field(f, "because:", &self.because)?;
        field(f, "help:", &self.help)
    }
}

/// Everything that is wrong, in order: at least one diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// `None` where there are none.
    pub fn new(found: Vec<Diagnostic>) -> Option<Self> {
        (!found.is_empty()).then_some(Self(found))
    }

    /// Fails where anything was found.
    pub(crate) fn refuse(found: Vec<Diagnostic>) -> Result<(), Self> {
        Self::new(found).map_or(Ok(()), Err)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl core::ops::Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

/// A mistake of cutemplate's own. The user's input may be right.
#[derive(Clone, PartialEq, Eq, serde::Serialize)]
pub struct Defect {
    /// What went wrong, in terms of cutemplate's own parts.
    pub what: String,
    /// With what: the recipe in its `Debug` form, or the kernel.
    pub with: String,
}

debug_as_display!(Defect);

impl Defect {
    pub(crate) fn new(what: impl Into<String>, with: impl Into<String>) -> Self {
        Self { what: what.into(), with: with.into() }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BECAUSE: &str =
            concat!("this is a mistake of cutemplate ", env!("CARGO_PKG_VERSION"), ", and none of yours");
        write!(f, "error[defect]: {}", self.what)?;
        field(f, "with:", &self.with)?;
        field(f, "because:", BECAUSE)?;
        field(f, "help:", concat!("report it with this text: ", env!("CARGO_PKG_REPOSITORY"), "/issues"))
    }
}

impl core::error::Error for Defect {}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq)]
            pub enum $name {
                /// Every reason, in order.
                Refused(Diagnostics),
                /// A mistake of cutemplate's own.
                Defect(Defect),
            }

            impl $name {
                /// The reasons, in order; none where it is a defect.
                pub fn diagnostics(&self) -> &[Diagnostic] {
                    match self {
                        Self::Refused(all) => all,
                        Self::Defect(_) => &[],
                    }
                }
            }

            impl From<Diagnostics> for $name {
                fn from(all: Diagnostics) -> Self {
                    Self::Refused(all)
                }
            }

            impl From<Diagnostic> for $name {
                fn from(one: Diagnostic) -> Self {
                    Self::Refused(one.into())
                }
            }

            impl From<Defect> for $name {
                fn from(defect: Defect) -> Self {
                    Self::Defect(defect)
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    match self {
                        Self::Refused(all) => write!(f, "{all}"),
                        Self::Defect(defect) => write!(f, "{defect}"),
                    }
                }
            }

            debug_as_display!($name);

            impl core::error::Error for $name {}
        )*
    };
}

refusals! {
    /// There is no plan for a recipe.
    PlanError;
    /// There is no launch with these views.
    BindError;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        let texts: Vec<&str> = Code::ALL.iter().map(|c| c.code()).collect();
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(texts, sorted);
    }
}
