// file_hash: the XXH3-128 of a mapped file, remembered in the user's cache folder, so that a model of many gigabytes is
// not read through at every start.
//
// What is remembered holds for one state of one file: device, inode, size, and the times of its last change of content
// and of inode, all as they were when the file was mapped. A file that changed less than two seconds ago is hashed
// without remembering: another change might leave the same times. Entries are small text files, replaced by rename, in
// $XDG_CACHE_HOME/warmpath/hashes (default ~/.cache/warmpath/hashes); they may be deleted at any time. Where that
// folder cannot be written every call hashes. Thread safety: any thread, any number of processes.
#pragma once

#include "base/hash128.h"
#include "model_file/mapped_file.h"

namespace warmpath {

// Files smaller than this are hashed each time, in milliseconds.
inline constexpr size_t kRememberedHashBytes = size_t{16} << 20;

Hash128 file_hash(const MappedFile& file);

}  // namespace warmpath
