//! Contract: no key of a launch file is ignored. Each key of the table is tested absent, repeated, misspelt, and with a value of each
//! JSON type. Everything that the table does not allow is refused by name.

use ptx_exec::{LaunchKey, launch_keys};

use super::{error_of, folder, run};

/// A value of each type, and those near the limits of numbers.
fn values() -> Vec<(&'static str, String)> {
    let numbers = [
        "0",
        "1",
        "3",
        "-1",
        "1.5",
        "65",
        "4294967295",
        "4294967296",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e300",
        "-0",
    ];
    let strings = ["", "x", "races", "1", "00", "0g", "é", "nan", "\\u0000", "../x.npy", "1e999"];
    let arrays =
        ["[]", "[null]", "[1]", "[0]", "[1, 2, 3, 4, 5, 6]", "[[]]", "[{}]", "[\"races\", 1]", "[-1]", "[1.5]"];
    let objects = ["{}", "{\"x\": {}}", "{\"x\": 1}", "{\"npy\": \"x.npy\"}", "{\"npy\": 1}"];
    let mut all: Vec<(&str, String)> =
        vec![("null", "null".into()), ("boolean", "true".into()), ("boolean", "false".into())];
    all.extend(numbers.iter().map(|n| ("number", (*n).to_owned())));
    all.extend(strings.iter().map(|s| ("string", format!("\"{s}\""))));
    all.extend(arrays.iter().map(|a| ("array", (*a).to_owned())));
    all.extend(objects.iter().map(|o| ("object", (*o).to_owned())));
    all
}

/// A launch whose object of this kind has these keys, as text; and the path of the object.
fn within(object: &str, inner: &str) -> String {
    let launch = |args: &str, rest: &str| {
        format!(r#"{{"ptx": "k.ptx", "entry": "scale", "grid": [1], "block": [32], "args": [{args}]{rest}}}"#)
    };
    let usual = r#"{"npy": "x.npy"}, {"npy": "y.npy", "out": "z.npy"}, {"f32": 0.5}"#;
    match object {
        "the launch" | "the file" => format!("{{{inner}}}"),
        "the argument" => launch(&format!("{usual}, {{{inner}}}"), ""),
        "the member" => launch(&format!("{usual}, {{\"struct\": [{{{inner}}}]}}"), ""),
        "the tensor map" => launch(&format!("{usual}, {{\"tensor_map\": {{{inner}}}}}"), ""),
        "the buffer" => launch(&format!("{usual}, {{\"i32\": 70}}"), &format!(r#", "buffers": {{"b": {{{inner}}}}}"#)),
        "the variable" => {
            launch(&format!("{usual}, {{\"i32\": 70}}"), &format!(r#", "variables": {{"b": {{{inner}}}}}"#))
        }
        "the expectation" => launch(
            &format!(
                "{{\"npy\": \"x.npy\"}}, {{\"npy\": \"y.npy\", \"expect\": {{{inner}}}}}, {{\"f32\": 0.5}}, {{\"i32\": 70}}"
            ),
            "",
        ),
        "the allowance" => launch(&format!("{usual}, {{\"i32\": 70}}"), &format!(r#", "allow": [{{{inner}}}]"#)),
        other => panic!("{other} is not known here"),
    }
}

fn entry(key: &LaunchKey, value: &str) -> String {
    format!("\"{}\": {value}", key.name)
}

/// All keys that an object needs, but `without`.
fn needed(keys: &[LaunchKey], object: &str, without: &str) -> Vec<String> {
    let own = keys.iter().filter(|key| key.object == object && key.is_required && key.name != without);
    own.map(|key| entry(key, key.example)).collect()
}

#[test]
fn what_the_table_does_not_allow_is_refused_by_name() {
    let keys = launch_keys();
    let folder = folder("{}");
    let mut refused = 0;
    for key in &keys {
        for (ty, value) in values() {
            // Gigabytes of scratch memory are valid, but slow.
            if key.name == "scratch" && value.len() > 6 {
                continue;
            }
            let mut inner = needed(&keys, key.object, key.name);
            inner.push(entry(key, &value));
            let text = within(key.object, &inner.join(", "));
            match run(&folder, &text) {
                Ok(_) => assert!(key.json.contains(&ty), "{} of {} takes {value}", key.name, key.object),
                Err(e) if !key.json.contains(&ty) => {
                    let e = e.to_string();
                    assert!(e.contains(key.name) && e.contains("required:"), "{text}\n{e}");
                    refused += 1;
                }
                Err(_) => {}
            }
        }
    }
    assert!(refused > 20 * keys.len(), "{refused}");
}

/// The reader accepts each example of the table.
#[test]
fn every_example_is_taken() {
    let keys = launch_keys();
    let folder = folder("{}");
    for key in &keys {
        let mut inner = needed(&keys, key.object, key.name);
        inner.push(entry(key, key.example));
        let text = within(key.object, &inner.join(", "));
        if let Err(e) = run(&folder, &text) {
            let e = e.to_string();
            let wrong = ["unknown", "cannot be read\n", "is not an object"].iter().any(|word| e.contains(word));
            assert!(!wrong || e.contains("a file cannot be read"), "{text}\n{e}");
        }
    }
}

#[test]
fn a_key_that_is_absent_twice_or_misspelt_is_refused() {
    let keys = launch_keys();
    let folder = folder("{}");
    for key in &keys {
        let whole = |spelt: &str, times: usize| {
            let mut inner = needed(&keys, key.object, key.name);
            inner.extend((0..times).map(|_| format!("\"{spelt}\": {}", key.example)));
            within(key.object, &inner.join(", "))
        };
        let twice = error_of(&folder, &whole(key.name, 2));
        assert!(twice.contains(&format!("`{}` occurs twice", key.name)), "{twice}");
        // An empty object is a launch; `kept` has a file without launches.
        if key.is_required && key.object != "the file" {
            let absent = error_of(&folder, &whole(key.name, 0));
            assert!(absent.contains(&format!("has no `{}`", key.name)) && absent.contains(key.object), "{absent}");
        }
        let others: Vec<&str> = keys.iter().filter(|k| k.object == key.object).map(|k| k.name).collect();
        for spelt in misspelt(key.name).iter().filter(|spelt| !others.contains(&spelt.as_str())) {
            let error = error_of(&folder, &whole(spelt, 1));
            assert!(error.contains("unknown key") && error.contains(&format!("`{spelt}`")), "{error}");
            if key.name.len() > 3 {
                assert!(error.contains("the nearest key is `"), "{spelt}: {error}");
            }
        }
    }
}

/// The word with a letter left out, doubled, replaced, or exchanged with its neighbour; and in capitals.
fn misspelt(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut all = vec![word.to_uppercase(), format!("{word} ")];
    for i in 0..letters.len() {
        let (before, after) = (&letters[..i], &letters[i + 1..]);
        let made = |middle: &[char]| [before, middle, after].concat().into_iter().collect::<String>();
        all.extend([made(&[]), made(&[letters[i], letters[i]]), made(&['q'])]);
        if let Some(next) = after.first().filter(|next| **next != letters[i]) {
            all.push([before, &[*next, letters[i]], &after[1..]].concat().into_iter().collect());
        }
    }
    all.retain(|other| other != word);
    all
}

/// Pairs of values of one object, and values in places that are deep: no panic, whatever they are.
#[test]
fn launches_of_random_parts_are_answered() {
    let keys = launch_keys();
    let folder = folder("{}");
    let values = values();
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    for _ in 0..1500 {
        let object = keys[below(keys.len())].object;
        let own: Vec<&LaunchKey> = keys.iter().filter(|key| key.object == object).collect();
        let mut inner = needed(&keys, object, "");
        for _ in 0..=below(3) {
            let key = own[below(own.len())];
            let value = if below(3) == 0 && key.name != "scratch" {
                values[below(values.len())].1.clone()
            } else {
                key.example.to_owned()
            };
            inner.retain(|known| !known.starts_with(&format!("\"{}\":", key.name)));
            inner.push(entry(key, &value));
        }
        if let Err(e) = run(&folder, &within(object, &inner.join(", "))) {
            assert!(e.to_string().starts_with("error["), "{e}");
        }
    }
}

/// A row for each key of each object. Members of structs have the keys of arguments; types of numbers stand together.
#[test]
fn the_documentation_lists_every_key() {
    let text = include_str!("../../../docs/guide.md");
    let is_number = |name: &str| {
        name.strip_prefix(['i', 'u', 'f']).or(name.strip_prefix("bf")).is_some_and(|n| n.parse::<u32>().is_ok())
    };
    for key in launch_keys().iter().filter(|key| key.object != "the member") {
        let name = if key.is_required { format!("**`{}`**", key.name) } else { format!("`{}`", key.name) };
        let row = if is_number(key.name) { name } else { format!("| {name} | {} | {} |", key.takes, key.meaning) };
        assert!(text.contains(&row), "docs/guide.md lacks this, of {}:\n{row}", key.object);
    }
}
