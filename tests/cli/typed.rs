//! Contract: what a person types gets an answer: codes are explained, mistakes get the command that was meant, shells complete, and
//! lines fit a terminal.

use expect_test::expect;

use crate::tool::{bad, good, objects, text};

/// Every code is explained; a recipe that gets it is planned then and there, and has that code.
#[test]
fn codes_are_explained() {
    for code in cutemplate::diagnostic::Code::ALL {
        let row = &objects(&["explain", code.code(), "--json"])[0];
        let text = row["text"].as_str().expect("a text");
        assert!(text.len() > 40 && !text.starts_with(code.title()), "{row}");
        let example = row["example"].as_str().expect("a text");
        assert!(example.is_empty() || example.contains(&format!("[{code}]: {}", code.title())), "{example}");
    }
    let all = good(&["explain"]);
    assert_eq!(all.lines().count(), cutemplate::diagnostic::Code::ALL.len());
    expect![[r#"
        CT017: the tensors are not those of the function
        Each input of the function reads one tensor, and each output writes one. The
        lists in the recipe have another length. A product lists what its epilogue reads
        beside the accumulator and C in `aux`.

        $ cutemplate check elementwise_apply -s 'expr=a * b' -s 'in=f16:(?,1)'
        error[CT017]: the tensors are not those of the function
          recipe:   ElementwiseApply { function: a * b, inputs: [f16:(?,1)], outputs:
                    [f16:(?,1)], compute: auto, variant: auto, threads: 0, vector: 0 B,
                    unroll: 0 } for sm_80, sm_90a
          found:    1 input tensor, `a * b`
          required: 2 input tensors
          because:  each input of the function reads one tensor, and each output writes
                    one
          help:     list as many in `in`; an input that is not used stands before the
                    expression: |a, b| a
    "#]]
    .assert_eq(&good(&["explain", "ct017"]));
    bad(
        &["explain", "CT999"],
        1,
        expect![[r#"
        error: there is no code `CT999`: found in brackets, as in error[CT017]; `cutemplate explain` lists all
    "#]],
    );
}

/// What is typed by mistake for something that there is.
#[test]
fn a_family_in_place_of_a_command_and_a_setting_without_its_option_are_told() {
    bad(
        &["gemm"],
        2,
        expect![[r#"
        error: unrecognized subcommand 'gemm'

          tip: `gemm` is a kernel family: `cutemplate run gemm`, or `cutemplate list gemm`

        Usage: cutemplate [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]],
    );
    bad(
        &["check", "gemm", "dtype=bf16"],
        2,
        expect![[r#"
        error: unexpected argument 'dtype=bf16' found

          tip: a setting follows -s: `-s 'dtype=bf16'`

        Usage: cutemplate check [OPTIONS] <KERNEL>

        For more information, try '--help'.
    "#]],
    );
    assert_eq!(good(&["check", "gemm", "-s", "dtype=bf16"]), good(&["check", "gemm", "--set", "dtype=bf16"]));
}

/// The scripts name the commands, and bash reads its own.
#[test]
fn shells_complete_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&["completions", shell]);
        assert!(script.contains("cutemplate") && script.contains("explain"), "{shell}: {script}");
    }
    let script = good(&["completions", "bash"]);
    let ask =
        "COMP_WORDS=(cutemplate insp); COMP_CWORD=1; _cutemplate cutemplate insp cutemplate; echo \"${COMPREPLY[@]}\"";
    let shell = std::process::Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).output().expect("bash");
    assert_eq!(text(&shell.stdout).trim(), "inspect", "{}", text(&shell.stderr));
}

/// On a terminal of 80 columns no line of a plan is longer, nor of a refusal.
#[cfg(target_os = "linux")]
#[test]
fn a_plan_fits_a_terminal() {
    for arguments in ["check gemm", "check gemm --problem 512x512x512", "check elementwise_apply -s expr=sqrtt(a)"] {
        let command = format!(
            "stty cols 80; {} {}",
            env!("CARGO_BIN_EXE_cutemplate"),
            arguments.replace('(', "\\(").replace(')', "\\)")
        );
        let output =
            std::process::Command::new("script").args(["-qec", &command, "/dev/null"]).output().expect("script");
        let said = text(&output.stdout).replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "");
        assert!(said.contains("required:") || said.contains("registers"), "{said}");
        // A spinner goes back to the first column.
        let shown =
            said.lines().map(|line| line.trim_end().rsplit('\r').next().unwrap_or(line).trim_start_matches("\x1b[2K"));
        let long: Vec<&str> = shown.filter(|line| line.chars().count() > 80 && line.contains(' ')).collect();
        assert!(long.is_empty(), "{arguments}: {long:#?}");
    }
}
