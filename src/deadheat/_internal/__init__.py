"""What all packages use: lazy imports, number formats, output files, versions, remarks."""
