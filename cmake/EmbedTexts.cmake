# Writes texts into one C++ table:
# cmake -DOUT=texts.cpp -DTABLE=optiml::emitTexts -DFILES=a.op,b.txt -P EmbedTexts.cmake
string(REPLACE "," ";" FILES "${FILES}")
string(REGEX MATCH "^(.*)::([^:]*)$" _ "${TABLE}")
set(text "// Written by cmake/EmbedTexts.cmake .\n#include \"optiml/Support/EmbeddedFile.h\"\n")
string(APPEND text "namespace ${CMAKE_MATCH_1} {\nextern const optiml::EmbeddedFile ${CMAKE_MATCH_2}[];\n")
string(APPEND text "const optiml::EmbeddedFile ${CMAKE_MATCH_2}[] = {\n")
foreach(file ${FILES})
  file(READ "${file}" content)
  get_filename_component(name "${file}" NAME)
  string(APPEND text "{\"${name}\", R\"text(${content})text\"},\n")
endforeach()
string(APPEND text "{nullptr, nullptr}};\n}\n")
file(WRITE "${OUT}" "${text}")
