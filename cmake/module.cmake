# What the sanitizer build builds: every test of an engine module.
add_custom_target(engine_tests)

# kbeam_module(NAME SOURCES ... LINKS ... TESTS ... TEST_LINKS ...)
# One engine module: the library kbeam_NAME whose link line is the dependency rule, and its tests beside the sources.
function(kbeam_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES;LINKS;TESTS;TEST_LINKS" ${ARGN})
  set(target kbeam_${name})
  add_library(${target} STATIC ${MODULE_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/engine)
  target_link_libraries(${target} PUBLIC ${MODULE_LINKS})
  kbeam_compile_options(${target})
  if(KBEAM_BUILD_TESTS AND MODULE_TESTS)
    add_executable(${target}_test ${MODULE_TESTS})
    set_target_properties(${target}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${target}_test PRIVATE ${target} ${MODULE_TEST_LINKS} GTest::gmock_main)
    target_compile_definitions(${target}_test PRIVATE KBEAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               KBEAM_BINARY_DIR="${CMAKE_BINARY_DIR}")
    kbeam_compile_options(${target}_test)
    gtest_discover_tests(${target}_test DISCOVERY_MODE PRE_TEST PROPERTIES LABELS engine TIMEOUT 300)
    add_dependencies(engine_tests ${target}_test)
  endif()
endfunction()

function(kbeam_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                         $<$<BOOL:${KBEAM_WARNINGS_AS_ERRORS}>:-Werror>)
  if(KBEAM_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${KBEAM_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${KBEAM_SANITIZE})
  endif()
endfunction()
