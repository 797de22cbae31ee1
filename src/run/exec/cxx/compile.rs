//! From a kernel's text to an executable: which commands, with which options, in which order.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cutlass_sys::{Family, HostToolchain};

use super::error::{self, Failure, FailureKind, not_elf};
use super::program::Source;
use super::runtime::{CxxFile, OVERLAY, RUNTIME, SHIM};
use super::{Mode, declared, elf};
use crate::arch::Arch;
use crate::digest::Digest;
use crate::exec::Error;
use crate::store::{self, Checked, Entry, Stage, Store, failed};

/// The file of an entry.
const PROGRAM: &str = "program";

/// Library functions that no compiler instruments: checked modes look at their arguments.
const LIBRARY: [&str; 3] = ["memcpy", "memmove", "memset"];

/// What dynamic shared memory is aligned to where its type does not tell: the widest vector of one thread.
const VECTOR: u64 = Arch::MAX_VECTOR.0;

const GNU_ASAN: [&str; 6] = [
    "--param",
    "asan-instrumentation-with-call-threshold=0",
    "--param",
    "asan-globals=0",
    "--param",
    "asan-use-after-return=0",
];
const CLANG_ASAN: [&str; 6] = [
    "-mllvm",
    "-asan-instrumentation-with-call-threshold=0",
    "-mllvm",
    "-asan-globals=0",
    "-mllvm",
    "-asan-use-after-return=never",
];

/// Compiles kernels for one mode.
pub(super) struct Compiler<'a> {
    pub(super) tools: &'a HostToolchain,
    pub(super) mode: Mode,
}

impl Compiler<'_> {
    /// What the executable is made of.
    pub(super) fn key(&self, source: Source<'_>) -> String {
        let mut parts: Vec<Vec<u8>> = vec![source.entries().count().to_string().into()];
        parts.extend(source.entries().map(Into::into));
        let texts = source.files.iter().flat_map(|file| [file.name.as_bytes(), compiled(&file.text).as_bytes()]);
        parts.extend(texts.map(<[u8]>::to_vec));
        self.digest(parts)
    }

    /// The digest of these parts and of everything but the kernel.
    pub(super) fn digest(&self, mut parts: Vec<Vec<u8>>) -> String {
        let own = SHIM.iter().chain(RUNTIME).flat_map(|file| [file.name, file.text]);
        parts.extend([store::FORMAT, elf::PLACEMENT].into_iter().chain(own).map(Into::into));
        let HostToolchain { cxx, cutlass, cuda, .. } = self.tools;
        parts.push(cxx.path.as_os_str().as_encoded_bytes().to_vec());
        let versions = [format!("{:?} {}", cxx.family, cxx.version), format!("{} {}", cutlass.version, cuda.version)];
        parts.extend(versions.map(Into::into));
        parts.extend(self.include_dirs().map(|dir| dir.as_os_str().as_encoded_bytes().to_vec()));
        parts.extend(self.kernel_flags().into_iter().chain(self.runtime_flags()).map(Into::into));
        parts.extend(self.link_flags().into_iter().map(Into::into));
        Digest::of_parts(parts.iter().map(Vec::as_slice)).to_string()
    }

    fn include_dirs(&self) -> impl Iterator<Item = &Path> {
        let cuda = self.tools.cuda.include_dirs.iter().map(PathBuf::as_path);
        std::iter::once(self.tools.cutlass.include.as_path()).chain(cuda)
    }

    pub(super) fn gnu(&self) -> bool {
        self.tools.cxx.family == Family::Gnu
    }

    fn common_flags(&self) -> Vec<&'static str> {
        let mut flags = vec!["-std=c++17", "-w", "-fno-pie", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
        flags.extend(["-fdata-sections", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fno-strict-aliasing"]);
        // Shared memory is the program's own thread-local storage.
        flags.push("-ftls-model=local-exec");
        if self.gnu() {
            // `extern` shared memory has no initializer, so it needs no call to find it.
            flags.push("-fno-extern-tls-init");
        }
        if cfg!(target_arch = "x86_64") {
            // Fibers switch stacks by `ret`.
            flags.push("-fcf-protection=none");
        }
        flags
    }

    fn kernel_flags(&self) -> Vec<&'static str> {
        let mut flags = self.common_flags();
        // Products and sums are rounded one by one, on every processor alike.
        flags.push("-ffp-contract=off");
        // The addr2line of binutils 2.40 takes the first file of DWARF 5 for the translation unit's own.
        flags.push("-gdwarf-4");
        // Lines and inlined calls are wanted, not types and variables: CuTe's are up to a fifth of the time.
        flags.push("-g1");
        if self.gnu() {
            // One translation unit of CuTe fits in this many KiB: to collect garbage before is a tenth of the time.
            flags.extend(["--param", "ggc-min-heapsize=1048576"]);
        }
        match (self.mode, self.gnu()) {
            // Vectorizers raise the alignment of the arrays that they load from.
            (Mode::Plain, _) => flags.extend(["-O2", "-fno-tree-vectorize", "-fsanitize=alignment"]),
            (Mode::Bounds, gnu) => {
                flags.extend(["-O1", "-fsanitize=address,undefined"]);
                // Checks of each `this` double the time to compile; what they find, the others or the MMU find.
                flags.push("-fno-sanitize=null,object-size,vptr");
                // Scopes that end in each turn of a loop would be marked in each turn, at twenty times the run time.
                flags.push("-fno-sanitize-address-use-after-scope");
                // Every access is checked by a call, which the linker can send elsewhere. A kernel's globals are
                // constants.
                flags.extend(if gnu { GNU_ASAN } else { CLANG_ASAN });
            }
            (Mode::Races, _) => flags.extend(["-O1", "-fsanitize=thread,alignment"]),
        }
        flags
    }

    fn runtime_flags(&self) -> Vec<&'static str> {
        let mut flags = self.common_flags();
        flags.extend(["-O2", "-fwrapv"]);
        flags.push(match self.mode {
            Mode::Plain => "-DCUTEMPLATE_HOST_MODE=0",
            Mode::Bounds => "-DCUTEMPLATE_HOST_MODE=1",
            Mode::Races => "-DCUTEMPLATE_HOST_MODE=2",
        });
        flags
    }

    fn link_flags(&self) -> Vec<String> {
        let mut flags = vec!["-no-pie".to_owned()];
        if self.mode != Mode::Plain {
            flags.extend(LIBRARY.map(|f| format!("-Wl,--wrap={f}")));
        }
        if self.mode == Mode::Bounds {
            flags.push("-fsanitize=address,undefined".to_owned());
            flags.push("-Wl,--wrap=__ubsan_handle_type_mismatch_v1".to_owned());
            for access in ["load", "store"] {
                let sizes = ["1", "2", "4", "8", "16", "N"];
                flags.extend(sizes.map(|size| format!("-Wl,--wrap=__asan_{access}{size}")));
            }
        }
        flags
    }

    /// The runtime's objects, from the cache: `head.o`, `runner.o`, `tail.o`, and dynamic shared memory of each alignment.
    fn runtime(&self, cache: &Path) -> Result<Vec<Checked>, Error> {
        let key = self.digest(vec![b"runtime".to_vec()]);
        let make = |stage: &Stage| -> Result<Vec<PathBuf>, Error> {
            let dir = stage.scratch.path();
            write_files(dir, RUNTIME)?;
            let object = |stem: &str| {
                let object = stage.dir.join(stem).with_extension("o");
                let mut command = self.command(dir);
                command.args(self.runtime_flags()).arg("-c").arg(format!("{stem}.cpp")).arg("-o").arg(&object);
                self.finish(command)
            };
            let placed = |compiled: &Path, alignment: u64| -> Result<(), Error> {
                let mut bytes = fs::read(compiled).map_err(failed("read", compiled))?;
                elf::place_tls(&mut bytes, |_| Some(alignment)).ok_or_else(|| not_elf(compiled))?;
                let object = stage.dir.join(dynamic_object(alignment));
                Ok(fs::write(&object, bytes).map_err(failed("write", &object))?)
            };
            let dynamic = || {
                let compiled = dir.join("dynamic.o");
                let mut command = self.command(dir);
                command.args(self.runtime_flags()).args(["-c", "dynamic.cpp", "-o"]).arg(&compiled);
                self.finish(command)?;
                declared::ALIGNMENTS.into_iter().try_for_each(|alignment| placed(&compiled, alignment))
            };
            ["head", "runner", "tail"].into_iter().try_for_each(object)?;
            dynamic()?;
            Ok(Vec::new())
        };
        // In a store of its own: who asks for it holds the lock of a program.
        let (files, _) = Store::at(cache.join("runtime")).find_or_make(&key, Entry::checked, make)?;
        Ok(files)
    }

    /// Compiles and links a kernel. The first one of all finds no runtime yet, which takes as long to compile as a small kernel: the
    /// two are compiled side by side.
    pub(super) fn program(&self, source: Source<'_>, cache: &Path, stage: &Stage) -> Result<Vec<PathBuf>, Error> {
        let dir = stage.scratch.path();
        let (runtime, object) = std::thread::scope(|scope| {
            let runtime = scope.spawn(|| self.runtime(cache));
            let object = self.ahead(source, cache).and_then(|ahead| self.object(source, &ahead, dir));
            (runtime.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), object)
        });
        self.link(source, &object?, &runtime?, &stage.dir.join(PROGRAM))?;
        Ok(Vec::new())
    }

    /// Compiles a kernel in `dir`, with a header ahead of its text.
    fn object(&self, source: Source<'_>, ahead: &Path, dir: &Path) -> Result<PathBuf, Error> {
        write_files(dir, SHIM)?;
        for file in source.files {
            let path = dir.join(&file.name);
            fs::write(&path, &file.text).map_err(failed("write", &path))?;
        }
        let entry = dir.join("cutemplate_host_entry.cpp");
        fs::write(&entry, entry_text(source)).map_err(failed("write", &entry))?;
        let object = dir.join("kernel.o");
        let mut command = self.kernel_command(dir);
        command.arg("-include").arg(ahead).args(["-c", "cutemplate_host_entry.cpp", "-o"]).arg(&object);
        self.finish(command)?;
        Ok(object)
    }

    /// How the command of a kernel in `dir` begins.
    pub(super) fn kernel_command(&self, dir: &Path) -> Command {
        let mut command = self.command(dir);
        command.args(self.kernel_flags()).arg(format!("-ffile-prefix-map={}=.", dir.display()));
        command.args(["-I", OVERLAY, "-I", "."]);
        for include in self.include_dirs() {
            command.arg("-isystem").arg(include);
        }
        command
    }

    /// Links a kernel with the runtime.
    fn link(&self, source: Source<'_>, object: &Path, runtime: &[Checked], program: &Path) -> Result<(), Error> {
        let mut bytes = fs::read(object).map_err(failed("read", object))?;
        let dynamic = elf::undefined_tls(&bytes).ok_or_else(|| not_elf(object))?;
        let declared = |symbol: &str| declared::alignment(source.files, symbol);
        // Clang's code relies on what Clang gives to large arrays; GCC's does not where they are thread-local.
        let believed = |symbol: &str| declared(symbol).filter(|_| self.gnu());
        elf::place_tls(&mut bytes, believed).ok_or_else(|| not_elf(object))?;
        fs::write(object, bytes).map_err(failed("write", object))?;
        let of_dynamic = dynamic.iter().filter_map(|symbol| declared(symbol)).max();

        let mut command = self.command(object.parent().unwrap_or(object));
        // The order of the objects is the order of their shared memory.
        let dynamic_object = dynamic_object(of_dynamic.unwrap_or(VECTOR));
        command.arg(part(runtime, "runner.o")?).arg(part(runtime, "head.o")?).arg(object);
        command.arg(part(runtime, "tail.o")?).arg(part(runtime, &dynamic_object)?);
        command.args(dynamic.iter().map(|name| format!("-Wl,--defsym={name}=cutemplate_host_dynamic")));
        command.args(self.link_flags()).arg("-o").arg(program);
        self.finish(command)
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.tools.cxx.path);
        command.current_dir(dir).stdin(Stdio::null());
        // Messages in English: they are part of the error.
        command.env("LC_ALL", "C");
        command
    }

    pub(super) fn finish(&self, mut command: Command) -> Result<(), Error> {
        let line = shown(&command);
        let failed = |found: String| {
            Error::from(Failure {
                kind: FailureKind::Compile,
                what: "the kernel does not compile for the CPU".into(),
                found,
                required: format!("a translation unit that {} accepts in C++17", self.tools.cxx.path.display()),
                because: "the executor compiles the kernel's text as it stands, against the CUTLASS headers".into(),
                help: "correct the line that is named; what only nvcc accepts (PTX, textures, tensor cores) does not \
                       run on the CPU"
                    .into(),
            })
        };
        let output = command.output().map_err(|e| failed(format!("{e}\n{line}")))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        // The first errors say it; a template's list of candidates goes on for pages.
        let text: Vec<&str> = text.lines().take(60).collect();
        Err(failed(format!("{}\n{}\n{line}", text.join("\n"), output.status)))
    }
}

/// The runtime's object of that name.
pub(super) fn part<'a>(runtime: &'a [Checked], name: &str) -> Result<&'a Path, Error> {
    let named = |path: &&Path| path.file_name().is_some_and(|of| of == name);
    runtime.iter().map(Checked::path).find(named).ok_or_else(|| error::changed(&format!("the runtime has no {name}")))
}

/// The object with dynamic shared memory of this alignment.
fn dynamic_object(alignment: u64) -> String {
    format!("dynamic_{alignment}.o")
}

/// Calls each entry with a copy of the parameter bytes, whatever the type of the parameter is called.
fn entry_text(source: Source<'_>) -> String {
    let (mut functions, mut table, mut sizes) = (String::new(), String::new(), String::new());
    for (i, name) in source.entries().enumerate() {
        let _ = writeln!(functions, "static void cutemplate_host_entry_{i}(void const *p) {{ call(&{name}, p); }}");
        let _ = write!(table, " cutemplate_host_entry_{i},");
        let _ = write!(sizes, " params_size(&{name}),");
    }
    format!(
        "#include \"{}.cu\"\n\
         namespace cutemplate_host {{\n\
         template <class Params> void call(void (*kernel)(Params), void const *bytes) {{\n  \
           kernel(*static_cast<Params const *>(bytes));\n\
         }}\n\
         template <class Params> constexpr uint64_t params_size(void (*)(Params)) {{ return sizeof(Params); }}\n\
         {functions}}}\n\
         extern \"C\" {{\n\
         using namespace cutemplate_host;\n\
         extern void (*const cutemplate_host_entries[])(void const *) = {{{table}}};\n\
         extern uint64_t const cutemplate_host_params_sizes[] = {{{sizes}}};\n\
         }}\n",
        source.name
    )
}

/// What the C++ compiler sees of a text: its end is nvcc's alone where it stands between `#if defined(__CUDACC__)` and `#endif`, as
/// the host side of a kernel does.
fn compiled(text: &str) -> &str {
    let Some(at) = text.find("\n#if defined(__CUDACC__)").map(|end| end + 1) else { return text };
    let mut depth = 0;
    let directives = text[at..].lines().filter(|line| !line.is_empty()).map(|line| {
        depth += i32::from(line.starts_with("#if")) - i32::from(line.starts_with("#endif"));
        depth > 0 && !line.starts_with("#else") && !line.starts_with("#elif")
    });
    // All but the last of the lines are inside.
    let inside: Vec<bool> = directives.collect();
    let is_end = inside.split_last().is_some_and(|(last, all)| !last && all.iter().all(|inside| *inside));
    if is_end { &text[..at] } else { text }
}

pub(super) fn write_files(dir: &Path, files: &[CxxFile]) -> Result<(), Error> {
    for file in files {
        let path = dir.join(file.name);
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).map_err(failed("write", folder))?;
        fs::write(&path, file.text).map_err(failed("write", &path))?;
    }
    Ok(())
}

/// The command for the eye: words with spaces in quotes.
fn shown(command: &Command) -> String {
    let word = |w: &std::ffi::OsStr| {
        let w = w.to_string_lossy();
        if w.contains(' ') { format!("'{w}'") } else { w.into_owned() }
    };
    let words: Vec<String> = std::iter::once(command.get_program()).chain(command.get_args()).map(word).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::compiled;
    use crate::emit::render;
    use crate::recipe::{ElementwiseAdd, Recipe};

    #[test]
    fn what_nvcc_alone_sees_is_left_out() {
        let plan = ElementwiseAdd::default().plan_as("add", &Default::default()).expect("legal");
        let text = render(&plan).header().text.clone();
        let seen = compiled(&text);
        assert!(seen.contains("add_params const") && !seen.contains("cudaStream_t") && text.contains("cudaStream_t"));
        for whole in [
            "int a;\n",
            "int a;\n#if defined(__CUDACC__)\nint b;\n#endif\nint c;\n",
            "int a;\n#if defined(__CUDACC__)\nint b;\n#else\nint c;\n#endif\n",
            "int a;\n#if defined(__CUDACC__)\nint b;\n#endif\n#if 1\nint c;\n#endif\n",
            "int a;\n#if defined(__CUDACC__)\nint b;\n",
        ] {
            assert_eq!(compiled(whole), whole);
        }
        assert_eq!(compiled("int a;\n#if defined(__CUDACC__)\n#if 1\nint b;\n#endif\n#endif\n"), "int a;\n");
    }
}
