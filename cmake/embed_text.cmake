# kbeam_embed_text(TARGET FILE kName): compiles the text of FILE into TARGET as `extern const std::string_view kName`
# in namespace kbeam. Run as a script (cmake -P) it writes that one source file.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" text)
  # Compilers limit the length of one literal, so the text travels in pieces that the compiler joins again.
  string(LENGTH "${text}" length)
  set(literals "")
  set(start 0)
  while(start LESS length)
    string(SUBSTRING "${text}" ${start} 8000 piece)
    string(APPEND literals "R\"embedded(${piece})embedded\"\n")
    math(EXPR start "${start} + 8000")
  endwhile()
  file(WRITE "${OUTPUT}" "#include <string_view>\nnamespace kbeam {\n"
       "extern const std::string_view ${NAME};\nconst std::string_view ${NAME} =\n${literals};\n}\n")
  return()
endif()

set(KBEAM_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(kbeam_embed_text target file name)
  get_filename_component(input ${file} ABSOLUTE)
  get_filename_component(leaf ${file} NAME)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${leaf}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name} -P ${KBEAM_EMBED_SCRIPT}
    DEPENDS ${input} ${KBEAM_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
