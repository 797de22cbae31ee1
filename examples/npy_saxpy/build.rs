//! Generates the kernel `saxpy` from a closure and compiles it.

use cutemplate::build::Config;
use cutemplate::dtype::DType;
use cutemplate::expr::Function;
use cutemplate::recipe::ElementwiseApply;

fn main() {
    let function = Function::nary(2, |t, x| [t.scalar("alpha") * x[0] + x[1]]);
    match function {
        Ok(function) => {
            Config::new().recipe("saxpy", &ElementwiseApply::new(function, DType::F32)).compile();
        }
        Err(refused) => panic!("{refused}"),
    }
}
