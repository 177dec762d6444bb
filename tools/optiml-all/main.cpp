//===- optiml-all - several programs in one file --------------------------===//
//
// Is whichever program it is called as, through links named optiml-search, optiml-run, optiml-opt, optiml-diagnose,
// optiml-gen, optiml-mcp, optiml-record, optiml-report, optiml-tune and optiml-verify (utils/bundle).
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <string_view>

int optiml_search_main(int argc, char **argv);
int optiml_run_main(int argc, char **argv);
int optiml_opt_main(int argc, char **argv);
int optiml_diagnose_main(int argc, char **argv);
int optiml_gen_main(int argc, char **argv);
int optiml_mcp_main(int argc, char **argv);
int optiml_record_main(int argc, char **argv);
int optiml_report_main(int argc, char **argv);
int optiml_tune_main(int argc, char **argv);
int optiml_verify_main(int argc, char **argv);

int main(int argc, char **argv) {
  std::string_view name = argc > 0 ? argv[0] : "";
  name = name.substr(name.rfind('/') + 1);
  if (name == "optiml-search")
    return optiml_search_main(argc, argv);
  if (name == "optiml-run")
    return optiml_run_main(argc, argv);
  if (name == "optiml-opt")
    return optiml_opt_main(argc, argv);
  if (name == "optiml-diagnose")
    return optiml_diagnose_main(argc, argv);
  if (name == "optiml-gen")
    return optiml_gen_main(argc, argv);
  if (name == "optiml-mcp")
    return optiml_mcp_main(argc, argv);
  if (name == "optiml-record")
    return optiml_record_main(argc, argv);
  if (name == "optiml-report")
    return optiml_report_main(argc, argv);
  if (name == "optiml-tune")
    return optiml_tune_main(argc, argv);
  if (name == "optiml-verify")
    return optiml_verify_main(argc, argv);
  std::fputs("optiml-all: call me through a link named optiml-search, optiml-run, optiml-opt, optiml-diagnose, "
             "optiml-gen, optiml-mcp, "
             "optiml-record, optiml-report, optiml-tune or optiml-verify\n",
             stderr);
  return 2;
}
