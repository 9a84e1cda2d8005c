"""adapters - the judge in trainers that others wrote; a file each. Each imports its trainer, and only that."""
