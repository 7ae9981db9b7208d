// Finds out what a compiled template can do by rendering small probes and looking for their words in the result.
// Thread safety: pure.
#pragma once

#include "text/chat_template.h"

namespace warmpath {

TemplateAbilities probe_abilities(const ChatTemplate& chat_template);

}  // namespace warmpath
