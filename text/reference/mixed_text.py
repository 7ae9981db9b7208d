"""Deterministic mixed text: the twin of text/mixed_text_for_test.h, byte for byte. Words, code, numbers, white space,
many scripts, emoji, marks, control characters and any other code points, in documents of about 4 KB."""

WORDS = ("the of and to in is that it for was on are as with his they at be this from have or by one had not but what all "
         "were when we there can an your which their said if do will each about how up out them then she many some so these "
         "would other into has more her two like him see time could no make than first been its who now people my made over "
         "did down only way find use may water long little very after words called just where most know don't I'm we'll "
         "you're they've he'd it's CAN'T 'S 'Ll x's return def class self None import lambda yield async int main void "
         "std::vector const auto& static_cast<size_t> unsigned template typename nullptr #include <|im_end|> <|endoftext|> "
         "function=> ===!== && || /* */ // http://www.example.com/a?b=c&d=%20 user@mail.org getElementById camelCaseWord "
         "snake_case_word SCREAMING_CASE kConstantName __init__ TODO(me): 0x7fffffff 1e-10 3.14159 v1.2.3-rc4").split(" ")
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# First and last code points of what the documents draw from.
RANGES = [(0xA0, 0x17F), (0x180, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x58F), (0x590, 0x5F4),
          (0x600, 0x6FF), (0x660, 0x669), (0x900, 0x97F), (0xE00, 0xE5B), (0x10A0, 0x10FF), (0x1100, 0x11FF),
          (0x1E00, 0x1EFF), (0x2000, 0x200F), (0x2010, 0x205F), (0x2070, 0x209C), (0x20A0, 0x20C0), (0x2150, 0x218B),
          (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x27BF), (0x3000, 0x303F), (0x3040, 0x30FF), (0x3400, 0x4DBF),
          (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xFB00, 0xFB4F), (0xFE00, 0xFE0F), (0xFF01, 0xFFEE),
          (0x10330, 0x1034A), (0x10D40, 0x10D8F), (0x11DE0, 0x11DEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1F64F),
          (0x1F900, 0x1F9FF), (0x20000, 0x20100), (0xE0001, 0xE007F)]
WHITE = ["\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\r", "\v", "\f"]


class Random:
    """Knuth's MMIX generator, the high half of 64 bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % bound


def any_code_point(random):
    code = random.below(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)


def document(index, seed=0, size=4096):
    random = Random(seed * 1000003 + index)
    flavour = index % 6  # 0 prose, 1 code, 2 scripts, 3 white space and digits, 4 anything, 5 all of them
    pieces, length = [], 0
    while length < size:
        kind = random.below(10)
        if flavour == 0 and kind < 7 or flavour == 1 and kind < 4:
            piece = WORDS[random.below(len(WORDS))] + (" " if random.below(8) else "")
        elif flavour == 2 and kind < 8:
            first, last = RANGES[random.below(len(RANGES))]
            piece = "".join(chr(first + random.below(last - first + 1)) for _ in range(1 + random.below(12)))
        elif flavour == 4 and kind < 5:
            piece = any_code_point(random)
        elif kind == 0:
            piece = " " * (1 + random.below(12))
        elif kind == 1:
            piece = WHITE[random.below(len(WHITE))] * (1 + random.below(3))
        elif kind == 2:
            piece = "".join(chr(48 + random.below(10)) for _ in range(1 + random.below(7)))
        elif kind == 3:
            piece = "".join(PUNCTUATION[random.below(len(PUNCTUATION))] for _ in range(1 + random.below(5)))
        elif kind == 4:
            piece = "".join(chr(97 + random.below(26) - 32 * random.below(2)) for _ in range(1 + random.below(20)))
        elif kind == 5:
            piece = chr(random.below(32)) if random.below(2) else chr(127 + random.below(33))
        elif kind == 6:
            piece = "".join(chr(random.below(256)) for _ in range(1 + random.below(6)))
        elif kind == 7:
            piece = "'" + WORDS[random.below(len(WORDS))]
        elif kind == 8:
            first, last = RANGES[random.below(len(RANGES))]
            piece = chr(first + random.below(last - first + 1))
        else:
            piece = WORDS[random.below(len(WORDS))]
        pieces.append(piece)
        length += len(piece.encode("utf-8"))
    return "".join(pieces)
