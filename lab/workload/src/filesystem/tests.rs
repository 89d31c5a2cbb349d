//! The file system against plain accounts of its blocks, and against a drive that notes what it is asked for.
