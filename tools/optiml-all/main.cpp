//===- optiml-all - several programs in one file --------------------------===//
//
// Is whichever program it is called as, through links named optiml-search and so on (utils/bundle).
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <string_view>

#define EVERY_TOOL(tool)                                                                                               \
  tool(search) tool(run) tool(opt) tool(apply) tool(diagnose) tool(doctor) tool(gen) tool(mcp) tool(record)            \
      tool(report) tool(tune) tool(verify)

#define DECLARE(name) int optiml_##name##_main(int argc, char **argv);
EVERY_TOOL(DECLARE)

int main(int argc, char **argv) {
  std::string_view name = argc > 0 ? argv[0] : "";
  name = name.substr(name.rfind('/') + 1);
#define BECOME(tool)                                                                                                   \
  if (name == "optiml-" #tool)                                                                                         \
    return optiml_##tool##_main(argc, argv);
  EVERY_TOOL(BECOME)
#define NAME(tool) " optiml-" #tool
  std::fputs("optiml-all: call me through a link named one of" EVERY_TOOL(NAME) "\n", stderr);
  return 2;
}
