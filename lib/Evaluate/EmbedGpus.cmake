# Writes every data/gpus/*.json into one C++ file: cmake -DOUT=gpus.cpp -DFILES=a.json,b.json -P EmbedGpus.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(text "// Written by lib/Evaluate/EmbedGpus.cmake from data/gpus.\nnamespace optiml {\nextern const char *const embeddedGpuSpecs[];\nconst char *const embeddedGpuSpecs[] = {\n")
foreach(file ${FILES})
  file(READ "${file}" content)
  string(APPEND text "R\"gpu(${content})gpu\",\n")
endforeach()
string(APPEND text "nullptr};\n}\n")
file(WRITE "${OUT}" "${text}")
