# Writes a text file into a C++ one:
# cmake -DOUT=x.cpp -DFILE=x.ptx -DNAME=variable -DNAMESPACE=optiml::gpu -P EmbedText.cmake
file(READ "${FILE}" content)
file(WRITE "${OUT}"
  "namespace ${NAMESPACE} {\nextern const char *const ${NAME};\n"
  "const char *const ${NAME} = R\"text(${content})text\";\n}\n")
