//! The buffers of a file, which pass from one launch to the next.

use std::path::Path;

use super::bad;
use super::check::Checked;
use super::json::Json;
use super::memory::LaunchMemory;
use crate::Error;

/// Reads the buffers.
pub(super) fn read(file: &Checked<'_>, folder: &Path) -> Result<LaunchMemory, Error> {
    let mut memory = LaunchMemory::read(file, folder, LaunchMemory::default())?;
    memory.held.iter_mut().for_each(|held| held.is_kept = true);
    Ok(memory)
}

/// Checks that launches use each buffer, that no launch has a buffer of the same name, and that all place memory alike.
pub(super) fn check(file: &Checked<'_>, launches: &[Checked<'_>]) -> Result<(), Error> {
    for (name, buffer) in file.named("buffers") {
        if !uses(file.value, name) {
            return Err(bad(format!("`{}` is not used by an argument", buffer.path))
                .found(format!("the buffer `{name}`"))
                .required(format!("{{\"of\": {name:?}}} in `args`")));
        }
        let own = launches.iter().flat_map(|launch| launch.named("buffers")).find(|(own, _)| *own == name);
        if let Some((_, own)) = own {
            return Err(bad(format!("`{}` hides `{}`", own.path, buffer.path))
                .found(format!("two buffers `{name}`"))
                .required("names that differ"));
        }
    }
    let Some(first) = launches.first().filter(|_| file.has("buffers")) else { return Ok(()) };
    let placement = |launch: &Checked<'_>| launch.text("placement").unwrap_or("driver").to_owned();
    match launches.iter().find(|launch| placement(launch) != placement(first)) {
        None => Ok(()),
        Some(other) => Err(bad(format!("`{}` is not that of the first launch", other.at("placement")))
            .found(format!("{:?} and {:?}", placement(first), placement(other)))
            .required("one placement, since the memory that launches share has one address")),
    }
}

/// Whether an object in it refers to the buffer.
fn uses(value: &Json, buffer: &str) -> bool {
    value.get("of").and_then(Json::text) == Some(buffer)
        || value.entries().iter().any(|(_, inner)| uses(inner, buffer))
        || value.items().iter().any(|inner| uses(inner, buffer))
}
