# SPDX-License-Identifier: Apache-2.0
# gradrack_add_plugin(NAME <name> SOURCES <file>... [LIBRARIES <target>...])
#
# Builds <name>.so, a plugin that gradrack can load, from C11 or C++20 sources. The same function
# serves the plugins of this tree and, through find_package(Gradrack), anyone's own.
# The one invariant: the library exports the data symbol gradrack_plugin_v1 and nothing else, has
# no undefined symbol, binds at load and is never unmapped.
# Beside it stands its manifest, <name>.plugin.yaml, so that the host need not load it to find it.
# The target is called plugin_<name>; LIBRARIES are linked privately.
#
# gradrack_test_plugin(NAME <name>)
#
# A CTest entry that runs `./test` of a folder made by `gradrack plugins new` on that plugin, with
# the programs that are installed beside this package.

set(GRADRACK_PLUGIN_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/gradrack_plugin.map")
set(GRADRACK_PLUGIN_MANIFEST_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/GradrackManifest.cmake")

function(gradrack_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBRARIES")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "gradrack_add_plugin(NAME <name> SOURCES <file>... [LIBRARIES <target>...]): got "
      "NAME '${arg_NAME}', SOURCES '${arg_SOURCES}', unknown '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  set(target plugin_${arg_NAME})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE gradrack::sdk ${arg_LIBRARIES})
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("C" IN_LIST languages)
    target_compile_features(${target} PRIVATE c_std_11)
  endif()
  if("CXX" IN_LIST languages)
    target_compile_features(${target} PRIVATE cxx_std_20)
  endif()
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    target_compile_options(${target} PRIVATE -O2)  # no build type would mean no optimisation
  endif()
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${arg_NAME}
    PREFIX ""
    SUFFIX ".so"
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${GRADRACK_PLUGIN_VERSION_SCRIPT}")
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${GRADRACK_PLUGIN_VERSION_SCRIPT}"
    "LINKER:-z,defs" "LINKER:-z,now" "LINKER:-z,nodelete")
  if(TARGET gradrack_plugins)  # inside the tree: shared flags, one output folder, one target
    target_link_libraries(${target} PRIVATE gradrack_build_flags)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY "${GRADRACK_PLUGIN_OUTPUT_DIR}")
    add_dependencies(gradrack_plugins ${target})
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/gradrack/plugins COMPONENT plugins)
  gradrack_plugin_manifest(${target} ${arg_NAME})
endfunction()

# NAME.plugin.yaml beside NAME.so, in the build folder and where it is installed. Without the probe
# program, or for another machine, there is none, and the host finds out by itself.
function(gradrack_plugin_manifest target name)
  if(TARGET gradrack_probe)
    set(probe "$<TARGET_FILE:gradrack_probe>")
    add_dependencies(${target} gradrack_probe)
  elseif(GRADRACK_PROBE_PROGRAM)
    set(probe "${GRADRACK_PROBE_PROGRAM}")
  endif()
  if(NOT probe OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" "-DPROBE=${probe}" "-DLIBRARY=$<TARGET_FILE:${target}>"
            -P "${GRADRACK_PLUGIN_MANIFEST_SCRIPT}"
    VERBATIM)
  install(CODE "
    execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DPROBE=${probe}\"
      \"-DLIBRARY=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/gradrack/plugins/${name}.so\"
      -P \"${GRADRACK_PLUGIN_MANIFEST_SCRIPT}\")" COMPONENT plugins)
endfunction()

macro(gradrack_test_plugin)  # a macro: enable_testing() counts where it is called
  cmake_parse_arguments(gradrack_test "" "NAME" "" ${ARGN})
  enable_testing()
  add_test(NAME ${gradrack_test_NAME}
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test" "$<TARGET_FILE:plugin_${gradrack_test_NAME}>"
            "${GRADRACK_BIN_DIR}")
endmacro()
