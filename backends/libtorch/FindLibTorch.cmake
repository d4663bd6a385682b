# SPDX-License-Identifier: Apache-2.0
# Looks for LibTorch by GRADRACK_LIBTORCH and makes two imported libraries of it.
#
#   GRADRACK_LIBTORCH   AUTO  the cache of packaging/fetch-libtorch; without it no libtorch backend
#                       ON    the same, and an error without it
#                       OFF   no libtorch backend
#                       PATH  the folder that holds include/ and lib/ (of the wheel: torch/)
#
# Sets GRADRACK_LIBTORCH_DIR ("" when there is none) and GRADRACK_LIBTORCH_REASON (why not).
# LibTorch's own CMake package is not used: it asks for the CUDA toolkit, which the processor's part
# has no use for. libtorch_cpu.so and libc10.so are linked, and nothing else of it.
set(GRADRACK_LIBTORCH "AUTO" CACHE STRING "LibTorch backends: AUTO, ON, OFF or a folder")
set(GRADRACK_LIBTORCH_DIR "")
set(GRADRACK_LIBTORCH_REASON "")

if(GRADRACK_LIBTORCH STREQUAL "OFF")
  set(GRADRACK_LIBTORCH_REASON "GRADRACK_LIBTORCH is OFF")
elseif(GRADRACK_LIBTORCH MATCHES "^(AUTO|ON)$")
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/packaging/fetch-libtorch" --where
    OUTPUT_VARIABLE where OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(GRADRACK_LIBTORCH_DIR "${where}")
  else()
    set(GRADRACK_LIBTORCH_REASON
      "LibTorch is not there: packaging/fetch-libtorch brings it (1.2 GB unpacked)")
  endif()
else()
  set(GRADRACK_LIBTORCH_DIR "${GRADRACK_LIBTORCH}")
endif()

if(GRADRACK_LIBTORCH_DIR)
  foreach(file include/ATen/core/Tensor.h lib/libtorch_cpu.so lib/libc10.so)
    if(EXISTS "${GRADRACK_LIBTORCH_DIR}/${file}")
      continue()
    endif()
    set(GRADRACK_LIBTORCH_REASON "${GRADRACK_LIBTORCH_DIR} has no ${file}")
  endforeach()
endif()
if(GRADRACK_LIBTORCH_REASON)
  if(NOT GRADRACK_LIBTORCH MATCHES "^(AUTO|OFF)$")
    message(FATAL_ERROR "GRADRACK_LIBTORCH=${GRADRACK_LIBTORCH}: ${GRADRACK_LIBTORCH_REASON}")
  endif()
  set(GRADRACK_LIBTORCH_DIR "")
  return()
endif()

foreach(part torch_cpu c10)
  add_library(libtorch::${part} SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::${part} PROPERTIES
    IMPORTED_LOCATION "${GRADRACK_LIBTORCH_DIR}/lib/lib${part}.so"
    IMPORTED_NO_SONAME OFF
    INTERFACE_INCLUDE_DIRECTORIES "${GRADRACK_LIBTORCH_DIR}/include")
endforeach()
