#include "kernels/cpu/amx_emulator.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/isa.h"

namespace warmpath::testing {
namespace {

constexpr int kTiles = 8;
constexpr int kMostRows = 16;
constexpr int kMostRowBytes = 64;

// As ldtilecfg reads it and sttilecfg writes it.
struct TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

struct Tile {
  uint8_t bytes[kMostRows][kMostRowBytes];
};

thread_local TileConfig config;
thread_local Tile tiles[kTiles];

// In a signal handler: no stdio.
[[noreturn]] void refuse(const char* why) {
  const auto say = [](const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); };
  say("AMX emulator: real hardware would fault here: ");
  say(why);
  say("\n");
  std::abort();
}

void load_config(const TileConfig& wanted) {
  if (wanted.palette > 1 || wanted.start_row != 0) refuse("ldtilecfg of an unknown palette or a start row");
  for (int i = 0; i < 16; ++i) {
    const bool used = wanted.row_bytes[i] != 0 || wanted.rows[i] != 0;
    if (used && (i >= kTiles || wanted.palette == 0)) refuse("ldtilecfg of a tile that does not exist");
    if (wanted.row_bytes[i] > kMostRowBytes || wanted.rows[i] > kMostRows) refuse("ldtilecfg of too large a tile");
    if ((wanted.row_bytes[i] == 0) != (wanted.rows[i] == 0)) refuse("ldtilecfg of a tile with one size");
  }
  config = wanted;
  std::memset(tiles, 0, sizeof tiles);
}

void check_configured(int tile) {
  if (config.palette == 0 || config.rows[tile] == 0) refuse("a tile without a configuration");
}

// One instruction: VEX prefix of three bytes, opcode, ModRM and what follows it.
class Instruction {
 public:
  // False: not one of those that are emulated.
  static bool run(ucontext_t& context) {
    Instruction instruction(context);
    if (!instruction.decode() || !instruction.execute()) return false;
    context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(instruction.at_));
    return true;
  }

 private:
  enum Prefix { kNone, k66, kF3, kF2 };

  explicit Instruction(ucontext_t& context)
      : registers_(context.uc_mcontext.gregs),
        at_(reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(registers_[REG_RIP]))) {}

  uint64_t general(int number) const {
    static constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                       REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<uint64_t>(registers_[kOrder[number]]);
  }

  int64_t displacement(int bytes) {
    int64_t value = 0;
    if (bytes == 1) value = static_cast<int8_t>(*at_);
    if (bytes == 4) {
      int32_t four;
      std::memcpy(&four, at_, 4);
      value = four;
    }
    at_ += bytes;
    return value;
  }

  bool decode() {
    // 0xc4, then inverted R X B and the map, then W, inverted vvvv, L and the prefix.
    if (at_[0] != 0xc4 || (at_[1] & 0x1f) != 2 || (at_[2] & 0x84) != 0) return false;
    const bool extend_index = (at_[1] & 0x40) == 0;
    const bool extend_base = (at_[1] & 0x20) == 0;
    third_ = ~(at_[2] >> 3) & 15;
    prefix_ = static_cast<Prefix>(at_[2] & 3);
    opcode_ = at_[3];
    const uint8_t modrm = at_[4];
    at_ += 5;
    mode_ = modrm >> 6;
    first_ = modrm >> 3 & 7;
    second_ = modrm & 7;
    if (mode_ == 3) return true;
    uint64_t base = 0;
    int displacement_bytes = mode_ == 1 ? 1 : mode_ == 2 ? 4 : 0;
    bool relative = false;
    if (second_ == 4) {
      const uint8_t sib = *at_++;
      const int index = (sib >> 3 & 7) | (extend_index ? 8 : 0);
      if (index != 4) stride_ = static_cast<int64_t>(general(index)) << (sib >> 6);
      if ((sib & 7) == 5 && mode_ == 0) {
        displacement_bytes = 4;
      } else {
        base = general((sib & 7) | (extend_base ? 8 : 0));
      }
    } else if (second_ == 5 && mode_ == 0) {
      relative = true;
      displacement_bytes = 4;
    } else {
      base = general(second_ | (extend_base ? 8 : 0));
    }
    base += static_cast<uint64_t>(displacement(displacement_bytes));
    if (relative) base += reinterpret_cast<uintptr_t>(at_);
    address_ = reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(base));
    return true;
  }

  bool execute() const {
    switch (opcode_) {
      case 0x49:
        return mode_ == 3 ? execute_on_tile() : execute_on_config();
      case 0x4b:
        return mode_ != 3 && move_rows();
      case 0x5e:
        return mode_ == 3 && dot_product();
      default:
        return false;
    }
  }

  bool execute_on_config() const {
    if (first_ != 0) return false;
    if (prefix_ == kNone) {
      TileConfig wanted;
      std::memcpy(&wanted, address_, sizeof wanted);
      load_config(wanted);
      return true;
    }
    if (prefix_ == k66) std::memcpy(address_, &config, sizeof config);
    return prefix_ == k66;
  }

  bool execute_on_tile() const {
    if (prefix_ == kNone && first_ == 0 && second_ == 0) {
      load_config(TileConfig{});
      return true;
    }
    if (prefix_ != kF2 || second_ != 0) return false;
    check_configured(first_);
    std::memset(&tiles[first_], 0, sizeof(Tile));
    return true;
  }

  bool move_rows() const {
    if (prefix_ == kNone || second_ != 4) return false;
    check_configured(first_);
    Tile& tile = tiles[first_];
    if (prefix_ != kF3) std::memset(&tile, 0, sizeof tile);
    for (int row = 0; row < config.rows[first_]; ++row) {
      uint8_t* const memory = address_ + row * stride_;
      if (prefix_ == kF3) {
        std::memcpy(memory, tile.bytes[row], config.row_bytes[first_]);
      } else {
        std::memcpy(tile.bytes[row], memory, config.row_bytes[first_]);
      }
    }
    return true;
  }

  static int32_t byte_of(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

  bool dot_product() const {
    const int sums = first_;
    const int a = second_;
    const int b = third_;
    if (b >= kTiles || sums == a || sums == b || a == b) refuse("a product of fewer than three tiles");
    check_configured(sums);
    check_configured(a);
    check_configured(b);
    if (config.rows[sums] != config.rows[a] || config.row_bytes[sums] != config.row_bytes[b] ||
        config.row_bytes[a] != 4 * config.rows[b]) {
      refuse("a product of tiles whose shapes do not fit");
    }
    const bool signed_a = prefix_ == kF2 || prefix_ == kF3;
    const bool signed_b = prefix_ == kF2 || prefix_ == k66;
    for (int m = 0; m < config.rows[sums]; ++m) {
      for (int n = 0; n < config.row_bytes[sums] / 4; ++n) {
        int32_t sum;
        std::memcpy(&sum, &tiles[sums].bytes[m][4 * n], 4);
        for (int k = 0; k < config.row_bytes[a]; ++k) {
          sum += byte_of(tiles[a].bytes[m][k], signed_a) * byte_of(tiles[b].bytes[k / 4][4 * n + k % 4], signed_b);
        }
        std::memcpy(&tiles[sums].bytes[m][4 * n], &sum, 4);
      }
    }
    return true;
  }

  const gregset_t& registers_;
  const uint8_t* at_;
  Prefix prefix_ = kNone;
  uint8_t opcode_ = 0;
  int mode_ = 0;    // 3: registers only
  int first_ = 0;   // ModRM.reg
  int second_ = 0;  // ModRM.rm
  int third_ = 0;   // VEX.vvvv
  uint8_t* address_ = nullptr;
  int64_t stride_ = 0;
};

void on_illegal_instruction(int, siginfo_t*, void* context) {
  if (Instruction::run(*static_cast<ucontext_t*>(context))) return;
  // It is raised again, and nobody catches it.
  struct sigaction as_ever = {};
  as_ever.sa_handler = SIG_DFL;
  ::sigaction(SIGILL, &as_ever, nullptr);
}

}  // namespace

bool emulate_amx() {
  static bool emulated = false;
  if (emulated) return true;
  if (isa_supported(Isa::kAmx) || !isa_supported(Isa::kAvx512)) return false;
  struct sigaction action = {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGILL, &action, nullptr) != 0) return false;
  support_amx_for_test();
  return emulated = true;
}

}  // namespace warmpath::testing
