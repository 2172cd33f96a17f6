# CUDA, where nvcc is: device code for the worker and the tests. Building needs no GPU and no driver.
find_program(KBEAM_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(KBEAM_NVCC)
  get_filename_component(KBEAM_CUDA_ROOT ${KBEAM_NVCC} REALPATH)
  get_filename_component(KBEAM_CUDA_ROOT ${KBEAM_CUDA_ROOT}/../.. ABSOLUTE)
  find_path(KBEAM_CUDA_INCLUDE cuda.h HINTS ${KBEAM_CUDA_ROOT}/include ${KBEAM_CUDA_ROOT}/targets/x86_64-linux/include)
endif()
if(KBEAM_NVCC AND KBEAM_CUDA_INCLUDE)
  set(have_cuda ON)
else()
  set(have_cuda OFF)
endif()
option(KBEAM_CUDA "Build what needs the CUDA toolkit" ${have_cuda})
if(KBEAM_CUDA AND NOT have_cuda)
  message(FATAL_ERROR "KBEAM_CUDA is on, but nvcc and cuda.h were not found: set CUDA_HOME")
endif()
set(KBEAM_CUDA_ARCHITECTURE 90a CACHE STRING "The GPU that device code is built for")

# kbeam_cuda_module(NAME FILE.cu [FOLDER folder] [FLAGS ...]): FOLDER/NAME.so, built as the engine builds a candidate
# or a problem.cu: no CUDA runtime, one image. NAME is a target.
function(kbeam_cuda_module name file)
  cmake_parse_arguments(MODULE "" "FOLDER" "FLAGS" ${ARGN})
  if(NOT MODULE_FOLDER)
    set(MODULE_FOLDER ${CMAKE_BINARY_DIR}/tests/cuda)
  endif()
  file(MAKE_DIRECTORY ${MODULE_FOLDER})
  get_filename_component(source ${file} ABSOLUTE)
  set(output ${MODULE_FOLDER}/${name}.so)
  add_custom_command(OUTPUT ${output}
    COMMAND ${KBEAM_NVCC} -std=c++20 -O2 --shared -cudart none -Xcompiler -fPIC,-fvisibility=hidden
            -gencode=arch=compute_${KBEAM_CUDA_ARCHITECTURE},code=sm_${KBEAM_CUDA_ARCHITECTURE}
            -I ${PROJECT_SOURCE_DIR}/contract/include ${MODULE_FLAGS} -MD -MF ${output}.d -MT ${output}
            ${source} -o ${output}
    DEPENDS ${source} DEPFILE ${output}.d COMMENT "Building CUDA module ${name}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${output})
endfunction()
