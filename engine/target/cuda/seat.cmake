# The seat needs the toolkit's headers, and nvcc for its own kernels; never a GPU, and no CUDA library at link time.
function(kbeam_device_image name source)
  cmake_parse_arguments(IMAGE "" "" "CODE" ${ARGN})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  add_custom_command(OUTPUT ${output}
    COMMAND ${KBEAM_NVCC} -std=c++17 -O3 -fatbin ${IMAGE_CODE} -o ${output} ${input}
    DEPENDS ${input} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/seat_kernel_types.h
            ${CMAKE_CURRENT_SOURCE_DIR}/kernels/self_test_layout.h
    COMMENT "Building the device image ${name}" VERBATIM)
  set(${name} ${output} PARENT_SCOPE)
endfunction()

# PTX for whatever comes later; the self test shows off Hopper and runs there.
kbeam_device_image(seat_kernels kernels/seat_kernels.cu CODE
  -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_100,code=sm_100
  -gencode=arch=compute_80,code=compute_80)
kbeam_device_image(self_test kernels/self_test.cu CODE -gencode=arch=compute_90a,code=sm_90a)

kbeam_module(cuda_seat
  SOURCES call_findings.cpp cold_cache.cpp cudnn_convolution.cpp device_memory.cpp driver.cpp embedded_images.cpp figures.cpp
          graph_replay.cpp host_problem.cpp library_nodes.cpp loaded_image.cpp nvml.cpp plan_indices.cpp seat.cpp
          seat_channel.cpp seat_kernels.cpp seat_layout.cpp seat_messages.cpp seat_process.cpp seat_refusal.cpp
          seat_server.cpp seat_session.cpp seat_session_call.cpp self_test.cpp self_test_plans.cpp
  LINKS kbeam_model kbeam_base kbeam_contract fmt::fmt Threads::Threads ${CMAKE_DL_LIBS}
  TESTS call_findings_test.cpp device_memory_test.cpp driver_test.cpp figures_test.cpp graph_replay_test.cpp nvml_test.cpp seat_messages_test.cpp
        seat_process_test.cpp seat_session_test.cpp
)
target_include_directories(kbeam_cuda_seat SYSTEM PUBLIC ${KBEAM_CUDA_INCLUDE})
set_source_files_properties(driver_test.cpp PROPERTIES
  COMPILE_DEFINITIONS "KBEAM_CUDA_STUB=\"${KBEAM_CUDA_INCLUDE}/../lib64/stubs/libcuda.so\"")
set_source_files_properties(embedded_images.cpp PROPERTIES
  OBJECT_DEPENDS "${seat_kernels};${self_test}"
  COMPILE_DEFINITIONS "KBEAM_SEAT_IMAGE=\"${seat_kernels}\";KBEAM_SELF_TEST_IMAGE=\"${self_test}\"")
