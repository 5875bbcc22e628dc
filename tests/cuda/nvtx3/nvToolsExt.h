/* NVTX in the emulation: keeps a text of the ranges that were opened and closed, for tests. */
#ifndef OPD_EMU_NVTX
#define OPD_EMU_NVTX
#include <string>
namespace opd_emu { inline std::string ranges; }
inline int nvtxRangePushA(const char *name) { opd_emu::ranges += std::string(name) + "("; return 0; }
inline int nvtxRangePop() { opd_emu::ranges += ")"; return 0; }
extern "C" __attribute__((used)) inline const char *opd_emu_ranges(void) { return opd_emu::ranges.c_str(); }
#endif
