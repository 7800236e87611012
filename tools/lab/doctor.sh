# bash tools/lab/doctor.sh [BACKEND]: the first part of ./lab doctor's output, before it builds bin/doctor: what is installed,
# what is missing and what would be skipped. Exit status 2 if nothing can run.
# shellcheck shell=bash disable=SC2031,SC2128  # os-release is read in a subshell
# shellcheck source=tools/lab/setup.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/setup.sh"

doctor() {  # BACKEND
  local backend=$1 missing old no_cuda
  row() { printf '%-16s %s\n' "$@"; }
  missing=$(missing_packages test | paste -sd ' ') old=$(too_old 2>/dev/null) no_cuda=$(why_no_cuda_run)
  [[ -n $backend ]] || { [[ -z $no_cuda ]] && backend=cuda || backend=virtual; }
  row system "$(. /etc/os-release 2>/dev/null && echo "$PRETTY_NAME, ")$(uname -sm)"
  row g++ "$(gxx_version || echo 'not here')"
  row cmake "$(version_of cmake --version || echo 'not here')"
  row ninja "$(version_of ninja --version || echo 'not here')"
  row python3 "$(version_of python3 --version || echo 'not here')"
  row mkdocs "$(version_of mkdocs --version || echo 'not here (./lab docs installs it)')"
  row nvcc "$([[ -n $nvcc ]] && echo "$(nvcc_version) ($nvcc)" || echo 'not here')"
  row MPI "$(command -v mpicxx >/dev/null && version_of mpirun --version || echo 'not here (./lab run 20 --nodes wants libopenmpi-dev and openmpi-bin)')"
  row GPUs "$(gpu_list | sed 's/ (UUID.*//' | paste -sd ';' | grep . || echo 'none answers')"
  row missing "${missing:-nothing}"
  [[ -z $missing ]] ||
    row 'install with' "apt-get install --no-install-recommends $missing (./lab run and ./lab test each install theirs)"
  [[ -z $(optional_packages) ]] || row optional "$(optional_packages) would make cuBLAS on virtual GPUs faster"
  row backend "$backend${no_cuda:+ (real GPUs cannot be used: $no_cuda)}"
  row 'race detector' "$("$root/virtual_gpu/tools/race_run" --why-not | grep . || echo 'can run (./lab race)')"
  case $backend in
    virtual) row skipped 'real times (those of virtual GPUs are modelled)' ;;
    cuda) row skipped "$([[ -n $no_cuda ]] && echo 'all runs' || echo "runs on more than $(gpu_list | wc -l) GPUs")" ;;
  esac
  [[ -z $old ]] || die "$old"
  missing=$(missing_packages run | paste -sd ' ')
  [[ -z $missing ]] || die "nothing can run before these packages are installed: $missing"
  [[ $backend == virtual || -z $no_cuda ]] || exit 2
}

doctor "${1-}"
