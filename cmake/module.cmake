# What the sanitizer build builds: every test of an engine module.
add_custom_target(engine_tests)

# kbeam_module(NAME SOURCES ... LINKS ... TESTS ... CUDA_TESTS ... TEST_LINKS ...)
# One engine module: the library kbeam_NAME whose link line is the dependency rule, and its tests beside the sources.
# CUDA_TESTS are built and run where the toolkit is (label cuda).
function(kbeam_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES;LINKS;TESTS;CUDA_TESTS;TEST_LINKS" ${ARGN})
  set(target kbeam_${name})
  add_library(${target} STATIC ${MODULE_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/engine)
  target_link_libraries(${target} PUBLIC ${MODULE_LINKS})
  kbeam_compile_options(${target})
  if(KBEAM_BUILD_TESTS AND MODULE_TESTS)
    kbeam_module_test(${target}_test engine SOURCES ${MODULE_TESTS} LINKS ${target} ${MODULE_TEST_LINKS})
    add_dependencies(engine_tests ${target}_test)
  endif()
  if(KBEAM_BUILD_TESTS AND KBEAM_CUDA AND MODULE_CUDA_TESTS)
    kbeam_module_test(${target}_cuda_test cuda SOURCES ${MODULE_CUDA_TESTS} LINKS ${target} ${MODULE_TEST_LINKS})
  endif()
endfunction()

function(kbeam_module_test test label)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${test} ${TEST_SOURCES})
  set_target_properties(${test} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${test} PRIVATE ${TEST_LINKS} GTest::gmock_main)
  target_compile_definitions(${test} PRIVATE KBEAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             KBEAM_BINARY_DIR="${CMAKE_BINARY_DIR}")
  kbeam_compile_options(${test})
  # Tests run for seconds and compile for minutes: most of it is templates of JSON and GoogleTest.
  target_compile_options(${test} PRIVATE $<$<CONFIG:Release>:-O1>)
  gtest_discover_tests(${test} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${label} TIMEOUT 300)
endfunction()

function(kbeam_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                         $<$<BOOL:${KBEAM_WARNINGS_AS_ERRORS}>:-Werror>)
  if(KBEAM_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${KBEAM_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${KBEAM_SANITIZE})
  endif()
endfunction()
