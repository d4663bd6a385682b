#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the golden plugins: make.sh FOLDER [INCLUDE [COMPILER [FLAGS...]]]
# FOLDER gets optimizer.so, scheduler.so, lr_schedule.so and backend.so; INCLUDE is the folder of
# the C headers (default: this tree's). For a released minor, run it once on x86-64 with
#   tests/abi/golden/make.sh tests/abi/golden/v1.MINOR
# and commit the result; a committed folder is never built again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
include=${2:-$here/../../../sdk/include}
compiler=${3:-gcc}
shift $(($# < 3 ? $# : 3))
mkdir -p "$folder"
for name in optimizer scheduler lr_schedule backend; do
  "$compiler" -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -fPIC -fvisibility=hidden \
    "-ffile-prefix-map=$here=." -I"$include" -shared "$here/$name.c" -o "$folder/$name.so" -s \
    -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete -Wl,--build-id=none "$@"
  chmod 755 "$folder/$name.so"
done
