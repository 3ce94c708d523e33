"""Internal helpers of all packages: imports, number formats, output files, versions, remarks."""
