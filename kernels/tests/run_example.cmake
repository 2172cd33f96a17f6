# Installs the library below WORK, configures the example of SOURCE against it, builds and runs it.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed with ${status}: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
step(${CMAKE_COMMAND} --install ${BUILD} --component kernelbeam --prefix ${WORK}/prefix)
step(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
     -DCMAKE_PREFIX_PATH=${WORK}/prefix)
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${WORK}/build/least_squares)
step(${WORK}/build/plain_c)
if(EXISTS ${WORK}/build/least_squares_cuda)
  execute_process(COMMAND ${WORK}/build/least_squares_cuda RESULT_VARIABLE status)
  if(NOT status EQUAL 0 AND NOT status EQUAL 77)  # 77: there is no GPU here
    message(FATAL_ERROR "least_squares_cuda failed with ${status}")
  endif()
endif()
