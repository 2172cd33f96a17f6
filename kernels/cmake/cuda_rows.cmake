# kernelbeam_add_cuda_rows(JSON OPERATION OBJECTS_VARIABLE TABLE_VARIABLE)
# The same for GPUs: each distinct (source, knobs) is compiled once by nvcc with its own entry name. Everything else in a
# candidate file has internal linkage, so that rows of one file lie side by side.

# kernelbeam_cuda_object(FILE.cu OUTPUT DEFINITIONS OBJECT_VARIABLE)
function(kernelbeam_cuda_object file output definitions object_variable)
  get_filename_component(source ${file} ABSOLUTE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${output}.o)
  list(FILTER definitions EXCLUDE REGEX "^$")
  list(TRANSFORM definitions PREPEND -D)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda
    COMMAND ${KBEAM_NVCC} -c -std=c++20 -O3 -Xcompiler -fPIC,-fvisibility=hidden --expt-relaxed-constexpr
            -gencode=arch=compute_${KBEAM_CUDA_ARCHITECTURE},code=sm_${KBEAM_CUDA_ARCHITECTURE}
            -I ${PROJECT_SOURCE_DIR}/contract/include -I ${CMAKE_CURRENT_SOURCE_DIR}/include
            -I ${CMAKE_CURRENT_SOURCE_DIR}/src ${definitions} -MD -MF ${object}.d -MT ${object} ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${output}" VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${object_variable} ${object} PARENT_SCOPE)
endfunction()

function(kernelbeam_add_cuda_rows json_file operation objects_variable table_variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${json_file})
  file(READ ${json_file} json)
  string(JSON count LENGTH "${json}" rows)
  math(EXPR last "${count} - 1")
  set(objects "")
  set(known "")
  set(declarations "")
  set(entries "")
  foreach(index RANGE ${last})
    string(JSON row GET "${json}" rows ${index})
    foreach(name source least most proof)
      kernelbeam_json_text("${row}" ${name} ${name})
    endforeach()
    kernelbeam_row_knobs("${row}" definitions words)
    string(SHA256 hash "${source}|${words}")
    string(SUBSTRING ${hash} 0 12 hash)
    set(entry kernelbeam_${operation}_row_${hash})
    if(NOT entry IN_LIST known)
      kernelbeam_cuda_object(${PROJECT_SOURCE_DIR}/${source} ${entry} "KBEAM_ENTRY=${entry};${definitions}" object)
      list(APPEND known ${entry})
      list(APPEND objects ${object})
      string(APPEND declarations "extern \"C\" void ${entry}(const kbeam_cuda_host*);\n")
    endif()
    string(REPLACE "\"" "\\\"" proof "${proof}")
    string(APPEND entries "    {&${entry}, ${least}, ${most},\n     \"${source}\",\n     \"${words}\",\n"
                          "     \"${proof}\"},\n")
  endforeach()
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${operation}_rows.cpp)
  set(ROW_DECLARATIONS "${declarations}")
  set(ROW_ENTRIES "${entries}")
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/rows_table.cpp.in ${table} @ONLY)
  set(${objects_variable} ${objects} PARENT_SCOPE)
  set(${table_variable} ${table} PARENT_SCOPE)
endfunction()
