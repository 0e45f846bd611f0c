//! Patches: JSON Patch, JSON Merge Patch, strategic merge patch.
