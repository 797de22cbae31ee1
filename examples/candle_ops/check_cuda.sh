#!/bin/sh
# Checks the operations on candle's CUDA storages without CUDA: candle's build script wants nvcc to compile its kernels, of which
# checking types needs none, so that a stand-in leaves empty files. cutemplate's own kernels are stubs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
stand_in=$(mktemp -d)
trap 'rm -r "$stand_in"' EXIT
mkdir "$stand_in/bin" "$stand_in/include"
cat > "$stand_in/bin/nvcc" <<'EOF'
#!/bin/sh
# Leaves what it is asked for, empty.
case $1 in
  --version) printf 'nvcc: NVIDIA (R) Cuda compiler driver\n\n\nCuda compilation tools, release 13.0, V13.0.88\n'; exit ;;
  --list-gpu-code) echo sm_80; echo sm_90; exit ;;
esac
folder=
while [ $# -gt 0 ]; do
  case $1 in
    -o) shift; : > "$1" ;;
    --output-directory) shift; folder=$1 ;;
    *.cu) [ -z "$folder" ] || : > "$folder/$(basename "$1" .cu).ptx" ;;
  esac
  shift
done
EOF
chmod +x "$stand_in/bin/nvcc"
PATH="$stand_in/bin:$PATH" NVCC="$stand_in/bin/nvcc" CUDA_HOME="$stand_in" CUDA_PATH="$stand_in" CUDA_COMPUTE_CAP=80 \
  CUTEMPLATE_STUB=1 cargo check --manifest-path "$here/Cargo.toml" --features cuda --lib "$@"
