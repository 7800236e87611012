# Finds installed and missing packages, and installs the missing ones. Needs nothing but bash.
# Sourced by ./lab and tools/lab/doctor.sh; tools/lab calls a function with bash tools/lab/setup.sh FUNCTION ARGUMENTS...
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")")
log_of_setup=$root/build/setup.log
nvcc=$(command -v "${CUDACXX:-nvcc}" || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || true)
# Packages that work from any folder, so that no root is needed: only headers and static libraries.
unpackable=" libcli11-dev nlohmann-json3-dev libgtest-dev "

at_least() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }
version_of() { [[ $("$@" 2>/dev/null) =~ [0-9]+(\.[0-9]+)* ]] && printf '%s\n' "${BASH_REMATCH[0]}"; }

# --- installed packages ----------------------------------------------------------------------------------------------

# Looks where CMake looks: in CMAKE_PREFIX_PATH, beside the folders of PATH and in .deps.
has_file() {  # PATTERNS below such a folder
  local prefix prefixes pattern
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}:$PATH:$root/.deps/usr"
  for prefix in "${prefixes[@]}"; do
    [[ -n $prefix ]] || continue
    prefix=${prefix%/bin} prefix=${prefix%/sbin}
    for pattern in "$@"; do
      if compgen -G "$prefix/$pattern" >/dev/null; then return 0; fi
    done
  done
  return 1
}
has_cmake_package() { has_file "*/cmake/$1*/$1*onfig.cmake" "lib/*/cmake/$1*/$1*onfig.cmake"; }

# For the notebooks: the system's Python, which has Debian's packages, even if another one is first in PATH.
notebook_python() {
  local python=$root/.deps/notebooks/bin/python
  [[ -x $python ]] || python=/usr/bin/python3
  printf '%s\n' "$python"
}
has_python_module() { "$(notebook_python)" -I -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2>/dev/null; }

missing_notebook_packages() {  # notebooks (to run them) | notebook (to open them)
  has_python_module nbconvert || echo jupyter-nbconvert
  has_python_module ipykernel || echo python3-ipykernel
  has_python_module pandas || echo python3-pandas
  has_python_module matplotlib || echo python3-matplotlib
  [[ $1 == notebooks ]] || has_python_module notebook || echo jupyter-notebook
}

missing_docs_packages() {  # Material is found where Debian or pip puts it
  command -v python3 >/dev/null || echo python3
  command -v doxygen >/dev/null || echo doxygen
  has_file share/doxygen-awesome-css/doxygen-awesome.css || echo doxygen-awesome-css
  command -v mkdocs >/dev/null || echo mkdocs
  has_file share/mkdocs/themes/material "lib/python3*/*-packages/material" || echo mkdocs-material
}

missing_packages() {  # run|test|docs|notebook|notebooks -> Debian names, one a line
  [[ $1 != docs ]] || { missing_docs_packages; return; }
  command -v "${CXX:-g++}" >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v python3 >/dev/null || echo python3
  has_cmake_package CLI11 || echo libcli11-dev
  has_cmake_package nlohmann_json || echo nlohmann-json3-dev
  [[ $1 != test ]] || has_cmake_package GTest || echo libgtest-dev
  [[ $1 != notebook* ]] || missing_notebook_packages "$1"
}
can_install() { command -v apt-get >/dev/null && { (($(id -u) == 0)) || command -v sudo >/dev/null; }; }
# Optional packages, installed along with missing ones: without OpenBLAS virtual cuBLAS is slow.
optional_packages() { has_file "lib*/libopenblas.so" "lib/*/libopenblas.so" || echo libopenblas-dev; }

gxx_version() { version_of "${CXX:-g++}" -dumpfullversion -dumpversion; }
nvcc_version() { [[ $("$nvcc" --version 2>/dev/null) =~ release\ ([0-9.]+) ]] && echo "${BASH_REMATCH[1]}"; }
gpu_list() { timeout 30 nvidia-smi -L 2>/dev/null | grep '^GPU'; }
gpus_here() { gpu_list || true; }

too_old() {  # [run|test|docs] -> a sentence if a tool is too old
  local have
  if [[ ${1-} == docs ]]; then
    have=$(version_of doxygen --version) || have=0
    at_least "$have" 1.9.4 || echo "doxygen $have is too old: 1.9.4 or newer is needed"
    return
  fi
  if command -v cmake >/dev/null; then
    have=$(version_of cmake --version) || have=0
    at_least "$have" 3.25 || { echo "cmake $have is too old: 3.25 or newer is needed"; return; }
  fi
  command -v "${CXX:-g++}" >/dev/null || return 0
  have=$(gxx_version) || have=0
  at_least "$have" 12 || echo "${CXX:-g++} $have is too old: g++ 12 or newer is needed (CXX=... names another one)"
}

why_no_cuda_build() {
  [[ -n $nvcc ]] || { echo "nvcc is not here (CUDA 12.4 or newer is needed)"; return; }
  at_least "$(nvcc_version || echo 0)" 12.4 || echo "nvcc $(nvcc_version) is too old: CUDA 12.4 or newer is needed"
}

why_no_cuda_run() {
  local problem
  problem=$(why_no_cuda_build)
  if [[ -n $problem ]]; then echo "$problem"
  elif ! python3 -I -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then
    echo "the GPU driver's libcuda.so.1 is not here"
  elif ! gpu_list >/dev/null; then echo "no GPU answers (nvidia-smi -L)"
  fi
}

# --- set-up ----------------------------------------------------------------------------------------------------------

quietly() { "$@" </dev/null >>"$log_of_setup" 2>&1; }

unpack_packages() {  # without root: into .deps, which CMake searches
  local package download=$root/.deps/download
  for package in "$@"; do
    [[ $unpackable == *" $package "* ]] ||
      die "missing: $*; without root and sudo they cannot be installed, so ask for: apt-get install $*"
  done
  say "unpacking into .deps (no root needed): $*"
  mkdir -p "$download" 2>/dev/null || die "$download cannot be made"
  (cd "$download" && quietly apt-get download "$@") ||
    die "apt-get download failed (is there a network?): $(tail -n 1 "$log_of_setup")"
  for package in "$download"/*.deb; do
    quietly dpkg -x "$package" "$root/.deps" || die "dpkg -x failed: $(tail -n 1 "$log_of_setup")"
  done
  rm -r "$download"
}

make_notebook_environment() {  # without root: in .deps, from the wheels that tools/pages/notebooks.txt names
  local folder=$root/.deps/notebooks
  say "putting Jupyter, pandas and matplotlib into .deps/notebooks, about 0.5 GB (no root needed)"
  mkdir -p "$root/build" 2>/dev/null || die "$root/build cannot be made"
  : 2>/dev/null >>"$log_of_setup" || die "$log_of_setup cannot be written"
  if quietly python3 -m venv "$folder" && quietly "$folder/bin/pip" install --only-binary :all: -r "$root/tools/pages/notebooks.txt"; then
    return
  fi
  rm -rf "$folder"
  die "the notebooks' Python cannot be made (is there a network, and python3-venv?): $(tail -n 1 "$log_of_setup")"
}

install_packages() {  # run|test|docs|notebook|notebooks YES PACKAGES...
  local purpose="$1 the chapters" yes=$2 package command answer listed=true sudo=() update install optional=()
  [[ $1 != notebook* ]] || purpose='run the notebooks'
  if [[ $1 == docs ]]; then
    purpose='build the documentation'
  else
    read -ra optional <<<"$(optional_packages)"
  fi
  shift 2
  command -v apt-get >/dev/null || die "missing: $* (Debian's names); without apt-get, please install them yourself"
  mkdir -p "$root/build" 2>/dev/null || die "$root/build cannot be made"
  : 2>/dev/null >>"$log_of_setup" || die "$log_of_setup cannot be written"
  if (($(id -u) != 0)); then
    command -v sudo >/dev/null || { unpack_packages "$@"; return; }
    sudo=(sudo)
  fi
  update=("${sudo[@]}" apt-get update)
  install=("${sudo[@]}" apt-get install -y --no-install-recommends "$@")
  for package in "$@"; do apt-cache show "$package" >/dev/null 2>&1 || listed=false; done
  $listed && command="${install[*]} ${optional[*]}" || command="${update[*]} && ${install[*]} ${optional[*]}"
  say "needed to $purpose, and missing: $* -> ${command% }"
  if ((${#sudo[@]})) && ! $yes; then
    [[ -t 0 ]] || die "there is no terminal to ask on: run that command, or ./lab with --yes"
    read -rp 'lab: run this command now? [y/N] ' answer
    [[ $answer == [yY]* ]] || die "nothing was installed"
  fi
  export DEBIAN_FRONTEND=noninteractive
  if $listed && quietly "${install[@]}" "${optional[@]}"; then return; fi
  # apt has no lists of packages, or its lists name versions that the archive no longer has.
  if quietly "${update[@]}" && quietly "${install[@]}" "${optional[@]}"; then return; fi
  # If the archive lacks the optional packages, the installation goes on without them.
  if ((${#optional[@]})) && quietly "${install[@]}"; then return; fi
  die "the installation failed (is there a network?): $(tail -n 1 "$log_of_setup") (all of it: $log_of_setup)"
}

# set_up run|test|docs|notebook|notebooks BACKEND YES: installs everything that the build needs, or says in one sentence what is
# missing. Prints the backend (virtual or cuda; real GPUs if BACKEND is empty and they respond) and nvcc's path.
set_up() {
  local missing problem backend=$2
  if [[ $1 == notebook* && -n $(missing_notebook_packages "$1") ]] && ! can_install; then make_notebook_environment; fi
  read -ra missing <<<"$(missing_packages "$1" | paste -sd ' ')"
  if ((${#missing[@]})); then
    install_packages "$1" "$3" "${missing[@]}"
    read -ra missing <<<"$(missing_packages "$1" | paste -sd ' ')"
    ((${#missing[@]} == 0)) || die "still missing after the installation: ${missing[*]}"
  fi
  problem=$(too_old "$1")
  [[ -z $problem ]] || die "$problem"
  if [[ $1 != docs ]]; then
    [[ -n $backend ]] || { [[ -z $(why_no_cuda_run) ]] && backend=cuda || backend=virtual; }
    [[ $backend == virtual ]] || problem=$(why_no_cuda_build)
    [[ -z $problem ]] || die "$problem"
  fi
  printf '%s %s\n' "$backend" "$nvcc"
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || "$@"
