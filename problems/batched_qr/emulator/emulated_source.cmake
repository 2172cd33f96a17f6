# cmake -DFROM=SKETCH.cu -DTO=FILE.cpp -P emulated_source.cmake
# A sketch for the emulated device: its instructions give way to emulated_instructions.h, its dynamic shared memory and
# the types of its plan to the emulated ones.
file(READ ${FROM} text)
string(FIND "${text}" "// --- instructions ---" begin)
set(last "// --- end of instructions ---")
string(FIND "${text}" "${last}" end)
if(begin EQUAL -1 OR end EQUAL -1)
  message(FATAL_ERROR "${FROM}: no block of instructions to replace")
endif()
string(LENGTH "${last}" length)
math(EXPR end "${end} + ${length}")
string(SUBSTRING "${text}" 0 ${begin} before)
string(SUBSTRING "${text}" ${end} -1 after)
string(REPLACE "#include <cuda_fp16.h>\n" "" before "${before}")
# The header has a namespace of its own, so this one is closed around it.
string(SUBSTRING "${text}" 0 ${end} above)
string(REGEX MATCHALL "\n" lines "${above}")
list(LENGTH lines line)
math(EXPR line "${line} + 1")
set(text "${before}}\n#include \"emulated_instructions.h\"\nnamespace {\n#line ${line} \"${FROM}\"\n${after}")
string(REGEX REPLACE "extern __shared__ (float4?) shared_memory\\[\\];"
       "\\1* shared_memory = reinterpret_cast<\\1*>(kbeam::emulated_shared_memory());" text "${text}")
foreach(type Plan DeviceTensor DevicePointer)
  string(REPLACE "Device" "" short ${type})
  string(REPLACE "kbeam::${type}" "kbeam::Emulated${short}" text "${text}")
endforeach()
file(WRITE ${TO} "#line 1 \"${FROM}\"\n${text}")
