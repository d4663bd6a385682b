# SPDX-License-Identifier: Apache-2.0
# cmake -DPROBE=<gradrack-probe> -DLIBRARY=<NAME.so> -P GradrackManifest.cmake
#
# Writes NAME.plugin.yaml beside the library: what it offers, and the hash of its bytes. Run by
# gradrack_add_plugin after linking and after installing (which may change the bytes).
# Invariant: no manifest stays beside a library that it does not describe. A library that cannot be
# loaded here (another machine's device driver is missing) gets none: the host then probes it.
get_filename_component(folder "${LIBRARY}" DIRECTORY)
get_filename_component(name "${LIBRARY}" NAME_WLE)
set(manifest "${folder}/${name}.plugin.yaml")
execute_process(
  COMMAND "${PROBE}" --manifest "${LIBRARY}"
  OUTPUT_FILE "${manifest}.new"
  ERROR_VARIABLE reason
  RESULT_VARIABLE result
  TIMEOUT 60)
if(result EQUAL 0)
  file(RENAME "${manifest}.new" "${manifest}")
else()
  file(REMOVE "${manifest}" "${manifest}.new")
  message(WARNING "no manifest for ${LIBRARY} (${result}): ${reason}")
endif()
